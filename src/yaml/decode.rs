//! [`Decoder`] and [`Fields`] decode the tree of a YAML file. They read a node, add an error where
//! the node is wrong, and go on, so that one run shows every mistake of a file.

use super::{Diagnostic, Diagnostics, Document, Located, Mapping, Node, Source, Span, Value};
use crate::time::Timestamp;
use std::cell::RefCell;
use std::ops::{Deref, RangeInclusive};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use strum::VariantNames;

/// Reads a file whose relative paths begin at `directory`. `decode` gets the root of its tree, which
/// an empty file does not have. There is a value only when no error was found; warnings leave it
/// usable.
pub fn read<T>(
    source: &Source,
    directory: impl Into<PathBuf>,
    decode: impl FnOnce(&Decoder, Option<Reader<'_>>) -> Option<T>,
) -> (Option<T>, Diagnostics) {
    let mut diagnostics = Diagnostics::default();
    let document = Document::parse(source, &mut diagnostics);
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
    let usable = !diagnostics.has_errors();
    (value.filter(|_| usable), diagnostics)
}

/// Collects errors while decoding.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The directory at which relative paths of the file begin. Empty: the current one.
    pub directory: PathBuf,
    /// What was found so far.
    pub diagnostics: RefCell<Diagnostics>,
}

/// A node to be decoded, and the decoder that collects its errors.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'n> {
    /// Collects errors.
    pub decoder: &'n Decoder,
    node: &'n Node,
}

impl Deref for Reader<'_> {
    type Target = Node;

    fn deref(&self) -> &Node {
        self.node
    }
}

impl Decoder {
    /// A node to be decoded.
    pub fn reader<'n>(&'n self, node: &'n Node) -> Reader<'n> {
        Reader {
            decoder: self,
            node,
        }
    }

    /// Adds a finding.
    pub fn push(&self, diagnostic: Diagnostic) {
        self.diagnostics.borrow_mut().push(diagnostic);
    }

    /// Adds an error.
    pub fn error(&self, id: &'static str, span: Span, message: impl Into<String>) {
        self.push(Diagnostic::error(id, span, message));
    }

    /// Adds an error, and says what to do.
    pub fn error_with_help(
        &self,
        id: &'static str,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.push(Diagnostic::error(id, span, message).help(help));
    }

    fn refuse(&self, id: &'static str, span: Span, message: &str, help: Option<&str>) {
        let help = help.map(str::to_owned);
        self.push(Diagnostic {
            help,
            ..Diagnostic::error(id, span, message)
        });
    }

    /// Adds the error that something is written a second time, at `span`; `first` is the first
    /// place.
    pub fn duplicate(
        &self,
        id: &'static str,
        [span, first]: [Span; 2],
        message: impl Into<String>,
        help: &str,
    ) {
        self.push(
            Diagnostic::error(id, span, message)
                .related(first, "first here")
                .help(help),
        );
    }

    /// Decodes the entries of a map with `read`. A key that is not a scalar, or is written twice,
    /// is an error and left out (of two the second).
    fn read<T>(
        &self,
        span: Span,
        entries: &[(Node, Node)],
        read: impl FnOnce(&mut Fields<'_>) -> T,
    ) -> T {
        let mut fields: Vec<(&str, &Node, &Node, bool)> = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let Value::Scalar { text, .. } = &key.value else {
                self.error("wrong-type", key.span, "the name of a field is wanted here");
                continue;
            };
            if let Some((_, first, ..)) = fields.iter().find(|(name, ..)| name == text) {
                self.duplicate(
                    "duplicate-key",
                    [key.span, first.span],
                    format!("`{text}` is written twice"),
                    "keep one of them; nothing is merged",
                );
                continue;
            }
            fields.push((text, key, value, false));
        }
        let mut fields = Fields {
            span,
            decoder: self,
            fields,
            known: Vec::new(),
        };
        let value = read(&mut fields);
        fields.finish();
        value
    }
}

impl<'n> Reader<'n> {
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

    /// Adds the error that the node is not what is `wanted`. Always returns `None`, for the caller to
    /// return.
    fn wrong_type<T>(self, wanted: &str) -> Option<T> {
        let message = if self.is_null() {
            format!("there is no value here; {wanted} is wanted")
        } else {
            format!("{wanted} is wanted here, not {}", self.what())
        };
        self.error("wrong-type", message);
        None
    }

    /// The entries of a map, keys and values. For any other node `None` with an error, which names
    /// what is `wanted`.
    pub fn entries(self, wanted: &str) -> Option<impl Iterator<Item = (Reader<'n>, Reader<'n>)>> {
        let decoder = self.decoder;
        let entries = self.mapping(wanted)?.iter();
        Some(entries.map(|(key, value)| (decoder.reader(key), decoder.reader(value))))
    }

    fn mapping(self, wanted: &str) -> Option<&'n Mapping> {
        match &self.node.value {
            Value::Mapping(entries) => Some(entries),
            _ => self.wrong_type(wanted),
        }
    }

    /// Decodes a map: `read` takes its fields, and an error is added for each that it does not
    /// take. `None` only for a node that is no map.
    pub fn map<T>(self, wanted: &str, read: impl FnOnce(&mut Fields<'_>) -> T) -> Option<T> {
        let entries = self.mapping(wanted)?;
        Some(self.decoder.read(self.span, entries, read))
    }

    /// Decodes a list of maps, or a single one. Items for which `read` returns `None`, and items
    /// that are no maps, are left out. `wanted` describes the list and each map in messages.
    pub fn maps<T>(
        self,
        wanted: [&str; 2],
        mut read: impl FnMut(&mut Fields<'_>) -> Option<T>,
    ) -> Vec<T> {
        let items = match &self.node.value {
            Value::Sequence(items) => items,
            Value::Mapping(_) => std::slice::from_ref(self.node),
            Value::Scalar { .. } => self.wrong_type(wanted[0]).unwrap_or_default(),
        };
        self.readers(items)
            .filter_map(|item| item.map(wanted[1], &mut read).flatten())
            .collect()
    }

    /// The text of a scalar, quoted or not; numbers and words are text too. `None` with an error
    /// for lists, maps and where nothing is written.
    pub fn text(self, wanted: &str) -> Option<&'n str> {
        match &self.node.value {
            Value::Scalar { text, .. } if !self.is_null() => Some(text),
            _ => self.wrong_type(wanted),
        }
    }

    /// Text with its place.
    pub fn located(self, wanted: &str) -> Option<Located<String>> {
        self.text(wanted).map(|text| Located {
            value: text.to_owned(),
            span: self.span,
        })
    }

    /// The items of a list; a single scalar is a list of one. A map, and a place where nothing is
    /// written, is an error and gives none. An empty list is none.
    pub fn one_or_many(self, wanted: &str) -> impl Iterator<Item = Reader<'n>> {
        self.readers(match &self.node.value {
            Value::Sequence(items) => items,
            Value::Scalar { .. } if !self.is_null() => std::slice::from_ref(self.node),
            _ => self.wrong_type(wanted).unwrap_or_default(),
        })
    }

    fn readers(self, nodes: &'n [Node]) -> impl Iterator<Item = Reader<'n>> {
        nodes.iter().map(move |node| self.decoder.reader(node))
    }

    /// The texts of a list, or a single text. Items that are no texts are left out with an error.
    pub fn texts(self, wanted: &str) -> Vec<Located<String>> {
        self.one_or_many(wanted)
            .filter_map(|item| item.located(wanted))
            .collect()
    }

    /// Those of a list of texts that `check` accepts; it adds an error for the others.
    pub fn checked(
        self,
        wanted: &str,
        check: impl Fn(&Decoder, &Located<String>) -> bool,
    ) -> Vec<Located<String>> {
        let mut texts = self.texts(wanted);
        texts.retain(|text| check(self.decoder, text));
        texts
    }

    /// The value that `read` makes of a text. Where it makes none, `mistake` is the error: its id,
    /// the rest of its message after the text, and what to do. `wanted` is for the error about a
    /// node that is no text.
    pub fn parsed<T>(
        self,
        wanted: &str,
        read: impl FnOnce(&str) -> Option<T>,
        mistake: (&'static str, &str, &str),
    ) -> Option<T> {
        let text = self.text(wanted)?;
        let value = read(text);
        if value.is_none() {
            self.error_with_help(mistake.0, format!("`{text}` {}", mistake.1), mistake.2);
        }
        value
    }

    /// [`parsed`](Reader::parsed) for each text of a list.
    pub fn all_parsed<T>(
        self,
        wanted: &str,
        read: impl Fn(&str) -> Option<T>,
        mistake: (&'static str, &str, &str),
    ) -> Vec<T> {
        self.one_or_many(wanted)
            .filter_map(|item| item.parsed(wanted, &read, mistake))
            .collect()
    }

    /// `yes`, `true`, `on`, or `no`, `false`, `off`, without regard to case; `None` with an error
    /// for other text.
    pub fn boolean(self) -> Option<bool> {
        let text = self.text("yes or no")?;
        match text.to_ascii_lowercase().as_str() {
            "yes" | "true" | "on" => Some(true),
            "no" | "false" | "off" => Some(false),
            _ => {
                self.error("bad-value", format!("`{text}` is neither yes nor no"));
                None
            }
        }
    }

    /// A whole number within bounds; `None` with an error for other text. A number that does not
    /// fit into `T` is `None` without one, so the bounds must fit.
    pub fn integer<T: TryFrom<u64>>(self, bounds: RangeInclusive<u64>, wanted: &str) -> Option<T> {
        let help = format!("a whole number from {} to {}", bounds.start(), bounds.end());
        let number = self.parsed(
            wanted,
            |text| text.parse().ok().filter(|number| bounds.contains(number)),
            ("bad-value", &format!("is not {wanted}"), &help),
        )?;
        T::try_from(number).ok()
    }

    /// `10s`, `5m`, `1h`, `14d`, `1h30m`, `250ms`; a bare number is seconds.
    pub fn duration(self) -> Option<Duration> {
        self.parsed(
            "a duration",
            parse_duration,
            (
                "bad-value",
                "is not a duration",
                "write `250ms`, `1.5s`, `30s`, `10m`, `1h`, `1h30m` or `14d`",
            ),
        )
    }

    /// A duration within bounds. Otherwise `message` is the error, and `help` says what to do.
    pub fn duration_within(
        self,
        bounds: RangeInclusive<Duration>,
        message: &str,
        help: Option<&str>,
    ) -> Option<Duration> {
        let duration = self.duration()?;
        let is_within = bounds.contains(&duration);
        if !is_within {
            self.decoder.refuse("bad-value", self.span, message, help);
        }
        is_within.then_some(duration)
    }

    /// RFC 3339, or a date.
    pub fn timestamp(self) -> Option<Timestamp> {
        self.parsed(
            "a moment",
            Timestamp::parse,
            (
                "bad-value",
                "is not a moment",
                "write it as RFC 3339: `2026-12-01T01:00:00Z`",
            ),
        )
    }

    /// The place of a word in a fixed set of words, which is compared with regard to case. `None`
    /// with an error for another word; its help names the nearest.
    pub fn one_of(self, words: &[&str], wanted: &str) -> Option<usize> {
        let text = self.text(wanted)?;
        let place = words.iter().position(|word| *word == text);
        if place.is_none() {
            let near = nearest(text, words.iter().copied())
                .map(|near| format!("did you mean `{near}`? It"));
            let help = format!(
                "{} is one of: {}",
                near.as_deref().unwrap_or("it"),
                words.join(", ")
            );
            self.error_with_help("bad-value", format!("`{text}` is not {wanted}"), help);
        }
        place
    }

    /// The value of one of these words.
    pub fn word<T: Copy>(self, words: &[(&str, T)], wanted: &str) -> Option<T> {
        let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        self.one_of(&names, wanted).map(|place| words[place].1)
    }

    /// The name of a variant.
    pub fn variant<T: VariantNames + FromStr>(self, wanted: &str) -> Option<T> {
        T::VARIANTS[self.one_of(T::VARIANTS, wanted)?].parse().ok()
    }
}

/// Whether a text has from one to `longest` bytes, and only letters and digits of ASCII and `signs`.
pub fn is_word(text: &str, longest: usize, signs: &str) -> bool {
    (1..=longest).contains(&text.len())
        && text
            .chars()
            .all(|sign| sign.is_ascii_alphanumeric() || signs.contains(sign))
}

/// Reads a duration: numbers with units (`ms`, `s`, `m` or `min`, `h`, `d`, `w`), which are added
/// up, or a single number of seconds. `None` for other text, parts of a millisecond, and more than
/// a century.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let (number, after) = rest.split_at(
            rest.find(|sign: char| !sign.is_ascii_digit() && sign != '.')
                .unwrap_or(rest.len()),
        );
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        rest = after;
        let letters = rest
            .find(|sign: char| !sign.is_ascii_alphabetic())
            .unwrap_or(rest.len());
        let unit = &rest[..letters];
        rest = rest[letters..].trim_start();
        let milliseconds: u64 = match unit {
            "ms" => 1,
            "s" => 1_000,
            "" if number == text => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            "w" => 604_800_000,
            _ => return None,
        };
        let part = whole
            .parse::<u64>()
            .ok()?
            .checked_mul(milliseconds)?
            .checked_add(of_unit(fraction, milliseconds)?)?;
        total = total.checked_add(Duration::from_millis(part))?;
    }
    // Moments are i64 seconds; nothing that a person means is longer than a century.
    (total <= Duration::from_secs(100 * 366 * 86_400)).then_some(total)
}

/// The milliseconds of a fraction of a unit: `digits` stand behind the point, `unit` is the unit in
/// milliseconds. `None` where they are not whole, and for more than nine digits.
fn of_unit(digits: &str, unit: u64) -> Option<u64> {
    if digits.len() > 9 {
        return None;
    }
    let parts = digits.parse::<u64>().ok()?.checked_mul(unit)?;
    let whole = 10_u64.pow(u32::try_from(digits.len()).ok()?);
    (parts % whole == 0).then_some(parts / whole)
}

/// The known word that `written` may have been meant to be: the one with the fewest changes, the
/// first of equals. `None` where all need more changes than one plus a quarter of their length.
/// Case does not matter.
pub fn nearest<'k>(written: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let written = written.to_ascii_lowercase();
    known
        .into_iter()
        .map(|word| {
            (
                strsim::damerau_levenshtein(&written, &word.to_ascii_lowercase()),
                word,
            )
        })
        .filter(|(distance, word)| *distance <= 1 + word.len() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// The fields of a map, each taken once; what is left at the end is unknown.
#[derive(Debug)]
pub struct Fields<'n> {
    /// The whole map.
    pub span: Span,
    /// Collects errors.
    pub decoder: &'n Decoder,
    fields: Vec<(&'n str, &'n Node, &'n Node, bool)>,
    /// The names that were asked for, in that order.
    known: Vec<&'static str>,
}

impl<'n> Fields<'n> {
    /// The value of a field, marked as known and taken. It may be taken again.
    pub fn take(&mut self, name: &'static str) -> Option<Reader<'n>> {
        self.take_with_key(name).map(|(_, value)| value)
    }

    /// The key and the value of a field, marked as known.
    pub fn take_with_key(&mut self, name: &'static str) -> Option<(Reader<'n>, Reader<'n>)> {
        if !self.known.contains(&name) {
            self.known.push(name);
        }
        self.take_foreign(name)
    }

    /// Takes a field of another map that people write into this one. Unlike the others it is not
    /// listed in messages among the fields of this map.
    pub fn take_foreign(&mut self, name: &str) -> Option<(Reader<'n>, Reader<'n>)> {
        let field = self
            .fields
            .iter_mut()
            .find(|(written, ..)| *written == name)?;
        field.3 = true;
        Some((self.decoder.reader(field.1), self.decoder.reader(field.2)))
    }

    /// The value of a field that has to be there. Where it is missing, adds an error about the
    /// whole map, with `message` and what to do.
    pub fn required<'h>(
        &mut self,
        name: &'static str,
        message: &str,
        help: impl Into<Option<&'h str>>,
    ) -> Option<Reader<'n>> {
        let node = self.take(name);
        if node.is_none() {
            self.decoder
                .refuse("missing-field", self.span, message, help.into());
        }
        node
    }

    /// The value of a field, as `read` reads it.
    pub fn get<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Reader<'n>) -> Option<T>,
    ) -> Option<T> {
        read(self.take(name)?)
    }

    /// [`get`](Fields::get), with the place of the value.
    pub fn located<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Reader<'n>) -> Option<T>,
    ) -> Option<Located<T>> {
        self.get(name, |node| {
            Some(Located {
                value: read(node)?,
                span: node.span,
            })
        })
    }

    /// A field with a text.
    pub fn text(&mut self, name: &'static str, wanted: &str) -> Option<Located<String>> {
        self.get(name, |node| node.located(wanted))
    }

    /// The value of a field, as `read` reads it; the default where the field is missing.
    pub fn get_or_default<T: Default>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Reader<'n>) -> T,
    ) -> T {
        self.get(name, |node| Some(read(node))).unwrap_or_default()
    }

    /// A map whose fields `read` takes. Where it is left out or is no map, `read` finds no fields,
    /// so that all have their defaults.
    pub fn section<T>(
        &mut self,
        name: &'static str,
        wanted: &str,
        read: impl FnOnce(&mut Fields<'_>) -> T,
    ) -> T {
        let entries = self.get(name, |node| node.mapping(wanted));
        self.decoder
            .read(self.span, entries.map_or(&[], Vec::as_slice), read)
    }

    /// Puts the value of a field into `into`. Where the field is missing or wrong, that keeps its
    /// value.
    pub fn set<T>(
        &mut self,
        name: &'static str,
        into: &mut T,
        read: impl FnOnce(Reader<'n>) -> Option<T>,
    ) {
        if let Some(value) = self.get(name, read) {
            *into = value;
        }
    }

    /// A field with one of a fixed set of words.
    pub fn word<T: Copy>(
        &mut self,
        name: &'static str,
        words: &[(&str, T)],
        wanted: &str,
    ) -> Option<T> {
        self.get(name, |node| node.word(words, wanted))
    }

    /// A field with the name of a variant.
    pub fn variant<T: VariantNames + FromStr>(
        &mut self,
        name: &'static str,
        wanted: &str,
    ) -> Option<T> {
        self.get(name, |node| node.variant(wanted))
    }

    /// A field with a whole number within bounds.
    pub fn integer<T: TryFrom<u64>>(
        &mut self,
        name: &'static str,
        bounds: RangeInclusive<u64>,
        wanted: &str,
    ) -> Option<T> {
        self.get(name, |node| node.integer(bounds, wanted))
    }

    /// Whether the map has no other field than this. Fields for which `finish` added an error do
    /// not count.
    pub fn has_only(&self, name: &str) -> bool {
        self.fields.iter().all(|(written, ..)| *written == name)
    }

    /// Adds errors for the fields that were not taken, and forgets these fields, so that a second
    /// call adds none. A decoder calls it early to have its errors about the whole map come after
    /// these.
    pub fn finish(&mut self) {
        for (name, key, value, _) in self.fields.extract_if(.., |(.., taken)| !*taken) {
            let help = match nearest(name, self.known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                // `{ tag: noindex, noarchive }` splits at the comma: the second half is a key
                // without a value.
                None if value.is_null() => {
                    "inside `{ }` a comma begins the next field: put quotes around the value, or write a list"
                        .to_owned()
                }
                None => format!("the fields here are: {}", self.known.join(", ")),
            };
            self.decoder.error_with_help(
                "unknown-field",
                key.span,
                format!("there is no field `{name}` here"),
                help,
            );
        }
    }
}
