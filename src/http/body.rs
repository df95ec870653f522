//! The bytes of a body: media type, size, and no option where none is read.

use std::fmt::{self, Display};
use std::time::Instant;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt;

use super::App;
use super::extract::{ROUTES, known_columns};
use super::measure::Terms;
use super::problem::{Code, Faults, Problem};
use crate::recall::memory::Reuse;
use crate::recall::similarity::nearest;

/// A JSON body as it came, unpacked and within the limit.
pub struct JsonBody {
    /// The bytes.
    pub bytes: Bytes,
    /// When it must be answered (the clock starts before the body is read), and whether from memory.
    pub terms: Terms,
}

impl FromRequest<App> for JsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let deadline = Instant::now() + app.limits().request_timeout;
        refuse_query(request.uri().query())?;
        if Form::of(request.headers())? == Form::Lines {
            let found = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
            let detail = format!("Expected one sample as application/json, found {}.", found.unwrap_or_default());
            return Err(Problem::new(Code::UnsupportedMediaType, detail).with_hint(
                "Send one sample here; many samples go to the same path with /batch behind it, as lines or as a list.",
            ));
        }
        let terms = Terms { deadline, reuse: reuse(request.headers()) };
        Ok(Self { bytes: read_whole(request, app.limits().body, deadline).await?, terms })
    }
}

/// What `Cache-Control` says of the memory of verdicts: `no-store` (neither read nor written), `no-cache` or `max-age=0`
/// (not read, as browsers put it), else nothing.
pub(super) fn reuse(headers: &HeaderMap) -> Reuse {
    let given = headers.get_all(header::CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let said = given.flat_map(|value| value.split(',')).map(|part| part.trim().to_ascii_lowercase());
    said.fold(Reuse::Allowed, |reuse, directive| match (directive.as_str(), reuse) {
        ("no-store", _) | (_, Reuse::Never) => Reuse::Never,
        ("no-cache" | "max-age=0", _) => Reuse::Renewed,
        _ => reuse,
    })
}

/// How samples are written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// One JSON document.
    Json,
    /// One JSON object a line.
    Lines,
}

impl Form {
    /// The form of a body by its media type.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        let given = headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or_default());
        let essence = given.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        Self::named(&essence).ok_or_else(|| {
            let found = if essence.is_empty() {
                "no Content-Type".to_owned()
            } else {
                format!("Content-Type {}", printable(&essence))
            };
            let detail = format!("Expected Content-Type application/json, found {found}.");
            Problem::new(Code::UnsupportedMediaType, detail)
        })
    }

    /// The form that a media type, in lower case and without parameters, stands for.
    pub(super) fn named(essence: &str) -> Option<Self> {
        match essence {
            "application/json" => Some(Self::Json),
            "application/x-ndjson" | "application/ndjson" | "application/jsonl" | "application/x-jsonlines" => {
                Some(Self::Lines)
            }
            _ => (essence.starts_with("application/") && essence.ends_with("+json")).then_some(Self::Json),
        }
    }
}

/// Why a line of a stream holds no sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineError {
    /// It is longer than a body may be.
    TooLong,
    /// The stream broke off in it.
    BrokeOff,
}

/// Reads a body that must be there whole before `deadline`.
pub(super) async fn read_whole(request: Request, limit: usize, deadline: Instant) -> Result<Bytes, Problem> {
    let read = tokio::time::timeout_at(deadline.into(), read(request, limit));
    read.await.map_err(|_| {
        Problem::new(Code::DeadlineExceeded, "The body had not arrived whole before the request's deadline.")
    })?
}

/// The options in a query string as the JSON object that they would be in a body: `k=1,3&threshold=0.5` becomes
/// `{"k":[1,3],"threshold":0.5}`. Numbers and booleans lose their quotes, lists are cut at commas.
pub(super) fn query_as_json(query: &str) -> String {
    let value = |text: &str| match serde_json::from_str::<serde_json::Value>(text) {
        Ok(plain @ (serde_json::Value::Number(_) | serde_json::Value::Bool(_))) => plain,
        _ => serde_json::Value::from(text),
    };
    let mut json = String::from("{");
    for (name, text) in form_urlencoded::parse(query.as_bytes()) {
        let value = if name == "k" { text.split(',').map(|part| value(part.trim())).collect() } else { value(&text) };
        if json.len() > 1 {
            json.push(',');
        }
        // By hand, so that a name that is given twice stays in there twice.
        json.push_str(&serde_json::Value::from(name.as_ref()).to_string());
        json.push(':');
        json.push_str(&value.to_string());
    }
    json.push('}');
    json
}

/// Options stand in the body of these routes; one in the query would be passed over without a word.
pub(super) fn refuse_query(query: Option<&str>) -> Result<(), Problem> {
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

async fn read(request: Request, limit: usize) -> Result<Bytes, Problem> {
    let announced = content_length(request.headers());
    let unpacked = !request.headers().contains_key(header::CONTENT_ENCODING);
    let mut body = request.into_body();
    if unpacked && announced.is_some_and(|length| length > limit) {
        return Err(too_large(limit, "one body"));
    }
    let mut read: Vec<u8> = Vec::with_capacity(announced.unwrap_or_default().min(limit));
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(broken)?;
        let Ok(data) = frame.into_data() else { continue };
        if read.len() + data.len() > limit {
            return Err(too_large(limit, "one body"));
        }
        read.extend_from_slice(&data);
    }
    Ok(read.into())
}

fn content_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Something that is larger than `limit` bytes.
pub(super) fn too_large(limit: usize, what: &str) -> Problem {
    let limit = size(limit);
    Problem::new(Code::PayloadTooLarge, format!("Larger than {limit}, the limit for {what} (--body-limit)."))
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
    broke_off()
}

/// A body that ended too soon, or does not unpack.
pub(super) fn broke_off() -> Problem {
    Problem::new(Code::InvalidJson, "The body broke off or does not unpack.")
        .with_hint("Check Content-Length, and that Content-Encoding: gzip is only named for a body that is gzip.")
}
