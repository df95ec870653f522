//! The names of a sample's fields, and the routes that read them.

/// A field of a sample, with the other names it is known by.
pub struct Column {
    /// The name that Ragas uses.
    pub name: &'static str,
    /// Names that other evaluators use.
    pub aliases: &'static [&'static str],
}

/// Every field that a sample may have on some route. On the routes that do not need it, it is accepted and ignored.
pub const COLUMNS: &[Column] = &[
    Column { name: "id", aliases: &[] },
    Column { name: "user_input", aliases: &["question", "input", "query"] },
    Column { name: "reference", aliases: &["ground_truth", "expected_output", "expected"] },
    Column { name: "reference_claims", aliases: &[] },
    Column { name: "retrieved_contexts", aliases: &["contexts", "retrieval_context"] },
    Column { name: "reference_contexts", aliases: &["expected_contexts"] },
    Column { name: "retrieved_context_ids", aliases: &["retrieved_ids"] },
    Column { name: "reference_context_ids", aliases: &["expected_ids"] },
];

/// Columns of Ragas and its kin that no route needs: accepted and ignored, so that a row can be sent as it is.
pub const IGNORED_COLUMNS: &[&str] = &[
    "response",
    "answer",
    "actual_output",
    "multi_responses",
    "rubrics",
    "persona_name",
    "query_style",
    "query_length",
    "synthesizer_name",
    "metadata",
];

/// What a route takes beside the sample's fields.
pub struct Route {
    /// Its path.
    pub path: &'static str,
    /// Its options.
    pub options: &'static [&'static str],
}

/// What a batch takes beside the options of its route.
pub const BATCH_OPTIONS: &[&str] = &["ordered"];

/// Every route that reads a sample.
pub const ROUTES: &[&Route] =
    &[&super::super::recall_llm::ROUTE, &super::super::recall_nonllm::ROUTE, &super::super::recall_id::ROUTE];

/// Every name that some column is known by, and every column that is passed over.
pub fn known_columns() -> impl Iterator<Item = &'static str> {
    let columns = COLUMNS.iter().flat_map(|column| std::iter::once(column.name).chain(column.aliases.iter().copied()));
    columns.chain(IGNORED_COLUMNS.iter().copied())
}
