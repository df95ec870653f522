//! Values as people write them: durations, sizes, numbers within bounds.

use std::str::FromStr;
use std::time::Duration;

pub(super) const DURATION: &str = "a duration from 1ms to 24h, such as 60s or 2m";

pub(super) const CACHES: std::ops::RangeInclusive<u64> = 1024 * 1024..=64 * 1024 * 1024 * 1024;
const SIZES: std::ops::RangeInclusive<u64> = 1024..=4 * 1024 * 1024 * 1024;
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) fn parse<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

pub(super) fn within<T: FromStr + PartialOrd>(text: &str, least: T, most: T) -> Option<T> {
    text.parse().ok().filter(|number| (least..=most).contains(number))
}

/// A share as an argument of `score`.
pub(super) fn share(text: &str) -> Result<f64, &'static str> {
    within(text, 0.0, 1.0).ok_or("expected a number from 0 to 1")
}

pub(super) fn duration(text: &str) -> Option<Duration> {
    humantime::parse_duration(text).ok().filter(|time| (Duration::from_millis(1)..=LONGEST).contains(time))
}

pub(super) fn age(text: &str) -> Option<Duration> {
    let longest = Duration::from_secs(10 * 366 * 24 * 60 * 60);
    humantime::parse_duration(text).ok().filter(|time| (Duration::from_secs(1)..=longest).contains(time))
}

pub(super) fn size(text: &str) -> Option<usize> {
    let bytes = text.parse::<bytesize::ByteSize>().ok()?.as_u64();
    SIZES.contains(&bytes).then(|| usize::try_from(bytes).ok())?
}
