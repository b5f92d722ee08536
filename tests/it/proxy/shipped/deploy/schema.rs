//! The part of JSON Schema that Kubernetes' own schemas use. `kubernetes-1.30.json` has those of
//! the kinds that we ship: the strict ones (no unknown fields) of the Python package
//! kubernetes-validate 1.37.0, descriptions left out.

use serde_json::Value;

/// What is wrong with an object, each finding with its place.
pub fn findings(schemas: &Value, object: &Value) -> Vec<String> {
    let kind = object["kind"].as_str().unwrap_or_default();
    let mut found = Vec::new();
    match schemas["kinds"][kind].as_str() {
        Some(name) => check(
            schemas,
            &schemas["definitions"][name],
            object,
            kind,
            &mut found,
        ),
        None => found.push(format!("there is no schema of `{kind}`")),
    }
    found
}

fn check(schemas: &Value, schema: &Value, value: &Value, place: &str, found: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        return check(schemas, &schemas["definitions"][name], value, place, found);
    }
    if let Some(options) = schema["oneOf"].as_array() {
        if options.iter().all(|option| !fits(&option["type"], value)) {
            found.push(format!("{place}: {value} is of another type"));
        }
        return;
    }
    if !schema["type"].is_null() && !fits(&schema["type"], value) {
        found.push(format!("{place}: {value} is not {}", schema["type"]));
        return;
    }
    if let Some(values) = schema["enum"].as_array()
        && !values.contains(value)
    {
        found.push(format!("{place}: {value} is none of {values:?}"));
    }
    for name in schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        if value.get(name).is_none() {
            found.push(format!("{place}: `{name}` is missing"));
        }
    }
    for (name, value) in value.as_object().into_iter().flatten() {
        let place = format!("{place}.{name}");
        match (
            schema["properties"].get(name),
            &schema["additionalProperties"],
        ) {
            (Some(schema), _) | (None, schema @ Value::Object(_)) => {
                check(schemas, schema, value, &place, found)
            }
            (None, Value::Bool(false)) => found.push(format!("{place}: there is no such field")),
            (None, _) => {}
        }
    }
    for (index, value) in value.as_array().into_iter().flatten().enumerate() {
        check(
            schemas,
            &schema["items"],
            value,
            &format!("{place}[{index}]"),
            found,
        );
    }
}

fn fits(kind: &Value, value: &Value) -> bool {
    match kind {
        Value::Array(kinds) => kinds.iter().any(|kind| fits(kind, value)),
        _ => match kind.as_str() {
            Some("string") => value.is_string(),
            Some("integer") => value.is_i64(),
            Some("number") => value.is_number(),
            Some("boolean") => value.is_boolean(),
            Some("array") => value.is_array(),
            Some("object") => value.is_object(),
            Some("null") => value.is_null(),
            _ => panic!("an unknown type: {kind}"),
        },
    }
}
