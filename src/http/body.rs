//! The bytes of a body: media type, size, and no option where none is read.

use std::fmt::{self, Display};
use std::time::Instant;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt;

use super::App;
use super::extract::{ROUTES, known_columns};
use super::problem::{Code, Faults, Problem};
use crate::recall::similarity::nearest;

/// A JSON body as it came, unpacked and within the limit.
pub struct JsonBody {
    /// The bytes.
    pub bytes: Bytes,
    /// When the request must be answered. The clock starts before the body is read.
    pub deadline: Instant,
}

impl FromRequest<App> for JsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let deadline = Instant::now() + app.limits().request_timeout;
        refuse_query(request.uri().query())?;
        require_json(request.headers())?;
        let read = tokio::time::timeout_at(deadline.into(), read(request, app.limits().body));
        let bytes = read.await.map_err(|_| {
            Problem::new(Code::DeadlineExceeded, "The body had not arrived whole before the request's deadline.")
        })??;
        Ok(Self { bytes, deadline })
    }
}

/// Options stand in the body of these routes; one in the query would be passed over without a word.
fn refuse_query(query: Option<&str>) -> Result<(), Problem> {
    let names = query.unwrap_or_default().split('&').filter_map(|pair| pair.split('=').next());
    let mut faults = Faults::default();
    for name in names.filter(|name| !name.is_empty()) {
        faults.note("", UnknownParameter(name));
    }
    if faults.count == 0 { Ok(()) } else { Err(Problem::invalid_input(faults)) }
}

struct UnknownParameter<'a>(&'a str);

impl Display for UnknownParameter<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = || known_columns().chain(ROUTES.iter().flat_map(|route| route.options.iter().copied()));
        write!(formatter, "unknown query parameter `{}`", printable(self.0))?;
        match nearest(self.0, known()) {
            Some(name) => write!(formatter, "; send `{name}` as a field of the body"),
            None => formatter.write_str("; this route reads nothing but its body"),
        }
    }
}

fn printable(name: &str) -> String {
    name.chars().take(40).collect()
}

fn require_json(headers: &HeaderMap) -> Result<(), Problem> {
    let given = headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or_default());
    let essence = given.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json")) {
        return Ok(());
    }
    let found =
        if essence.is_empty() { "no Content-Type".to_owned() } else { format!("Content-Type {}", printable(&essence)) };
    Err(Problem::new(Code::UnsupportedMediaType, format!("Expected Content-Type application/json, found {found}.")))
}

async fn read(request: Request, limit: usize) -> Result<Bytes, Problem> {
    let announced = content_length(request.headers());
    let unpacked = !request.headers().contains_key(header::CONTENT_ENCODING);
    let mut body = request.into_body();
    if unpacked && announced.is_some_and(|length| length > limit) {
        return Err(too_large(limit));
    }
    let mut read: Vec<u8> = Vec::with_capacity(announced.unwrap_or_default().min(limit));
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(broken)?;
        let Ok(data) = frame.into_data() else { continue };
        if read.len() + data.len() > limit {
            return Err(too_large(limit));
        }
        read.extend_from_slice(&data);
    }
    Ok(read.into())
}

fn content_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn too_large(limit: usize) -> Problem {
    let limit = size(limit);
    Problem::new(
        Code::PayloadTooLarge,
        format!("The body is larger than {limit}, the limit for one sample (--body-limit)."),
    )
}

/// A size in the largest unit that leaves no remainder.
fn size(bytes: usize) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB"), (0, "B")];
    let whole = units.iter().find(|(shift, _)| bytes > 0 && bytes.is_multiple_of(1 << shift));
    whole.map_or_else(|| "0 B".to_owned(), |(shift, unit)| format!("{} {unit}", bytes >> shift))
}

fn broken(error: axum::Error) -> Problem {
    // Either the client went away, then nobody reads this, or what it sent does not unpack.
    tracing::debug!(%error, "a body could not be read");
    Problem::new(Code::InvalidJson, "The body broke off or does not unpack.")
        .with_hint("Check Content-Length, and that Content-Encoding: gzip is only named for a body that is gzip.")
}
