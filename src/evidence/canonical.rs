//! [`canonical`] writes JSON in the one form that the evidence log hashes: sorted keys, no blanks,
//! whole numbers, as in RFC 8785. [`read_canonical`] refuses every other form.

use serde::Serialize;
use serde_json::Value;

/// The one spelling of a value.
pub fn canonical(value: &impl Serialize) -> String {
    // Of numbers, texts, lists and maps with names as keys: this cannot fail.
    spelled(&serde_json::to_value(value).unwrap_or_default())
}

/// The one spelling of a value, as a line.
pub fn canonical_line(value: &impl Serialize) -> String {
    canonical(value) + "\n"
}

/// The canonical JSON of a value: no blanks, and the keys of objects sorted by UTF-16 units, as in
/// RFC 8785.
fn spelled(value: &Value) -> String {
    match value {
        Value::Array(items) => format!(
            "[{}]",
            items.iter().map(spelled).collect::<Vec<_>>().join(",")
        ),
        Value::Object(fields) => {
            // Sorted here: a dependency may switch serde_json to the order of insertion.
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by(|one, other| one.0.encode_utf16().cmp(other.0.encode_utf16()));
            let mut parts = Vec::new();
            for (key, item) in sorted {
                parts.push(format!("{}:{}", Value::from(key.as_str()), spelled(item)));
            }
            format!("{{{}}}", parts.join(","))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

/// Reads what [`canonical`] writes of a value of this type. `None` for every other text, so that
/// two texts never stand for one value; also for a text with a field that this version does not
/// know.
pub fn read_canonical<T: Serialize + serde::de::DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text)
        .ok()
        .filter(|value| canonical(value) == text)
}

#[cfg(test)]
mod tests {
    use super::{Value, canonical, read_canonical};
    use serde_json::json;

    #[test]
    fn keys_are_sorted_and_escapes_are_minimal() {
        let value = json!({"b": [1, {"z": null, "a": true}], "a": "\"\\\n\u{7f}\u{1}é/"});
        assert_eq!(
            canonical(&value),
            "{\"a\":\"\\\"\\\\\\n\u{7f}\\u0001é/\",\"b\":[1,{\"a\":true,\"z\":null}]}"
        );
    }

    #[test]
    fn another_spelling_is_refused() {
        assert!(read_canonical::<Value>("{\"a\":1}").is_some());
        for other in [
            "{\"a\": 1}",
            "{\"a\":1,\"a\":1}",
            "{\"b\":1,\"a\":1}",
            "\"\\u0041\"",
            "1 ",
            "",
        ] {
            assert!(read_canonical::<Value>(other).is_none(), "{other}");
        }
    }
}
