//! Canonical JSON: sorted keys, no blanks, whole numbers, as in RFC 8785. The evidence log hashes
//! its entries in this form, because equal entries then have equal bytes. [`canonical_json`] writes
//! it, and [`parse_canonical`] rejects every other form.

use serde::Serialize;

pub fn canonical_json(value: &impl Serialize) -> String {
    // Of numbers, texts, lists and maps with names as keys: this cannot fail.
    let mut value = serde_json::to_value(value).unwrap_or_default();
    // A dependency may switch serde_json's maps to the order of insertion. All names are ASCII, where
    // the order of bytes is that of UTF-16, which RFC 8785 wants.
    value.sort_all_objects();
    value.to_string()
}

/// [`canonical_json`] with a newline.
pub fn canonical_line(value: &impl Serialize) -> String {
    canonical_json(value) + "\n"
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
    use super::{canonical_json, parse_canonical};
    use serde_json::{Value, json};

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
