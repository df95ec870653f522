//! The batch routes without a server: the same router, asked by a function call.

use std::io;

use axum::body::{Body, Bytes};
use axum::http::{Request, header};
use futures_util::{Stream, StreamExt as _};
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

use super::{App, router};

/// Sends a batch to `route`, such as `/recall/id`, with `query` as its query string and a body in lines or, without
/// `lines`, as one JSON document. Gives the answer's lines as they come, in pieces of whatever size.
///
/// # Errors
///
/// What the service says of a batch that it cannot read.
pub async fn batch(
    app: App,
    route: &str,
    query: &str,
    lines: bool,
    body: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
) -> Result<impl Stream<Item = io::Result<Bytes>> + Unpin + Send, String> {
    let kind = if lines { "application/x-ndjson" } else { "application/json" };
    let query = if query.is_empty() { String::new() } else { format!("?{query}") };
    let request = Request::post(format!("{route}/batch{query}"))
        .header(header::CONTENT_TYPE, kind)
        .header(header::ACCEPT, "application/x-ndjson")
        .body(Body::from_stream(body))
        .map_err(|error| format!("the options cannot be read: {error}"))?;
    let Ok(response) = router(app).oneshot(request).await;
    if response.status().is_success() {
        return Ok(response.into_body().into_data_stream().map(|piece| piece.map_err(io::Error::other)));
    }
    let body = response.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    Err(told(&body))
}

/// A problem in lines for a person.
fn told(body: &[u8]) -> String {
    let problem: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let mut lines = vec![problem["detail"].as_str().unwrap_or("the batch was refused").to_owned()];
    let errors = problem["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
    if errors.len() > 1 {
        lines.extend(errors.iter().map(|error| {
            let word = |field: &str| error[field].as_str().unwrap_or_default().to_owned();
            format!("  - {} {}", word("pointer"), word("detail")).replace("  -  ", "  - ")
        }));
    }
    lines.join("\n")
}
