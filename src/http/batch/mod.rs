//! `POST /recall/…/batch`: many samples in, a result for each and a summary out, as JSON or as a stream of lines.
//!
//! A request is read by `input`, worked on by `run`, and written by `output`. One bad sample never sinks the others:
//! from the moment that samples are read the status is 200, and whatever goes wrong with one is its own result.

mod input;
mod output;
mod run;

use std::time::Instant;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use tower_http::request_id::RequestId;

use self::input::Source;
use self::run::{Manner, Run};
use super::App;
use super::body::{self, Form};
use super::extract::Envelope;
use super::measure::Measure;
use super::problem::Problem;

pub use self::output::{BatchAnswer, BatchItem, BatchSummary, FailedItem, ScoredItem};

/// Answers a batch for the measure `M`.
pub(super) async fn batch<M: Measure>(app: App, request: Request) -> Result<Response, Problem> {
    let form = Form::of(request.headers())?;
    let wanted = wanted(request.headers()).unwrap_or(form);
    let reuse = body::reuse(request.headers());
    let request_id = request_id(&request);
    let (source, envelope) = match form {
        Form::Json => {
            let deadline = Instant::now() + app.limits().request_timeout;
            body::refuse_query(request.uri().query())?;
            let bytes = body::read_whole(request, app.limits().body, deadline).await?;
            Source::listed::<M>(&app, bytes)?
        }
        Form::Lines => Source::streamed::<M>(&app, request).await?,
    };
    let Envelope { options, ordered } = envelope;
    // A JSON answer is one list in input order; lines leave as they are done unless order is asked for.
    let ordered = ordered || wanted == Form::Json;
    let results = Run::start::<M>(app, source, Manner { options, reuse }, request_id, ordered);
    let kind = match wanted {
        Form::Json => "application/json",
        Form::Lines => "application/x-ndjson",
    };
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(([kind], Body::from_stream(output::written(results, wanted))).into_response())
}

fn request_id(request: &Request) -> String {
    let id = request.extensions().get::<RequestId>();
    id.and_then(|id| id.header_value().to_str().ok()).unwrap_or_default().to_owned()
}

/// The form that `Accept` prefers; `None` without a preference between the two.
fn wanted(headers: &HeaderMap) -> Option<Form> {
    let mut best: Option<(Form, f32)> = None;
    let given = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    for range in given.flat_map(|value| value.split(',')) {
        let mut parts = range.split(';').map(|part| part.trim().to_ascii_lowercase());
        let Some(form) = parts.next().and_then(|essence| Form::named(&essence)) else { continue };
        let quality = parts.find_map(|part| part.strip_prefix("q=")?.parse().ok()).unwrap_or(1.0);
        if quality > 0.0 && best.is_none_or(|(_, other)| quality > other) {
            best = Some((form, quality));
        }
    }
    best.map(|(form, _)| form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_decides_and_silence_does_not() {
        for (accept, form) in [
            ("application/json", Some(Form::Json)),
            ("application/x-ndjson", Some(Form::Lines)),
            ("application/jsonl; charset=utf-8", Some(Form::Lines)),
            ("application/json;q=0.1, application/x-ndjson", Some(Form::Lines)),
            ("application/x-ndjson;q=0.2, APPLICATION/JSON;q=0.9", Some(Form::Json)),
            ("application/json, application/x-ndjson", Some(Form::Json)),
            ("application/x-ndjson;q=0", None),
            ("*/*", None),
            ("text/html, application/xhtml+xml, */*;q=0.8", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            assert_eq!(wanted(&headers), form, "{accept}");
        }
        assert_eq!(wanted(&HeaderMap::new()), None);
    }
}
