//! The bytes of a body: media type, size, and no option where none is read.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt;

use super::App;
use super::problem::{Code, Fault, Problem};

/// A JSON body as it came, unpacked and within the limit.
pub struct JsonBody(pub Bytes);

impl FromRequest<App> for JsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        refuse_query(request.uri().query())?;
        require_json(request.headers())?;
        read(request, app.body_limit()).await.map(Self)
    }
}

/// Options stand in the body of these routes; one in the query would be passed over without a word.
fn refuse_query(query: Option<&str>) -> Result<(), Problem> {
    let names =
        query.unwrap_or_default().split('&').filter_map(|pair| pair.split('=').next()).filter(|name| !name.is_empty());
    let named = |name: &str| Fault {
        pointer: String::new(),
        detail: format!("unknown query parameter `{}`: options of this route are fields of the body", printable(name)),
    };
    let faults: Vec<Fault> = names.map(named).collect();
    if faults.is_empty() { Ok(()) } else { Err(Problem::invalid_input(faults)) }
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

/// How much more than the limit is read and thrown away, and for how long, before the refusal is sent. A client that
/// only reads once it has sent everything would otherwise see a broken connection in place of the answer.
const DRAINED: usize = 64 * 1024 * 1024;
const DRAINING: Duration = Duration::from_secs(10);

async fn read(request: Request, limit: usize) -> Result<Bytes, Problem> {
    let announced = content_length(request.headers());
    let unpacked = !request.headers().contains_key(header::CONTENT_ENCODING);
    let asks_first = request.headers().contains_key(header::EXPECT);
    let mut body = request.into_body();
    if unpacked && announced.is_some_and(|length| length > limit) {
        // A client that asks first has sent nothing yet; reading would tell it to go on.
        if !asks_first {
            drain(&mut body).await;
        }
        return Err(too_large(limit));
    }
    let mut read: Vec<u8> = Vec::with_capacity(announced.unwrap_or_default().min(limit));
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(broken)?;
        let Ok(data) = frame.into_data() else { continue };
        if read.len() + data.len() > limit {
            drop(read);
            drain(&mut body).await;
            return Err(too_large(limit));
        }
        read.extend_from_slice(&data);
    }
    Ok(read.into())
}

fn content_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

async fn drain(body: &mut Body) {
    let all = async {
        let mut left = DRAINED;
        while let Some(Ok(frame)) = body.frame().await {
            let size = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(size) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    };
    // Whether it ended or not, the refusal is sent next.
    let _ = tokio::time::timeout(DRAINING, all).await;
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
