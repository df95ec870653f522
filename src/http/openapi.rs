//! What the spec says as a whole; each operation describes itself where it is handled.

use serde_json::{Map, Value, json};
use utoipa::OpenApi;

use super::extract::known_columns;
use super::problem::{Code, Fault, ProblemBody};

/// The document as it is served: utoipa's, and in each request schema the names that are accepted beside the listed ones.
/// Other names are refused, which `additionalProperties: false` says; utoipa cannot say `patternProperties`.
pub(super) fn document(spec: &utoipa::openapi::OpenApi) -> serde_json::Result<Value> {
    let mut document = serde_json::to_value(spec)?;
    let schemas = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut);
    for schema in schemas.into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut) {
        if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
            continue;
        }
        let listed = |name: &&str| schema.get("properties").is_some_and(|fields| fields.get(name).is_some());
        let others: Vec<&str> = known_columns().filter(|name| !listed(name)).collect();
        let pattern = format!("^({})$", others.join("|"));
        let words = "Another name of a field, a field of another route, or a column that is passed over.";
        schema.insert("patternProperties".to_owned(), json!({ pattern: { "description": words } }));
    }
    Ok(document)
}

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
