//! A JSON schema in the words of the older `responseSchema`: a subset of OpenAPI 3.0's, in which unknown words are
//! refused.

use serde_json::{Map, Value, json};

/// The keys that keep name and value.
const KEPT: [&str; 4] = ["description", "enum", "format", "nullable"];

/// `schema` in OpenAPI's words. What those cannot say, such as `additionalProperties`, is left out.
///
/// Properties get an explicit order, that of the schema: without one they are generated in the order of the alphabet,
/// and a schema may want the reasons written before the decision.
pub(super) fn in_openapi_words(schema: &Value) -> Value {
    let mut words = Map::new();
    for (key, value) in schema.as_object().into_iter().flatten() {
        match (key.as_str(), value) {
            ("type", Value::String(kind)) => {
                words.insert(key.clone(), json!(kind.to_ascii_uppercase()));
            }
            // `["string", "null"]`
            ("type", Value::Array(kinds)) => {
                let kind = kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null");
                words.extend(kind.map(|kind| (key.clone(), json!(kind.to_ascii_uppercase()))));
                if kinds.iter().any(|kind| kind == "null") {
                    words.insert("nullable".to_owned(), json!(true));
                }
            }
            ("items", items) => {
                words.insert(key.clone(), in_openapi_words(items));
            }
            ("properties", Value::Object(properties)) => {
                let inner = properties.iter().map(|(name, schema)| (name.clone(), in_openapi_words(schema)));
                words.insert(key.clone(), Value::Object(inner.collect()));
                let order: Vec<&String> = properties.keys().collect();
                words.insert("propertyOrdering".to_owned(), json!(order));
            }
            ("required", Value::Array(names)) if !names.is_empty() => {
                words.insert(key.clone(), value.clone());
            }
            (name, _) if KEPT.contains(&name) => {
                words.insert(key.clone(), value.clone());
            }
            _ => {}
        }
    }
    Value::Object(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_keeps_its_meaning_and_its_order() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "T",
            "type": "object", "additionalProperties": false, "required": ["list"],
            "properties": {"list": {"type": "array", "minItems": 1, "items": {
                "type": "object", "additionalProperties": false, "required": ["why", "is_so", "kind"],
                "properties": {
                    "why": {"type": ["string", "null"], "description": "a reason"},
                    "is_so": {"type": "boolean"},
                    "kind": {"type": "string", "enum": ["a", "b"]},
                    "n": {"type": "integer", "format": "int32"},
                },
            }}},
        });
        let expected = json!({
            "type": "OBJECT", "required": ["list"],
            "properties": {"list": {"type": "ARRAY", "items": {
                "type": "OBJECT", "required": ["why", "is_so", "kind"],
                "properties": {
                    "why": {"type": "STRING", "nullable": true, "description": "a reason"},
                    "is_so": {"type": "BOOLEAN"},
                    "kind": {"type": "STRING", "enum": ["a", "b"]},
                    "n": {"type": "INTEGER", "format": "int32"},
                },
                "propertyOrdering": ["why", "is_so", "kind", "n"],
            }}},
            "propertyOrdering": ["list"],
        });
        // As text, since objects that differ in their order alone are equal.
        assert_eq!(in_openapi_words(&schema).to_string(), expected.to_string());
    }

    #[test]
    fn what_is_no_schema_says_nothing() {
        for schema in [json!({}), json!(true), Value::Null, json!({"type": 7, "properties": [], "required": []})] {
            assert_eq!(in_openapi_words(&schema), json!({}), "{schema}");
        }
        // A property may have the name of a keyword.
        let schema = json!({"properties": {"additionalProperties": {"type": "string"}, "type": {"type": "number"}}});
        let properties = &in_openapi_words(&schema)["properties"];
        assert_eq!(*properties, json!({"additionalProperties": {"type": "STRING"}, "type": {"type": "NUMBER"}}));
    }
}
