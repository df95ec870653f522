//! Every middleware, in one ordered list, each with its reason.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use futures_util::stream::poll_fn;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::decompression::RequestDecompressionLayer;
use tower_http::request_id::{MakeRequestId, PropagateRequestIdLayer, RequestId, SetRequestIdLayer};
use tracing::{Instrument as _, Span};

use super::problem::{Code, Problem, render};

const REQUEST_ID: header::HeaderName = header::HeaderName::from_static("x-request-id");

/// Wraps all routes. The last layer added sees a request first.
pub(super) fn wrap(routes: Router) -> Router {
    routes
        // Bodies sent gzipped reach the routes unpacked; limits count what comes out.
        .layer(RequestDecompressionLayer::new())
        // The layer above would answer an encoding that it does not know in its own words.
        .layer(from_fn(refuse_encoding))
        // A client that only reads once it has sent everything gets to read a refusal too.
        .layer(from_fn(drain_refused))
        // A panic costs one request; it is a problem like any other.
        .layer(CatchPanicLayer::custom(panicked))
        // Problems get their body here, where the request id is known and no handler can forget it.
        .layer(from_fn(render))
        // Logs the answer as it leaves.
        .layer(from_fn(access_log))
        .layer(PropagateRequestIdLayer::new(REQUEST_ID))
        .layer(SetRequestIdLayer::new(REQUEST_ID, NewRequestId))
        // A caller's id that would break a log line or fill it is replaced.
        .layer(from_fn(drop_unfit_request_id))
}

/// Names of content codings are case-insensitive, and `identity` is none; the layer that unpacks knows only `gzip`.
async fn refuse_encoding(mut request: Request, next: Next) -> Response {
    let named = request.headers().get_all(header::CONTENT_ENCODING).iter();
    let words =
        named.flat_map(|value| value.to_str().unwrap_or("?").split(',')).map(|word| word.trim().to_ascii_lowercase());
    let codings: Vec<String> = words.filter(|word| !word.is_empty() && word != "identity").collect();
    request.headers_mut().remove(header::CONTENT_ENCODING);
    match codings.as_slice() {
        [] => {}
        [only] if only == "gzip" => {
            request.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        _ => {
            return Problem::new(Code::UnsupportedMediaType, "The body's Content-Encoding is not known.")
                .with_hint("Send the body as it is, or with Content-Encoding: gzip.")
                .into_response();
        }
    }
    next.run(request).await
}

/// How much of a refused body is read and thrown away, and for how long, before the refusal is sent. Else the connection
/// would break under a client that is still sending, and it would never see why.
const DRAINED: usize = 64 * 1024 * 1024;
const DRAINING: Duration = Duration::from_secs(10);

async fn drain_refused(request: Request, next: Next) -> Response {
    // A client that asks first has sent nothing yet; reading would tell it to go on.
    if request.headers().contains_key(header::EXPECT) {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let unread = Arc::new(Mutex::new(body.into_data_stream()));
    let shared = Arc::clone(&unread);
    let body = Body::from_stream(poll_fn(move |context| poll_body(&shared, context)));
    let response = next.run(Request::from_parts(parts, body)).await;
    // Who was too slow is not waited for a second time.
    let too_slow = response.extensions().get::<Problem>().is_some_and(|problem| problem.code == Code::DeadlineExceeded);
    let is_refused = response.status().is_client_error() && !too_slow;
    if is_refused {
        let mut rest = poll_fn(move |context| poll_body(&unread, context));
        let drained = async {
            let mut left = DRAINED;
            while let Some(Ok(bytes)) = rest.next().await {
                match left.checked_sub(bytes.len()) {
                    Some(less) => left = less,
                    None => return,
                }
            }
        };
        // Whether it ended or not, the refusal is sent next.
        let _ = tokio::time::timeout(DRAINING, drained).await;
    }
    response
}

fn poll_body(body: &Mutex<BodyDataStream>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, axum::Error>>> {
    body.lock().unwrap_or_else(PoisonError::into_inner).poll_next_unpin(context)
}

/// The panic hook has logged where it happened. The panic's own text is dropped: slicing panics quote what they slice.
fn panicked(_: Box<dyn Any + Send>) -> Response {
    Problem::new(Code::Internal, "The service failed on this request.").into_response()
}

async fn access_log(request: Request, next: Next) -> Response {
    let id = request.extensions().get::<RequestId>().map(|id| id.header_value().clone());
    let id = id.as_ref().and_then(|id| id.to_str().ok()).unwrap_or_default();
    // On the level of errors, so that it is there whenever anything is logged: every line of a request carries its id.
    let span = tracing::error_span!("request", request_id = id);
    let mut entry = AccessEntry {
        began: Instant::now(),
        method: request.method().clone(),
        // The route's own pattern: a path that nobody serves may hold anything.
        route: request.extensions().get::<MatchedPath>().cloned(),
        span: span.clone(),
        answered: false,
    };
    let response = next.run(request).instrument(span).await;
    entry.write(response.status(), response.extensions().get::<Code>().copied());
    response
}

/// One line of the access log; written as "left" when the client goes before the answer.
struct AccessEntry {
    began: Instant,
    method: Method,
    route: Option<MatchedPath>,
    span: Span,
    answered: bool,
}

impl AccessEntry {
    fn write(&mut self, status: StatusCode, code: Option<Code>) {
        self.answered = true;
        let (method, route, duration_ms) = self.fields();
        let (status, code) = (status.as_u16(), code.map_or("-", Code::name));
        let _within = self.span.enter();
        if status >= 500 && status != 503 {
            tracing::warn!(%method, route, status, code, duration_ms, "answered");
        } else {
            tracing::info!(%method, route, status, code, duration_ms, "answered");
        }
    }

    fn fields(&self) -> (&Method, &str, f64) {
        // Whole microseconds: more digits would only be noise.
        let duration_ms = self.began.elapsed().as_micros() as f64 / 1000.0;
        (&self.method, self.route.as_ref().map_or("-", MatchedPath::as_str), duration_ms)
    }
}

impl Drop for AccessEntry {
    fn drop(&mut self) {
        if !self.answered {
            let (method, route, duration_ms) = self.fields();
            let _within = self.span.enter();
            tracing::info!(%method, route, duration_ms, "the client left before its answer");
        }
    }
}

/// Longest request id that is taken over from a caller.
const LONGEST_REQUEST_ID: usize = 128;

async fn drop_unfit_request_id(mut request: Request, next: Next) -> Response {
    let is_fit = |id: &HeaderValue| {
        let bytes = id.as_bytes();
        (1..=LONGEST_REQUEST_ID).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
    };
    if !request.headers().get(REQUEST_ID).is_none_or(is_fit) {
        request.headers_mut().remove(REQUEST_ID);
    }
    next.run(request).await
}

/// Sixteen random hex digits: short enough to read out, long enough not to meet again in a log.
#[derive(Clone, Copy)]
struct NewRequestId;

impl MakeRequestId for NewRequestId {
    fn make_request_id<B>(&mut self, _request: &axum::http::Request<B>) -> Option<RequestId> {
        let id = format!("{:016x}", fastrand::u64(..));
        HeaderValue::from_str(&id).ok().map(RequestId::new)
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;

    async fn panics() -> Response {
        panic!("a bug with a secret in it")
    }

    #[tokio::test]
    async fn a_panic_costs_one_request_and_tells_nothing() {
        let router = wrap(Router::new().route("/panics", get(panics)));
        let request = Request::get("/panics").header("x-request-id", "r-1").body(Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        insta::assert_snapshot!(std::str::from_utf8(&body).unwrap(), @r#"{"type":"about:blank","title":"Internal Server Error","status":500,"code":"internal","detail":"The service failed on this request.","hint":"This is a bug. Please report it with the request id; the service's log holds what happened under it.","errors":[],"retryable":false,"request_id":"r-1"}"#);
    }
}
