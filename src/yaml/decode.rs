//! [`NodeReader`] and [`MapFields`] decode the tree of a YAML file into Rust values. If a node is
//! wrong, they add an error to the [`Decoder`] and go on, so that one run shows every mistake of a
//! file.

use super::{
    Diagnostic, Diagnostics, Located, Mapping, Node, NodeValue, SourceFile, SourceSpan,
    YamlDocument, located_values,
};
use crate::time::Timestamp;
use std::cell::RefCell;
use std::ops::{Deref, RangeInclusive};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use strum::VariantNames;

/// Parses and decodes a file. Its relative paths begin at `directory`. `decode` gets the root of the
/// tree, which an empty file does not have. There is a value only if there was no error.
pub fn decode_file<T>(
    source: &SourceFile,
    directory: impl Into<PathBuf>,
    decode: impl FnOnce(&Decoder, Option<NodeReader<'_>>) -> Option<T>,
) -> (Option<T>, Diagnostics) {
    let mut diagnostics = Diagnostics::default();
    let document = YamlDocument::parse(source, &mut diagnostics);
    let decoder = Decoder {
        directory: directory.into(),
        diagnostics: RefCell::new(diagnostics),
    };
    let value = document.and_then(|document| {
        let root = document.root.as_ref();
        decode(&decoder, root.map(|root| decoder.reader(root)))
    });
    let mut diagnostics = decoder.diagnostics.into_inner();
    diagnostics.sort();
    diagnostics.name_defaults(source);
    let usable = !diagnostics.has_errors();
    (value.filter(|_| usable), diagnostics)
}

/// The state of decoding one file: the findings so far.
#[derive(Default)]
pub struct Decoder {
    /// The directory at which relative paths of the file begin. Empty for the current one.
    pub directory: PathBuf,
    /// The findings so far.
    pub diagnostics: RefCell<Diagnostics>,
}

/// A node to decode, and the decoder that collects its errors.
#[derive(Clone, Copy)]
pub struct NodeReader<'n> {
    /// Collects errors.
    pub decoder: &'n Decoder,
    node: &'n Node,
}

impl Deref for NodeReader<'_> {
    type Target = Node;

    fn deref(&self) -> &Node {
        self.node
    }
}

impl Decoder {
    /// A reader of a node.
    pub fn reader<'n>(&'n self, node: &'n Node) -> NodeReader<'n> {
        NodeReader {
            decoder: self,
            node,
        }
    }

    /// Adds a finding.
    pub fn push(&self, diagnostic: Diagnostic) {
        self.diagnostics.borrow_mut().push(diagnostic);
    }

    /// Adds an error.
    pub fn error(&self, id: &'static str, span: SourceSpan, message: impl Into<String>) {
        self.push(Diagnostic::error(id, span, message));
    }

    /// Adds an error, and says what to do.
    pub fn error_with_help(
        &self,
        id: &'static str,
        span: SourceSpan,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.push(Diagnostic::error(id, span, message).help(help));
    }

    /// Adds the error that something is repeated at `span`; `first` is the first occurrence.
    pub fn duplicate(
        &self,
        id: &'static str,
        [span, first]: [SourceSpan; 2],
        message: impl Into<String>,
        help: &str,
    ) {
        self.push(
            Diagnostic::error(id, span, message)
                .related(first, "first here")
                .help(help),
        );
    }

    /// Decodes the entries of a map with `read`. A key that is not a scalar, or is repeated, is an
    /// error and left out.
    fn decode_entries<T>(
        &self,
        span: SourceSpan,
        entries: &[(Node, Node)],
        read: impl FnOnce(&mut MapFields<'_>) -> T,
    ) -> T {
        let mut fields: Vec<MapField<'_>> = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let NodeValue::Scalar { text, .. } = &key.value else {
                self.error("wrong-type", key.span, "this must be the name of a field");
                continue;
            };
            if let Some(first) = fields.iter().find(|field| field.name == text) {
                self.duplicate(
                    "duplicate-key",
                    [key.span, first.key.span],
                    format!("\"{text}\" is written twice"),
                    "remove one of the two: they are not merged",
                );
                continue;
            }
            fields.push(MapField {
                name: text,
                key,
                value,
                is_known: false,
            });
        }
        let mut fields = MapFields {
            span,
            decoder: self,
            fields,
            known: Vec::new(),
        };
        let value = read(&mut fields);
        fields.report_unknown();
        value
    }
}

impl<'n> NodeReader<'n> {
    /// Adds an error about the node.
    pub fn error(&self, id: &'static str, message: impl Into<String>) {
        self.decoder.error(id, self.span, message);
    }

    /// Adds an error about the node, and says what to do.
    pub fn error_with_help(
        &self,
        id: &'static str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.decoder.error_with_help(id, self.span, message, help);
    }

    /// Adds the error that the node has the wrong type. Returns `None` for the caller to return.
    fn wrong_type_error<T>(self, expected: &str) -> Option<T> {
        let message = if self.is_null() {
            format!("the value is missing; it must be {expected}")
        } else {
            format!("this must be {expected}, not {}", self.kind_name())
        };
        self.error("wrong-type", message);
        None
    }

    /// The keys and values of a map; for any other node `None`, with an error.
    pub fn entries(
        self,
        expected: &str,
    ) -> Option<impl Iterator<Item = (NodeReader<'n>, NodeReader<'n>)>> {
        let decoder = self.decoder;
        let entries = self.mapping(expected)?.iter();
        Some(entries.map(|(key, value)| (decoder.reader(key), decoder.reader(value))))
    }

    fn mapping(self, expected: &str) -> Option<&'n Mapping> {
        match &self.node.value {
            NodeValue::Mapping(entries) => Some(entries),
            _ => self.wrong_type_error(expected),
        }
    }

    /// Decodes a map with `read`. Each field that `read` does not ask for is an error. `None` only
    /// for a node that is no map.
    pub fn decode_map<T>(
        self,
        expected: &str,
        read: impl FnOnce(&mut MapFields<'_>) -> T,
    ) -> Option<T> {
        Some(
            self.decoder
                .decode_entries(self.span, self.mapping(expected)?, read),
        )
    }

    /// Decodes a list of maps, or a single map. Items that are no maps, and those for which `read`
    /// returns `None`, are left out. `expected` describes the list and a map in messages.
    pub fn decode_maps<T>(
        self,
        expected: [&str; 2],
        mut read: impl FnMut(&mut MapFields<'_>) -> Option<T>,
    ) -> Vec<T> {
        let items = match &self.node.value {
            NodeValue::Sequence(items) => items,
            NodeValue::Mapping(_) => std::slice::from_ref(self.node),
            NodeValue::Scalar { .. } => self.wrong_type_error(expected[0]).unwrap_or_default(),
        };
        self.readers(items)
            .filter_map(|item| item.decode_map(expected[1], &mut read).flatten())
            .collect()
    }

    /// The text of a scalar, quoted or not. `None` with an error for lists, maps and null.
    pub fn text(self, expected: &str) -> Option<&'n str> {
        match &self.node.value {
            NodeValue::Scalar { text, .. } if !self.is_null() => Some(text),
            _ => self.wrong_type_error(expected),
        }
    }

    /// The text of a scalar with its span.
    pub fn located(self, expected: &str) -> Option<Located<String>> {
        self.text(expected).map(|text| Located {
            value: text.to_owned(),
            span: self.span,
        })
    }

    /// The items of a list; a single scalar or map is a list of one. Null is an error and has no
    /// items.
    pub fn one_or_many(self, expected: &str) -> impl Iterator<Item = NodeReader<'n>> {
        self.readers(match &self.node.value {
            NodeValue::Sequence(items) => items,
            _ if self.is_null() => self.wrong_type_error(expected).unwrap_or_default(),
            _ => std::slice::from_ref(self.node),
        })
    }

    fn readers(self, nodes: &'n [Node]) -> impl Iterator<Item = NodeReader<'n>> {
        nodes.iter().map(move |node| self.decoder.reader(node))
    }

    /// The texts of a list, or a single text. Items that are no texts are left out with an error.
    pub fn texts(self, expected: &str) -> Vec<Located<String>> {
        self.one_or_many(expected)
            .filter_map(|item| item.located(expected))
            .collect()
    }

    /// The texts of a list that `check` accepts. `check` adds an error for each of the others.
    pub fn texts_where(
        self,
        expected: &str,
        check: impl Fn(&Decoder, &Located<String>) -> bool,
    ) -> Vec<Located<String>> {
        let mut texts = self.texts(expected);
        texts.retain(|text| check(self.decoder, text));
        texts
    }

    /// The value that `read` parses from a text. If it fails, `mistake` is the error: its id, its
    /// message after the text, and what to do. `expected` describes the text in messages.
    pub fn parse_with<T>(
        self,
        expected: &str,
        read: impl FnOnce(&str) -> Option<T>,
        mistake: (&'static str, &str, &str),
    ) -> Option<T> {
        let text = self.text(expected)?;
        let value = read(text);
        if value.is_none() {
            self.error_with_help(mistake.0, format!("\"{text}\" {}", mistake.1), mistake.2);
        }
        value
    }

    /// [`parsed`](Reader::parsed) for each text of a list.
    pub fn parse_all_with<T>(
        self,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
        mistake: (&'static str, &str, &str),
    ) -> Vec<T> {
        self.one_or_many(expected)
            .filter_map(|item| item.parse_with(expected, &read, mistake))
            .collect()
    }

    /// `yes`, `y`, `true`, `on`, or `no`, `n`, `false`, `off`, without regard to case; `None` with
    /// an error for other text.
    pub fn boolean(self) -> Option<bool> {
        let text = self.text("yes or no")?;
        match text.to_ascii_lowercase().as_str() {
            "yes" | "y" | "true" | "on" => Some(true),
            "no" | "n" | "false" | "off" => Some(false),
            _ => {
                self.error("bad-value", format!("\"{text}\" is neither yes nor no"));
                None
            }
        }
    }

    /// A whole number within bounds. The bounds must fit into `T`.
    pub fn integer<T: TryFrom<u64>>(
        self,
        bounds: RangeInclusive<u64>,
        expected: &str,
    ) -> Option<T> {
        let help = format!(
            "write a whole number from {} to {}",
            bounds.start(),
            bounds.end()
        );
        let number = self.parse_with(
            expected,
            |text| text.parse().ok().filter(|number| bounds.contains(number)),
            ("bad-value", &format!("is not {expected}"), &help),
        )?;
        T::try_from(number).ok()
    }

    /// `10s`, `5m`, `1h`, `14d`, `1h30m`, `250ms`.
    pub fn duration(self) -> Option<Duration> {
        let text = self.text("a duration")?;
        parse_duration(text)
            .map_err(|help| {
                self.error_with_help("bad-value", format!("\"{text}\" is not a duration"), help)
            })
            .ok()
    }

    /// A duration within bounds; `message` and `help` are the error if it is outside.
    pub fn duration_within(
        self,
        bounds: RangeInclusive<Duration>,
        message: &str,
        help: Option<&str>,
    ) -> Option<Duration> {
        let duration = self.duration()?;
        let is_within = bounds.contains(&duration);
        if !is_within {
            self.decoder.push(Diagnostic {
                help: help.map(str::to_owned),
                ..Diagnostic::error("bad-value", self.span, message)
            });
        }
        is_within.then_some(duration)
    }

    /// A time as in RFC 3339, or a date.
    pub fn timestamp(self) -> Option<Timestamp> {
        self.parse_with(
            "a time",
            Timestamp::parse,
            (
                "bad-value",
                "is not a time",
                "write it with its zone, as in RFC 3339: \"2026-12-01T01:00:00Z\"",
            ),
        )
    }

    /// The index of the word in `words`, case-sensitive. The error for another word suggests the
    /// nearest.
    pub fn word_position(self, words: &[&str], expected: &str) -> Option<usize> {
        let text = self.text(expected)?;
        // YAML 1.1 readers take a bare `off` for false.
        let place = words
            .iter()
            .position(|word| *word == text || *word == "off" && text == "false");
        if place.is_none() {
            let near = nearest_word(text, words.iter().copied())
                .map(|near| format!("did you mean \"{near}\"? Possible values"));
            let help = format!(
                "{}: {}",
                near.as_deref().unwrap_or("possible values"),
                words.join(", ")
            );
            self.error_with_help("bad-value", format!("\"{text}\" is not {expected}"), help);
        }
        place
    }

    /// The value that belongs to the word in `words`.
    pub fn word<T: Copy>(self, words: &[(&str, T)], expected: &str) -> Option<T> {
        let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        self.word_position(&names, expected)
            .map(|place| words[place].1)
    }

    /// The variant with this name.
    pub fn variant<T: VariantNames + FromStr>(self, expected: &str) -> Option<T> {
        T::VARIANTS[self.word_position(T::VARIANTS, expected)?]
            .parse()
            .ok()
    }
}

/// Whether a text has one to `max_length` bytes, and only ASCII letters, digits and `extra`.
pub fn is_plain_word(text: &str, max_length: usize, extra: &str) -> bool {
    (1..=max_length).contains(&text.len())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || extra.contains(c))
}

/// What follows the scheme of a URL with http or https.
pub fn strip_http_scheme(url: &str) -> Option<&str> {
    url.strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"))
}

/// Parses a duration: the sum of numbers with units (`ms`, `s`, `m` or `min`, `h`, `d`, `w`). The
/// error says what to write. More than a century is an error.
pub fn parse_duration(text: &str) -> Result<Duration, &'static str> {
    parse_parts(text.trim()).ok_or("write a number with a unit, like 250ms, 30s, 10m, 1h30m or 14d")
}

/// The sum of the parts of a duration.
fn parse_parts(mut rest: &str) -> Option<Duration> {
    if rest.is_empty() {
        return None;
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let (number, after) = rest.split_at(
            rest.find(|c: char| !c.is_ascii_digit() && c != '.')
                .unwrap_or(rest.len()),
        );
        rest = after;
        let letters = rest
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(rest.len());
        let unit = &rest[..letters];
        rest = rest[letters..].trim_start();
        let seconds = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            "w" => 604_800.0,
            _ => return None,
        };
        // As the schema has it: digits on both sides of the point.
        if number.starts_with('.') || number.ends_with('.') {
            return None;
        }
        let part = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()?;
        total = total.checked_add(part)?;
    }
    (total <= Duration::from_secs(100 * 366 * 86_400)).then_some(total)
}

/// The known word that `written` was probably meant to be: the one with the smallest edit distance,
/// the first of equals, without regard to case. A word that begins with `written` has the distance
/// one. `None` if all distances exceed one plus a quarter of the word's length.
pub fn nearest_word<'k>(
    written: &str,
    known: impl IntoIterator<Item = &'k str>,
) -> Option<&'k str> {
    let written = written.to_ascii_lowercase();
    known
        .into_iter()
        .map(|word| {
            let distance = strsim::damerau_levenshtein(&written, &word.to_ascii_lowercase());
            if is_beginning(&written, word) {
                (distance.min(1), word)
            } else {
                (distance, word)
            }
        })
        .filter(|(distance, word)| *distance <= 1 + word.len() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// Whether a known word begins with what was written, which has four or more bytes, without regard
/// to case.
pub fn is_beginning(written: &str, known: &str) -> bool {
    let beginning = known.get(..written.len().max(4));
    beginning.is_some_and(|beginning| beginning.eq_ignore_ascii_case(written))
}

/// A field of a map, and whether the decoder asked for it.
struct MapField<'n> {
    name: &'n str,
    key: &'n Node,
    value: &'n Node,
    is_known: bool,
}

/// The fields of a map. Fields that the decoder never asks for are reported as unknown.
pub struct MapFields<'n> {
    /// The span of the map.
    pub span: SourceSpan,
    /// Collects errors.
    pub decoder: &'n Decoder,
    fields: Vec<MapField<'n>>,
    /// The names that were asked for, for messages.
    known: Vec<&'static str>,
}

impl<'n> MapFields<'n> {
    /// The value of a field.
    pub fn field(&mut self, name: &'static str) -> Option<NodeReader<'n>> {
        self.field_with_key(name).map(|(_, value)| value)
    }

    /// The key and the value of a field.
    pub fn field_with_key(
        &mut self,
        name: &'static str,
    ) -> Option<(NodeReader<'n>, NodeReader<'n>)> {
        if !self.known.contains(&name) {
            self.known.push(name);
        }
        self.foreign_field(name)
    }

    /// The key and the value of a field that belongs into another map but may be found here. Messages
    /// do not list it among the fields of this map.
    pub fn foreign_field(&mut self, name: &str) -> Option<(NodeReader<'n>, NodeReader<'n>)> {
        let field = self.fields.iter_mut().find(|field| field.name == name)?;
        field.is_known = true;
        Some((
            self.decoder.reader(field.key),
            self.decoder.reader(field.value),
        ))
    }

    /// The value of a required field. If it is missing, `message` and `help` are the error.
    pub fn required_field<'h>(
        &mut self,
        name: &'static str,
        message: &str,
        help: impl Into<Option<&'h str>>,
    ) -> Option<NodeReader<'n>> {
        let node = self.field(name);
        if node.is_none() {
            self.decoder.push(Diagnostic {
                help: help.into().map(str::to_owned),
                ..Diagnostic::error("missing-field", self.span, message)
            });
        }
        node
    }

    /// The value of a field that each record of a registry has. An error if it is missing.
    pub fn record_field(&mut self, name: &'static str) -> Option<NodeReader<'n>> {
        self.required_field(name, &format!("this record has no \"{name}\""), None)
    }

    /// The text of a field that each record of a registry has. An error if it is missing.
    pub fn required_text(&mut self, name: &'static str) -> Option<String> {
        self.record_field(name)?.text("text").map(str::to_owned)
    }

    /// The texts of a field that is a list; none if it is missing.
    pub fn text_list(&mut self, name: &'static str) -> Vec<String> {
        located_values(&self.get_or_default(name, |node| node.texts("a list of texts")))
    }

    /// The decoded value of a field.
    pub fn get<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(NodeReader<'n>) -> Option<T>,
    ) -> Option<T> {
        read(self.field(name)?)
    }

    /// The decoded value of a field, with its span.
    pub fn located<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(NodeReader<'n>) -> Option<T>,
    ) -> Option<Located<T>> {
        self.get(name, |node| {
            Some(Located {
                value: read(node)?,
                span: node.span,
            })
        })
    }

    /// The text of a field, with its span.
    pub fn text(&mut self, name: &'static str, expected: &str) -> Option<Located<String>> {
        self.get(name, |node| node.located(expected))
    }

    /// The decoded value of a field; the default if the field is missing.
    pub fn get_or_default<T: Default>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(NodeReader<'n>) -> T,
    ) -> T {
        self.get(name, |node| Some(read(node))).unwrap_or_default()
    }

    /// Decodes a field that is a map. If it is missing or no map, `read` gets an empty map, so that
    /// all its fields have their defaults.
    pub fn section<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        read: impl FnOnce(&mut MapFields<'_>) -> T,
    ) -> T {
        let entries = self.get(name, |node| node.mapping(expected));
        self.decoder
            .decode_entries(self.span, entries.map_or(&[], Vec::as_slice), read)
    }

    /// Stores the decoded value of a field in `into`, unless the field is missing or wrong.
    pub fn get_into<T>(
        &mut self,
        name: &'static str,
        into: &mut T,
        read: impl FnOnce(NodeReader<'n>) -> Option<T>,
    ) {
        if let Some(value) = self.get(name, read) {
            *into = value;
        }
    }

    /// The value that belongs to the word of a field.
    pub fn word<T: Copy>(
        &mut self,
        name: &'static str,
        words: &[(&str, T)],
        expected: &str,
    ) -> Option<T> {
        self.get(name, |node| node.word(words, expected))
    }

    /// The variant that a field names.
    pub fn variant<T: VariantNames + FromStr>(
        &mut self,
        name: &'static str,
        expected: &str,
    ) -> Option<T> {
        self.get(name, |node| node.variant(expected))
    }

    /// The whole number of a field, within bounds.
    pub fn integer<T: TryFrom<u64>>(
        &mut self,
        name: &'static str,
        bounds: RangeInclusive<u64>,
        expected: &str,
    ) -> Option<T> {
        self.get(name, |node| node.integer(bounds, expected))
    }

    /// Whether the map has no other field than this, apart from those reported as unknown.
    pub fn has_only(&self, name: &str) -> bool {
        self.fields.iter().all(|field| field.name == name)
    }

    /// Adds an error for each field that was not asked for, and removes it, so that a second call
    /// adds none. Called early by decoders whose errors about the whole map should come last.
    pub fn report_unknown(&mut self) {
        for field in self.fields.extract_if(.., |field| !field.is_known) {
            let name = field.name;
            let help = match nearest_word(name, self.known.iter().copied()) {
                Some(near) => format!("did you mean \"{near}\"?"),
                // `{ tag: noindex, noarchive }` splits at the comma: the second half is a key
                // without a value.
                None if field.value.is_null() => {
                    "inside \"{ }\" a comma begins the next field. Put quotes around the value, \
                     or write a list"
                        .to_owned()
                }
                None => format!("possible fields: {}", self.known.join(", ")),
            };
            self.decoder.error_with_help(
                "unknown-field",
                field.key.span,
                format!("there is no field \"{name}\" here"),
                help,
            );
        }
    }
}
