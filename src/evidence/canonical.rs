//! Canonical JSON, which the evidence log hashes: sorted keys, no blanks, whole numbers, as in
//! RFC 8785. [`canonical_json`] writes it, and [`parse_canonical`] rejects every other form.

use serde::Serialize;
use serde_json::Value;

pub fn canonical_json(value: &impl Serialize) -> String {
    // Of numbers, texts, lists and maps with names as keys: this cannot fail.
    write_canonical(&serde_json::to_value(value).unwrap_or_default())
}

/// [`canonical_json`] with a newline.
pub fn canonical_line(value: &impl Serialize) -> String {
    canonical_json(value) + "\n"
}

/// Sorts keys by UTF-16 units, as in RFC 8785.
fn write_canonical(value: &Value) -> String {
    match value {
        Value::Array(items) => format!(
            "[{}]",
            items
                .iter()
                .map(write_canonical)
                .collect::<Vec<_>>()
                .join(",")
        ),
        Value::Object(fields) => {
            // Not left to serde_json: a dependency may switch it to the order of insertion.
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by(|one, other| one.0.encode_utf16().cmp(other.0.encode_utf16()));
            let mut parts = Vec::new();
            for (key, item) in sorted {
                parts.push(format!(
                    "{}:{}",
                    Value::from(key.as_str()),
                    write_canonical(item)
                ));
            }
            format!("{{{}}}", parts.join(","))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

/// Reads what [`canonical`] writes of a value of this type. `None` for every other text, so that
/// two texts never stand for one value; also for a text with a field that this version does not
/// know.
pub fn parse_canonical<T: Serialize + serde::de::DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text)
        .ok()
        .filter(|value| canonical_json(value) == text)
}

#[cfg(test)]
mod tests {
    use super::{Value, canonical_json, parse_canonical};
    use serde_json::json;

    #[test]
    fn keys_are_sorted_and_escapes_are_minimal() {
        let value = json!({"b": [1, {"z": null, "a": true}], "a": "\"\\\n\u{7f}\u{1}é/"});
        assert_eq!(
            canonical_json(&value),
            "{\"a\":\"\\\"\\\\\\n\u{7f}\\u0001é/\",\"b\":[1,{\"a\":true,\"z\":null}]}"
        );
    }

    #[test]
    fn other_spellings_are_rejected() {
        assert!(parse_canonical::<Value>("{\"a\":1}").is_some());
        for other in [
            "{\"a\": 1}",
            "{\"a\":1,\"a\":1}",
            "{\"b\":1,\"a\":1}",
            "\"\\u0041\"",
            "1 ",
            "",
        ] {
            assert!(parse_canonical::<Value>(other).is_none(), "{other}");
        }
    }
}
