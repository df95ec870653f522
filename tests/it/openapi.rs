//! The spec is the service: fresh, complete, and every example in it is true.

use std::collections::BTreeSet;

use context_recall::http::extract::{COLUMNS, IGNORED_COLUMNS, ROUTES};
use serde_json::{Value, json};

use crate::support::backend::Backend;
use crate::support::{Service, project, read};

fn spec() -> Value {
    serde_json::from_str(&context_recall::http::spec().unwrap()).unwrap()
}

#[test]
fn the_committed_spec_is_fresh() {
    let fresh = context_recall::http::spec().unwrap();
    let path = project("openapi/openapi.json");
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(&path, &fresh).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == fresh, "openapi/openapi.json is stale; run the tests once with UPDATE_OPENAPI=1");
}

#[tokio::test]
async fn the_service_serves_its_spec_and_its_page() {
    let service = Service::embedded();
    assert_eq!(service.get("/openapi.json").await.ok(), spec());
    let page = service.get("/docs").await;
    assert_eq!((page.status.as_u16(), page.headers["location"].to_str().unwrap()), (303, "/docs/"));
    let page = service.get("/docs/").await;
    assert!(page.status.is_success() && page.text().contains("swagger-ui"));
    assert!(!page.text().contains("https://"), "the page loads nothing from elsewhere");
    let initializer = service.get("/docs/swagger-initializer.js").await;
    assert!(initializer.text().contains("/openapi.json"));
}

#[test]
fn every_operation_says_what_it_is() {
    let spec = spec();
    let mut operations = BTreeSet::new();
    for (path, methods) in spec["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            for field in ["summary", "description", "operationId"] {
                assert!(operation[field].as_str().is_some_and(|text| text.len() > 3), "{method} {path} has no {field}");
            }
            assert!(operation["responses"].get("200").is_some(), "{method} {path}");
            operations.insert(format!("{method} {path}"));
        }
    }
    let expected = [
        "get /healthz",
        "get /info",
        "get /readyz",
        "post /recall/id",
        "post /recall/id/batch",
        "post /recall/llm",
        "post /recall/llm/batch",
        "post /recall/nonllm",
        "post /recall/nonllm/batch",
    ];
    assert_eq!(operations, expected.map(str::to_owned).into());
}

/// Examples come in pairs: the request under a name, the answer under the same name.
#[tokio::test]
async fn every_example_is_what_the_service_answers() {
    let service = Service::embedded();
    let spec = spec();
    let mut run = 0;
    for (path, methods) in spec["paths"].as_object().unwrap() {
        let Some(operation) = methods.get("post") else { continue };
        let requests = operation["requestBody"]["content"]["application/json"]["examples"].as_object().unwrap();
        let answers = operation["responses"]["200"]["content"]["application/json"]["examples"].as_object().unwrap();
        assert!(!requests.is_empty());
        assert_eq!(requests.keys().collect::<Vec<_>>(), answers.keys().collect::<Vec<_>>());
        for (name, request) in requests {
            let mut answer = service.post(path, &request["value"]).await.ok();
            let mut expected = answers[name]["value"].clone();
            // What differs from run to run.
            for answer in [&mut answer, &mut expected] {
                for varying in ["/summary/duration_ms", "/results/1/error/request_id"] {
                    answer.pointer_mut(varying).map(Value::take);
                }
            }
            assert_eq!(answer, expected, "{path} {name}: {answer:#}");
            run += 1;
        }
    }
    assert_eq!(run, 9);
}

/// The schema is written by hand beside the code that reads; this holds the two together.
#[test]
fn the_schemas_name_the_fields_that_are_read() {
    let spec = spec();
    for route in ROUTES {
        let body = &spec["paths"][route.path]["post"]["requestBody"]["content"]["application/json"]["schema"];
        let name = body["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
        let schema = &spec["components"]["schemas"][name];
        assert_eq!(schema["additionalProperties"], false, "{name}");
        let fields: BTreeSet<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        let columns: BTreeSet<&str> = COLUMNS.iter().map(|column| column.name).collect();
        let options: BTreeSet<&str> = route.options.iter().copied().collect();
        assert!(options.is_subset(&fields), "{name} lacks an option");
        assert!(fields.iter().all(|field| columns.contains(field) || options.contains(field)), "{name}: {fields:?}");
    }
}

#[tokio::test]
async fn the_schemas_require_what_the_service_requires() {
    let service = Service::embedded();
    let spec = spec();
    for route in ROUTES {
        let body = &spec["paths"][route.path]["post"]["requestBody"]["content"]["application/json"]["schema"];
        let name = body["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
        let required = &spec["components"]["schemas"][name]["required"];
        let required: BTreeSet<String> =
            required.as_array().unwrap().iter().map(|name| format!("/{}", name.as_str().unwrap())).collect();
        let problem = service.post(route.path, &json!({})).await.problem(422, "invalid_input");
        let mut missed: BTreeSet<String> = problem["errors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|error| error["pointer"].as_str().unwrap().to_owned())
            .collect();
        // Required unless `reference_claims` is given, which a schema cannot say without making it hard to read.
        missed.remove("/reference");
        assert_eq!(missed, required, "{name}");
    }
}

#[test]
fn aliases_and_further_columns_are_told() {
    let text = read("openapi/openapi.json");
    for alias in COLUMNS.iter().flat_map(|column| column.aliases) {
        assert!(text.contains(&format!("`{alias}`")), "{alias} is in no description");
    }
    let spec: Value = serde_json::from_str(&text).unwrap();
    for name in ["RecallLlmRequest", "RecallNonLlmRequest", "RecallIdRequest"] {
        let patterns = spec["components"]["schemas"][name]["patternProperties"].as_object().unwrap();
        let pattern = patterns.keys().next().unwrap();
        let accepted: BTreeSet<&str> = pattern.trim_start_matches("^(").trim_end_matches(")$").split('|').collect();
        assert!(IGNORED_COLUMNS.iter().all(|column| accepted.contains(column)), "{name}: {pattern}");
    }
}

/// Two schemas of one name would overwrite each other without a word: every reference must lead to a schema that has
/// the fields of what is sent.
#[tokio::test]
async fn answers_have_the_fields_that_their_schemas_name() {
    let service = Service::embedded();
    let spec = spec();
    for (path, methods) in spec["paths"].as_object().unwrap() {
        let Some(operation) = methods.get("post") else { continue };
        let example = operation["requestBody"]["content"]["application/json"]["examples"]
            .as_object()
            .unwrap()
            .values()
            .next()
            .unwrap();
        let mut request = example["value"].clone();
        request["k"] = json!([1]);
        if path.starts_with("/recall/llm") {
            request["votes"] = json!(3);
        }
        let answer = service.post(path, &request).await.ok();
        let schema = &operation["responses"]["200"]["content"]["application/json"]["schema"];
        agree(&spec, schema, &answer, path);
    }
    let backend = Backend::saying("no").await;
    let sample = json!({ "user_input": "?", "reference": "A.", "retrieved_contexts": ["a"] });
    let problem = Service::asking(&backend.url(), &[]).post("/recall/llm", &sample).await;
    let problem = problem.problem(502, "judge_output_invalid");
    agree(&spec, &json!({ "$ref": "#/components/schemas/Problem" }), &problem, "problem");
}

fn agree(spec: &Value, schema: &Value, value: &Value, place: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        let schema =
            spec.pointer(name.trim_start_matches('#')).unwrap_or_else(|| panic!("{place}: {name} leads nowhere"));
        return agree(spec, schema, value, place);
    }
    if let Some(fields) = value.as_object() {
        if schema["additionalProperties"].is_object() {
            return; // a map: its names are no part of the contract
        }
        let Some(properties) = schema["properties"].as_object() else {
            let ways = schema["oneOf"].as_array().unwrap_or_else(|| panic!("{place}: {schema} describes no object"));
            // Of several kinds of object the one that has the most telling field.
            let name = |way: &Value| way["$ref"].as_str().unwrap_or_default().to_owned();
            let fits = |way: &&Value| match (fields.get("result"), fields.get("error")) {
                (Some(_), _) => name(way).contains("ScoredItem"),
                (_, Some(_)) => name(way).contains("FailedItem"),
                _ => way["type"] != "null",
            };
            let way = ways.iter().find(fits).unwrap_or_else(|| panic!("{place}: {ways:?}"));
            return agree(spec, way, value, place);
        };
        // A sample that no judge was asked about cost nothing.
        let has_cost = |name: &&String| !place.ends_with("/error") || *name != "usage";
        let named: BTreeSet<&String> = properties.keys().filter(has_cost).collect();
        let sent: BTreeSet<&String> = fields.keys().collect();
        assert_eq!(sent, named, "{place}");
        // These alone are left out when there is nothing to say.
        let may_be_absent = |name: &&str| match place {
            "problem" => *name == "usage",
            _ => ["recall_at", "agreement"].contains(name),
        };
        let required: BTreeSet<&str> =
            schema["required"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        let always: BTreeSet<&str> = fields.keys().map(String::as_str).filter(|name| !may_be_absent(name)).collect();
        assert_eq!(required, always, "{place}");
        for (name, value) in fields {
            agree(spec, &properties[name], value, &format!("{place}/{name}"));
        }
    }
    for value in value.as_array().into_iter().flatten() {
        agree(spec, &schema["items"], value, place);
    }
}
