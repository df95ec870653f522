//! The front desk: the only room that knows axum and utoipa.
//!
//! A request comes in through `layers`, its body is read by `body` and [`extract`], one handler per file scores it,
//! and every failure leaves through [`problem`].

mod answer;
pub mod batch;
mod body;
pub mod extract;
pub mod in_process;
mod invalid_json;
mod layers;
mod measure;
mod openapi;
pub mod ops;
pub mod problem;
pub mod recall_id;
pub mod recall_llm;
pub mod recall_nonllm;
mod work;

use std::future::{Future, IntoFuture as _};
use std::io;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use utoipa_swagger_ui::SwaggerUi;

pub use crate::app::App;

/// The route table: one list is the router and the spec.
fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(openapi::Spec::openapi())
        .routes(routes!(recall_llm::recall_llm))
        .routes(routes!(recall_llm::recall_llm_batch))
        .routes(routes!(recall_nonllm::recall_nonllm))
        .routes(routes!(recall_nonllm::recall_nonllm_batch))
        .routes(routes!(recall_id::recall_id))
        .routes(routes!(recall_id::recall_id_batch))
        .routes(routes!(ops::healthz))
        .routes(routes!(ops::readyz))
        .routes(routes!(ops::info))
}

/// The `OpenAPI` document of this build, as it is committed and served.
///
/// # Errors
///
/// Only when the document cannot be written as JSON.
pub fn spec() -> serde_json::Result<String> {
    let mut json = serde_json::to_string_pretty(&openapi::document(&routes().into_openapi())?)?;
    json.push('\n');
    Ok(json)
}

/// The whole service as one router.
pub fn router(app: App) -> Router {
    let (router, spec) = routes().split_for_parts();
    let router = router
        .with_state(app)
        .merge(
            SwaggerUi::new("/docs")
                .external_url_unchecked("/openapi.json", openapi::document(&spec).unwrap_or_default()),
        )
        // `render` makes problems of bare statuses, wherever they come from.
        .fallback(|| async { StatusCode::NOT_FOUND })
        .method_not_allowed_fallback(|| async { StatusCode::METHOD_NOT_ALLOWED });
    layers::wrap(router)
}

/// Serves `app` on `listener` until `leave` is done and what was in flight by then is answered, which takes at most
/// `grace`: connections that are still open then have nothing to wait for.
///
/// # Errors
///
/// When the listener fails.
pub async fn serve(
    listener: TcpListener,
    app: App,
    leave: impl Future<Output = ()> + Send + 'static,
    grace: Duration,
) -> io::Result<()> {
    let listener = listener.tap_io(|connection| {
        // Answers are small and should leave at once.
        if let Err(error) = connection.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY could not be set");
        }
    });
    let (leaving, has_left) = oneshot::channel();
    let leave = async move {
        leave.await;
        // The receiver waits in the select below for as long as this runs.
        let _ = leaving.send(());
    };
    let served = axum::serve(listener, router(app)).with_graceful_shutdown(leave);
    tokio::select! {
        done = served.into_future() => done,
        () = async { if has_left.await.is_ok() { tokio::time::sleep(grace).await } else { std::future::pending().await } } => Ok(()),
    }
}
