//! What operators and their tools ask: is it alive, is it ready, what is it.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::App;
use super::problem::{Code, Problem};
use crate::app::Limits;

/// The process lives.
#[derive(Serialize, ToSchema)]
pub struct Health {
    /// Always `ok`.
    #[schema(value_type = String, example = "ok")]
    pub status: &'static str,
}

/// Alive
///
/// The process lives and answers. Touches no judge; for liveness probes.
#[utoipa::path(get, path = "/healthz", tag = "operations", responses((status = 200, description = "Alive.", body = Health)))]
pub async fn healthz() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Whether traffic should come here.
#[derive(Serialize, ToSchema)]
pub struct Readiness {
    /// May traffic come here?
    pub status: ReadinessStatus,
    /// What is known of the judge. A backend that fails after it was once usable does not make the service unready: the
    /// two exact measures need none.
    pub judge: ReadinessJudge,
}

/// May traffic come here?
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadinessStatus {
    /// Traffic is welcome.
    Ready,
    /// The judge has not been found usable since the start: its key is refused, its model is not there, or its backend
    /// does not answer.
    Starting,
    /// The service is shutting down; what is in flight is finished.
    Draining,
}

/// What is known of the judge, from a call that costs nothing.
#[derive(Serialize, ToSchema)]
pub struct ReadinessJudge {
    /// Can it be used?
    pub usable: bool,
    /// The code that a sample would get now; null when it can.
    #[schema(required = true)]
    pub code: Option<Code>,
    /// Why not, in words; null when it can.
    #[schema(required = true)]
    pub detail: Option<String>,
}

/// Ready
///
/// For readiness probes and load balancers: 503 while the service shuts down, and at the start until the judge was found
/// usable once. The judge is looked up by a free call, at most once in five seconds.
#[utoipa::path(get, path = "/readyz", tag = "operations", responses(
    (status = 200, description = "Ready for traffic.", body = Readiness),
    (status = 503, description = "Shutting down, or the judge was never usable yet.", body = Readiness),
))]
pub async fn readyz(State(app): State<App>) -> (StatusCode, Json<Readiness>) {
    let standing = app.standing();
    let problem = Arc::clone(&standing).now().await.map_err(Problem::from).err();
    let (code, status) = if app.is_draining() {
        (StatusCode::SERVICE_UNAVAILABLE, ReadinessStatus::Draining)
    } else if problem.is_some() && !standing.was_usable() {
        (StatusCode::SERVICE_UNAVAILABLE, ReadinessStatus::Starting)
    } else {
        (StatusCode::OK, ReadinessStatus::Ready)
    };
    let judge = ReadinessJudge {
        usable: problem.is_none(),
        code: problem.as_ref().map(|problem| problem.code),
        detail: problem.map(|problem| problem.detail),
    };
    (code, Json(Readiness { status, judge }))
}

/// What this service is and what is in force. Holds no secret.
#[derive(Serialize, ToSchema)]
pub struct Info {
    /// Always `context-recall`.
    #[schema(value_type = String, example = "context-recall")]
    pub name: &'static str,
    /// Its version.
    #[schema(value_type = String)]
    pub version: &'static str,
    /// The judge in force.
    pub judge: InfoJudge,
    /// Where a model's verdicts are remembered (`--cache`): `off`, `memory`, `file` or `redis`.
    #[schema(value_type = String, example = "memory")]
    pub cache: &'static str,
    /// The limits in force.
    pub limits: InfoLimits,
}

/// The judge in force.
#[derive(Serialize, ToSchema)]
pub struct InfoJudge {
    /// `embedded`, or the provider asked.
    #[schema(value_type = String)]
    pub provider: &'static str,
    /// The model asked for, or the version of the embedded judge.
    pub model: String,
    /// Name and version of the question put to the model; null for the embedded judge.
    #[schema(required = true, value_type = Option<String>)]
    pub prompt: Option<&'static str>,
}

/// The limits in force.
#[derive(Serialize, ToSchema)]
pub struct InfoLimits {
    /// The largest body in bytes (`--body-limit`).
    pub body_bytes: usize,
    /// The longest that one request may take, in milliseconds (`--request-timeout`).
    pub request_timeout_ms: u64,
    /// The longest that one call to the judge's backend may take, in milliseconds (`--judge-timeout`).
    pub judge_timeout_ms: u64,
    /// Calls to the judge's backend in flight at once (`--judge-concurrency`).
    pub judge_concurrency: usize,
    /// Requests that may wait (`--queue`).
    pub queue: usize,
    /// The most of one stream's input that waits on disk, in bytes (`--stream-spool`).
    pub stream_spool_bytes: u64,
}

/// What this is
///
/// Version, the judge in force, the kind of memory and the limits in force.
#[utoipa::path(get, path = "/info", tag = "operations", responses((status = 200, description = "What is in force.", body = Info)))]
pub async fn info(State(app): State<App>) -> Json<Info> {
    let judge = app.panel().judge().info();
    Json(Info {
        name: env!("CARGO_PKG_NAME"),
        version: env!("CARGO_PKG_VERSION"),
        judge: InfoJudge { provider: judge.provider, model: judge.model.clone(), prompt: judge.prompt },
        cache: app.panel().memory().kind(),
        limits: app.limits().into(),
    })
}

impl From<Limits> for InfoLimits {
    fn from(limits: Limits) -> Self {
        let Limits { body, request_timeout, judge_timeout, judge_concurrency, queue, stream_spool } = limits;
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            body_bytes: body,
            request_timeout_ms: milliseconds(request_timeout),
            judge_timeout_ms: milliseconds(judge_timeout),
            judge_concurrency,
            queue,
            stream_spool_bytes: stream_spool,
        }
    }
}
