//! Where a batch's samples come from: a list in an envelope, or lines that are still arriving.

use std::collections::VecDeque;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header;
use http_body_util::BodyExt as _;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::super::App;
use super::super::body::{LineError, query_as_json};
use super::super::extract::{Envelope, Fields};
use super::super::measure::Measure;
use super::super::problem::Problem;
use crate::spool::{Inlet, Outlet, Record, Room, spool};

/// One sample as it came.
#[derive(Debug)]
pub(super) struct Entry {
    /// Its place among the samples, counted from 0.
    pub(super) index: u64,
    /// Its line, counted from 1, where samples come in lines.
    pub(super) line: Option<u64>,
    /// Its JSON, or why there is none.
    pub(super) text: Result<Bytes, LineError>,
}

/// Samples in the order in which they came.
#[derive(Debug)]
pub(super) struct Source {
    next_index: u64,
    entries: Entries,
}

#[derive(Debug)]
enum Entries {
    Listed(VecDeque<Bytes>),
    /// What arrives, and the task that takes it in; dropping it ends the task.
    Streamed {
        outlet: Outlet,
        _taking_in: JoinSet<()>,
    },
}

/// Bytes of input in memory that nobody has taken up yet.
const BUFFER: usize = 1024 * 1024;

/// Tags of records that hold no line but say why.
const TOO_LONG: u64 = 1 << 63;
const BROKE_OFF: u64 = 1 << 62;

impl Source {
    /// The samples of an envelope.
    pub(super) fn listed<M: Measure>(app: &App, bytes: Bytes) -> Result<(Self, Envelope<M::Options>), Problem> {
        let mut fields = Fields::parse_envelope(&bytes, &M::ROUTE)?;
        let samples = fields.samples();
        let ordered = fields.flag("ordered");
        let options = M::options(app, &mut fields, &M::Options::default());
        let samples = samples.map(|list| list.iter().map(|raw| bytes.slice_ref(raw.get().as_bytes())).collect());
        let entries = Entries::Listed(fields.finish(samples)?);
        Ok((Self { next_index: 0, entries }, Envelope { options, ordered }))
    }

    /// The lines of a body that is taken in from now on, whether anybody works on them or not.
    pub(super) async fn streamed<M: Measure>(
        app: &App,
        request: Request,
    ) -> Result<(Self, Envelope<M::Options>), Problem> {
        let json = query_as_json(request.uri().query().unwrap_or_default());
        let mut fields = Fields::parse_query(&json, &M::ROUTE)?;
        let ordered = fields.flag("ordered");
        let options = M::options(app, &mut fields, &M::Options::default());
        let options = fields.finish_query(options)?;
        let (inlet, outlet) = spool(Room { memory: BUFFER, disk: app.limits().stream_spool });
        let mut taking_in = JoinSet::new();
        let asks_first = request.headers().contains_key(header::EXPECT);
        let (begun, has_begun) = oneshot::channel();
        taking_in.spawn(take_in(request.into_body(), app.limits().body, inlet, begun));
        if asks_first {
            // Who asks before it sends is told to go on by the first read; an answer before that would tell it to stop.
            let _ = has_begun.await;
        }
        let entries = Entries::Streamed { outlet, _taking_in: taking_in };
        Ok((Self { next_index: 0, entries }, Envelope { options, ordered }))
    }

    /// The next sample; `None` after the last.
    ///
    /// # Errors
    ///
    /// When what was set aside on disk cannot be read back.
    pub(super) async fn next(&mut self) -> std::io::Result<Option<Entry>> {
        let (line, text) = match &mut self.entries {
            Entries::Listed(list) => match list.pop_front() {
                Some(text) => (None, Ok(text)),
                None => return Ok(None),
            },
            Entries::Streamed { outlet, .. } => match outlet.take().await? {
                Some((tag, bytes)) => (Some(tag & !(TOO_LONG | BROKE_OFF)), text(tag, bytes)),
                None => return Ok(None),
            },
        };
        let index = self.next_index;
        self.next_index += 1;
        Ok(Some(Entry { index, line, text }))
    }
}

fn text(tag: u64, bytes: Box<[u8]>) -> Result<Bytes, LineError> {
    match tag {
        tag if tag & TOO_LONG != 0 => Err(LineError::TooLong),
        tag if tag & BROKE_OFF != 0 => Err(LineError::BrokeOff),
        _ => Ok(Bytes::from(bytes)),
    }
}

/// Reads a body to its end, cut into lines.
async fn take_in(mut body: Body, longest: usize, mut inlet: Inlet, begun: oneshot::Sender<()>) {
    let mut lines = Lines { longest, line: Vec::new(), number: 1, is_too_long: false };
    let mut records = Vec::new();
    let mut begun = Some(begun);
    while let Some(frame) = body.frame().await {
        // Mostly nobody waits for this.
        let _ = begun.take().map(|begun| begun.send(()));
        match frame.map(http_body::Frame::into_data) {
            Ok(Ok(data)) => lines.cut(&data, &mut records),
            // Trailers.
            Ok(Err(_)) => continue,
            Err(error) => {
                tracing::debug!(%error, "a stream of lines broke off");
                records.push((lines.number | BROKE_OFF, Box::default()));
                lines.line.clear();
                break;
            }
        }
        if !records.is_empty() && inlet.put(std::mem::take(&mut records)).await.is_err() {
            return;
        }
    }
    lines.end(&mut records);
    // Who is gone needs nothing any more.
    let _ = inlet.put(records).await;
}

/// Cuts bytes into lines at LF, of whatever length the pieces come. JSON strings hold no raw LF, so nothing else ends a
/// line.
struct Lines {
    longest: usize,
    /// What has come of the present line, as far as it is kept.
    line: Vec<u8>,
    number: u64,
    is_too_long: bool,
}

impl Lines {
    fn cut(&mut self, mut data: &[u8], records: &mut Vec<Record>) {
        while let Some(end) = memchr::memchr(b'\n', data) {
            let (rest_of_line, after) = (&data[..end], &data[end + 1..]);
            if self.line.is_empty() && rest_of_line.len() <= self.longest {
                self.emit(rest_of_line, records);
            } else {
                self.append(rest_of_line);
                let line = std::mem::take(&mut self.line);
                self.emit(&line, records);
            }
            self.number += 1;
            data = after;
        }
        self.append(data);
    }

    fn append(&mut self, data: &[u8]) {
        if self.line.len() + data.len() > self.longest {
            self.is_too_long = true;
            self.line = Vec::new();
        }
        if !self.is_too_long {
            self.line.extend_from_slice(data);
        }
    }

    fn emit(&mut self, line: &[u8], records: &mut Vec<Record>) {
        if std::mem::take(&mut self.is_too_long) {
            records.push((self.number | TOO_LONG, Box::default()));
        } else if !line.trim_ascii().is_empty() {
            records.push((self.number, line.into()));
        }
    }

    fn end(&mut self, records: &mut Vec<Record>) {
        let line = std::mem::take(&mut self.line);
        self.emit(&line, records);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(pieces: &[&[u8]], longest: usize) -> Vec<(u64, Vec<u8>)> {
        let mut lines = Lines { longest, line: Vec::new(), number: 1, is_too_long: false };
        let mut records = Vec::new();
        pieces.iter().for_each(|piece| lines.cut(piece, &mut records));
        lines.end(&mut records);
        records.into_iter().map(|(tag, bytes)| (tag, bytes.into_vec())).collect()
    }

    #[test]
    fn lines_are_counted_blank_ones_skipped_long_ones_told() {
        let lines = cut(&[b"{}\n\n \r\n{\"a\":", b"1}\r\n12345", b"67890\nlast"], 8);
        let expected =
            [(1, "{}"), (4, "{\"a\":1}\r"), (5 | TOO_LONG, ""), (6, "last")].map(|(tag, text)| (tag, text.into()));
        assert_eq!(lines, expected);
    }

    proptest! {
        #[test]
        fn how_the_pieces_fall_changes_nothing(text in "[ab\n ]{0,60}", cuts in prop::collection::vec(0_usize..60, 0..6)) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|at| at.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for at in cuts.into_iter().chain([bytes.len()]) {
                pieces.push(&bytes[from..at]);
                from = at;
            }
            prop_assert_eq!(cut(&pieces, 5), cut(&[bytes], 5));
        }
    }
}
