//! Small decoders over the tree. Each takes a node, complains into the diagnostics, and goes on, so that one run shows
//! every mistake of a file.
//!
//! Knows shapes (text, numbers, durations, lists, maps with known fields); the fields themselves belong to the callers.

use super::{Diagnostic, Diagnostics, Located, Mapping, Node, Span, Value};
use crate::time::Timestamp;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Collects complaints while decoding.
#[derive(Debug)]
pub struct Decoder<'a> {
    /// What was found so far.
    pub diagnostics: &'a mut Diagnostics,
}

impl Decoder<'_> {
    /// Complains.
    pub fn error(&mut self, id: &'static str, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.diagnostics.push(Diagnostic::error(id, span, message));
        let last = self.diagnostics.items.len() - 1;
        &mut self.diagnostics.items[last]
    }

    /// Complains that `node` is not what it should be.
    pub fn wrong_type(&mut self, node: &Node, wanted: &str) {
        let message = if node.is_null() {
            format!("there is no value here; {wanted} is wanted")
        } else {
            format!("{wanted} is wanted here, not {}", node.what())
        };
        self.error("wrong-type", node.span, message);
    }

    /// The entries of a map.
    pub fn entries<'n>(&mut self, node: &'n Node, wanted: &str) -> Option<&'n Mapping> {
        match &node.value {
            Value::Mapping(entries) => Some(entries),
            _ => {
                self.wrong_type(node, wanted);
                None
            }
        }
    }

    /// The fields of a map; call [`Fields::finish`] when all were taken.
    pub fn fields<'n>(&mut self, node: &'n Node, wanted: &str) -> Option<Fields<'n>> {
        let entries = self.entries(node, wanted)?;
        let mut fields: Vec<(&str, &'n Node, &'n Node, bool)> = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let Value::Scalar { text, .. } = &key.value else {
                self.error("wrong-type", key.span, "the name of a field is wanted here");
                continue;
            };
            if let Some((_, first, ..)) = fields.iter().find(|(name, ..)| name == text) {
                let first = first.span;
                let diagnostic = Diagnostic::error("duplicate-key", key.span, format!("`{text}` is written twice"))
                    .related(first, "first here")
                    .help("keep one of them; nothing is merged");
                self.diagnostics.push(diagnostic);
                continue;
            }
            fields.push((text, key, value, false));
        }
        Some(Fields { span: node.span, fields, known: Vec::new() })
    }

    /// Text; numbers and words are text too.
    pub fn text<'n>(&mut self, node: &'n Node, wanted: &str) -> Option<&'n str> {
        match &node.value {
            Value::Scalar { text, .. } if !node.is_null() => Some(text),
            _ => {
                self.wrong_type(node, wanted);
                None
            }
        }
    }

    /// Text with its place.
    pub fn located(&mut self, node: &Node, wanted: &str) -> Option<Located<String>> {
        self.text(node, wanted).map(|text| Located { value: text.to_owned(), span: node.span })
    }

    /// A list; a single value is a list of one. Nothing at all is an error.
    pub fn one_or_many<'n>(&mut self, node: &'n Node, wanted: &str) -> &'n [Node] {
        match &node.value {
            Value::Sequence(items) => items,
            Value::Scalar { .. } if !node.is_null() => std::slice::from_ref(node),
            _ => {
                self.wrong_type(node, wanted);
                &[]
            }
        }
    }

    /// A list of maps; a single map is a list of one.
    pub fn one_or_many_maps<'n>(&mut self, node: &'n Node, wanted: &str) -> &'n [Node] {
        match &node.value {
            Value::Sequence(items) => items,
            Value::Mapping(_) => std::slice::from_ref(node),
            Value::Scalar { .. } => {
                self.wrong_type(node, wanted);
                &[]
            }
        }
    }

    /// A list of texts.
    pub fn texts(&mut self, node: &Node, wanted: &str) -> Vec<Located<String>> {
        self.one_or_many(node, wanted).iter().filter_map(|item| self.located(item, wanted)).collect()
    }

    /// `yes`, `no`, `on`, `off`, `true`, `false`.
    pub fn boolean(&mut self, node: &Node) -> Option<bool> {
        let text = self.text(node, "yes or no")?;
        match text.to_ascii_lowercase().as_str() {
            "yes" | "true" | "on" => Some(true),
            "no" | "false" | "off" => Some(false),
            _ => {
                self.error("bad-value", node.span, format!("`{text}` is neither yes nor no"));
                None
            }
        }
    }

    /// A whole number within bounds.
    pub fn integer(&mut self, node: &Node, bounds: RangeInclusive<u64>, wanted: &str) -> Option<u64> {
        let text = self.text(node, wanted)?;
        match text.parse::<u64>() {
            Ok(number) if bounds.contains(&number) => Some(number),
            _ => {
                self.error("bad-value", node.span, format!("`{text}` is not {wanted}")).help =
                    Some(format!("a whole number from {} to {}", bounds.start(), bounds.end()));
                None
            }
        }
    }

    /// `10s`, `5m`, `1h`, `14d`, `1h30m`, `250ms`; a bare number is seconds.
    pub fn duration(&mut self, node: &Node) -> Option<Duration> {
        let text = self.text(node, "a duration")?;
        let duration = parse_duration(text);
        if duration.is_none() {
            self.error("bad-value", node.span, format!("`{text}` is not a duration")).help =
                Some("write `250ms`, `1.5s`, `30s`, `10m`, `1h`, `1h30m` or `14d`".into());
        }
        duration
    }

    /// RFC 3339, or a date.
    pub fn timestamp(&mut self, node: &Node) -> Option<Timestamp> {
        let text = self.text(node, "a moment")?;
        let moment = Timestamp::parse(text);
        if moment.is_none() {
            self.error("bad-value", node.span, format!("`{text}` is not a moment")).help =
                Some("write it as RFC 3339: `2026-12-01T01:00:00Z`".into());
        }
        moment
    }

    /// One of a fixed set of words.
    pub fn word<T: Copy>(&mut self, node: &Node, words: &[(&str, T)], wanted: &str) -> Option<T> {
        let text = self.text(node, wanted)?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*value);
        }
        let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let help = match nearest(text, all.iter().copied()) {
            Some(near) => format!("did you mean `{near}`? It is one of: {}", all.join(", ")),
            None => format!("it is one of: {}", all.join(", ")),
        };
        self.error("bad-value", node.span, format!("`{text}` is not {wanted}")).help = Some(help);
        None
    }
}

/// Reads a duration.
///
/// ```
/// use crawlgate::yaml::parse_duration;
/// use std::time::Duration;
/// assert_eq!(parse_duration("1h30m"), Some(Duration::from_secs(5400)));
/// assert_eq!(parse_duration("45"), Some(Duration::from_secs(45)));
/// assert_eq!(parse_duration("1.5s"), Some(Duration::from_millis(1500)));
/// assert_eq!(parse_duration("soon"), None);
/// ```
pub fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    let mut total = Duration::ZERO;
    let mut is_first = true;
    while !rest.is_empty() {
        let digits = rest.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(rest.len());
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let fraction = match rest.strip_prefix('.') {
            Some(after) => {
                let end = after.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(after.len());
                rest = &after[end..];
                Some(&after[..end])
            }
            None => None,
        };
        let letters = rest.find(|sign: char| !sign.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit = &rest[..letters];
        rest = rest[letters..].trim_start();
        let milliseconds: u64 = match unit {
            "ms" => 1,
            "s" => 1_000,
            "" if rest.is_empty() && is_first => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            "w" => 604_800_000,
            _ => return None,
        };
        let part = number.checked_mul(milliseconds)?.checked_add(of_unit(fraction, milliseconds)?)?;
        total = total.checked_add(Duration::from_millis(part))?;
        is_first = false;
    }
    // Moments are i64 seconds; nothing that a person means is longer than a century.
    (total <= Duration::from_secs(100 * 366 * 86_400)).then_some(total)
}

/// The milliseconds of a fraction of a unit; whole ones, because nothing here is told apart by less.
fn of_unit(fraction: Option<&str>, unit: u64) -> Option<u64> {
    let Some(digits) = fraction else { return Some(0) };
    if digits.is_empty() || digits.len() > 9 {
        return None;
    }
    let parts = digits.parse::<u64>().ok()?.checked_mul(unit)?;
    let whole = 10_u64.pow(u32::try_from(digits.len()).ok()?);
    (parts % whole == 0).then_some(parts / whole)
}

/// The known word that `written` may have been meant to be.
pub fn nearest<'k>(written: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let written = written.to_ascii_lowercase();
    known
        .into_iter()
        .map(|word| (strsim::damerau_levenshtein(&written, &word.to_ascii_lowercase()), word))
        .filter(|(distance, word)| *distance <= 1 + word.len() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// The fields of a map, each taken once; what is left at the end is unknown.
#[derive(Debug)]
pub struct Fields<'n> {
    span: Span,
    fields: Vec<(&'n str, &'n Node, &'n Node, bool)>,
    /// The names that were asked for, in that order.
    known: Vec<&'static str>,
}

impl<'n> Fields<'n> {
    /// The whole map.
    pub fn span(&self) -> Span {
        self.span
    }

    /// The value of a field, marked as known.
    pub fn take(&mut self, name: &'static str) -> Option<&'n Node> {
        self.take_with_key(name).map(|(_, value)| value)
    }

    /// The same with its key.
    pub fn take_with_key(&mut self, name: &'static str) -> Option<(&'n Node, &'n Node)> {
        if !self.known.contains(&name) {
            self.known.push(name);
        }
        self.take_foreign(name)
    }

    /// A field of another map that people write into this one. It is not listed among the fields of this map.
    pub fn take_foreign(&mut self, name: &str) -> Option<(&'n Node, &'n Node)> {
        let field = self.fields.iter_mut().find(|(written, ..)| *written == name)?;
        field.3 = true;
        Some((field.1, field.2))
    }

    /// Complains about the fields that were not taken.
    pub fn finish(self, decoder: &mut Decoder<'_>) {
        for (name, key, value, taken) in self.fields {
            if taken {
                continue;
            }
            let help = match nearest(name, self.known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                // `{ tag: noindex, noarchive }` splits at the comma: the second half is a key without a value.
                None if value.is_null() => {
                    "inside `{ }` a comma begins the next field: put quotes around the value, or write a list"
                        .to_owned()
                }
                None => format!("the fields here are: {}", self.known.join(", ")),
            };
            decoder.error("unknown-field", key.span, format!("there is no field `{name}` here")).help = Some(help);
        }
    }
}
