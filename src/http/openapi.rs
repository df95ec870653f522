//! What the spec says as a whole; each operation describes itself where it is handled.

use utoipa::OpenApi;

use super::problem::{Code, Fault, ProblemBody};

/// Title, tags and the schemas that no operation names.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "context-recall",
        description = "How much of what matters did the retriever find? Three measures of context recall, each a score \
            with a verdict for every unit. The same row of a data set may be posted to all three routes: fields of the \
            other routes and the usual further columns (`response`, `answer`, `metadata`, …) are accepted and ignored; \
            any other unknown field is refused by name. `null` counts as left out. Every error is an \
            `application/problem+json` with a `code` out of a closed list.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    tags(
        (name = "recall", description = "The three measures."),
        (name = "operations", description = "For operators and their tools.")
    ),
    components(schemas(ProblemBody, Code, Fault))
)]
pub(super) struct Spec;
