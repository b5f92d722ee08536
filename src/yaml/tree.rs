//! [`Document`]: a YAML file as a tree of [`Node`]s, each with its place in the file. Aliases are
//! resolved, up to a limit, and merge keys are applied. Duplicate keys stay for the decoder, which
//! reports them.

use super::place::{Source, Span};
use super::{Diagnostic, Diagnostics};
use saphyr_parser::{Event, Marker, Parser, ScalarStyle};
use std::collections::HashMap;

/// Nodes of one file, copies made by aliases included: an alias bomb ends here.
const MAX_NODES: usize = 200_000;
/// Nesting of one file; decoding recurses.
const MAX_DEPTH: usize = 64;

/// A node of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its value.
    pub value: Value,
    /// Its place. For a list or map: from its first to its last entry.
    pub span: Span,
}

/// The value of a node. Scalars stay text: the field that they are for decides their type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A scalar; `plain` when unquoted (so that `yes`, `~` and `12` may be more than text).
    Scalar {
        /// The text, escapes resolved.
        text: String,
        /// Unquoted.
        plain: bool,
    },
    /// A list.
    Sequence(Vec<Node>),
    /// A map.
    Mapping(Mapping),
}

/// Entries in the order of the file, duplicates included.
pub type Mapping = Vec<(Node, Node)>;

impl Node {
    /// Whether nothing was written: an unquoted empty scalar, `~` or `null`.
    pub fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar { text, plain: true } if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// Whether it is a map.
    pub fn is_map(&self) -> bool {
        matches!(self.value, Value::Mapping(_))
    }

    /// Whether it is a list or a map without entries.
    pub fn is_empty(&self) -> bool {
        match &self.value {
            Value::Scalar { .. } => false,
            Value::Sequence(items) => items.is_empty(),
            Value::Mapping(entries) => entries.is_empty(),
        }
    }

    /// The kind of node, for messages: `a list`, `a map`, `a single value`, `nothing`.
    pub fn what(&self) -> &'static str {
        match &self.value {
            _ if self.is_null() => "nothing",
            Value::Scalar { .. } => "a single value",
            Value::Sequence(_) => "a list",
            Value::Mapping(_) => "a map",
        }
    }

    /// How many nodes it has, and how many levels; keys have no levels.
    fn extent(&self) -> (usize, usize) {
        let mut nodes = 1;
        let mut levels = 1;
        let below: Vec<&Node> = match &self.value {
            Value::Scalar { .. } => Vec::new(),
            Value::Sequence(items) => items.iter().collect(),
            Value::Mapping(entries) => {
                nodes += entries.iter().map(|(key, _)| key.extent().0).sum::<usize>();
                entries.iter().map(|(_, value)| value).collect()
            }
        };
        for node in below {
            let (more, deeper) = node.extent();
            nodes += more;
            levels = levels.max(deeper + 1);
        }
        (nodes, levels)
    }
}

/// A file as a tree; `root` is `None` for an empty file.
#[derive(Clone, Debug)]
pub struct Document {
    /// The root node.
    pub root: Option<Node>,
}

impl Document {
    /// Reads a file. An error (of syntax, size, depth, aliases, or a second document) goes to
    /// `diagnostics`, and there is no document. A byte order mark at the beginning is skipped.
    pub fn parse(source: &Source, diagnostics: &mut Diagnostics) -> Option<Document> {
        // A byte order mark is allowed at the start (YAML 1.2 section 5.2); the parser's positions
        // do not count it.
        let (text, offset) = match source.text.strip_prefix('\u{feff}') {
            Some(rest) => (rest, '\u{feff}'.len_utf8()),
            None => (&*source.text, 0),
        };
        let bytes =
            (!text.is_ascii()).then(|| text.char_indices().map(|(byte, _)| byte as u32).collect());
        let mut builder = Builder {
            text,
            offset,
            bytes,
            ..Builder::default()
        };
        builder
            .build()
            .map(|root| Document { root })
            .map_err(|error| diagnostics.push(*error))
            .ok()
    }
}

/// A list or map that is still open.
struct Open {
    anchor: usize,
    span: Span,
    value: Value,
    key: Option<Node>,
}

#[derive(Default)]
struct Builder<'t> {
    text: &'t str,
    offset: usize,
    /// Byte offset of every character: the parser counts characters.
    bytes: Option<Vec<u32>>,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    root: Option<Node>,
    documents: usize,
}

type Failure = Box<Diagnostic>;

impl Builder<'_> {
    /// Reads the whole text. Stops at the first error. The root is `None` where nothing is written
    /// but perhaps `null`.
    fn build(&mut self) -> Result<Option<Node>, Failure> {
        let mut parser = Parser::new_from_str(self.text);
        while let Some(event) = parser.next_event() {
            let (event, place) =
                event.map_err(|error| self.syntax_error(error.marker(), error.info()))?;
            let span = self.span(&place.start, &place.end);
            match event {
                Event::DocumentStart(_) => {
                    self.documents += 1;
                    if self.documents > 1 {
                        let error = Diagnostic::error(
                            "several-documents",
                            span,
                            "a second YAML document begins here",
                        );
                        return Err(error
                            .help("a file holds one policy; remove the `---` or make two files")
                            .into());
                    }
                }
                Event::Scalar(text, style, anchor, _) => {
                    let node = Node {
                        value: Value::Scalar {
                            text: text.into_owned(),
                            plain: style == ScalarStyle::Plain,
                        },
                        span,
                    };
                    self.close(node, anchor)?;
                }
                Event::SequenceStart(anchor, _) => {
                    self.begin(anchor, span, Value::Sequence(Vec::new()))?
                }
                Event::MappingStart(anchor, _) => {
                    self.begin(anchor, span, Value::Mapping(Vec::new()))?
                }
                Event::SequenceEnd | Event::MappingEnd => {
                    if let Some(open) = self.open.pop() {
                        let span = whole(open.span, &open.value, span);
                        let value = merged(open.value, span)?;
                        self.close(Node { value, span }, open.anchor)?;
                    }
                }
                Event::Alias(anchor) => {
                    // An alias to an enclosing node is not in the table yet: such a tree would have
                    // no end.
                    let message = "this alias refers to a value that it is part of";
                    let target = self
                        .anchors
                        .get(&anchor)
                        .ok_or_else(|| Diagnostic::error("recursive-alias", span, message))?;
                    let (nodes, levels) = target.extent();
                    if self.open.len() + levels > MAX_DEPTH {
                        return Err(too_deep(span));
                    }
                    let node = Node {
                        span,
                        ..target.clone()
                    };
                    self.nodes += nodes;
                    self.close(node, 0)?;
                }
                Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
            }
        }
        Ok(self.root.take().filter(|root| !root.is_null()))
    }

    /// Opens a list or map. An error where that would be nested too deep.
    fn begin(&mut self, anchor: usize, span: Span, value: Value) -> Result<(), Failure> {
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep(span));
        }
        self.open.push(Open {
            anchor,
            span,
            value,
            key: None,
        });
        Ok(())
    }

    /// Puts a finished node where it belongs: into the list or map that is open, there as a key or
    /// as the value of the last key, else as the root. Remembers it by its anchor (0 is none). An
    /// error beyond `MAX_NODES`.
    fn close(&mut self, node: Node, anchor: usize) -> Result<(), Failure> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            let message = format!("the file holds more than {MAX_NODES} values, aliases expanded");
            let error = Diagnostic::error("too-large", node.span, message);
            return Err(error
                .help("write fewer aliases, or split the policy into several sites")
                .into());
        }
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(open) => match &mut open.value {
                Value::Sequence(items) => items.push(node),
                Value::Mapping(entries) => match open.key.take() {
                    None => open.key = Some(node),
                    Some(key) => entries.push((key, node)),
                },
                Value::Scalar { .. } => {}
            },
        }
        Ok(())
    }

    /// The byte offset in the file of a character, which the parser counts without the byte order
    /// mark.
    fn byte(&self, character: usize) -> usize {
        let within = match &self.bytes {
            None => character.min(self.text.len()),
            Some(bytes) => bytes
                .get(character)
                .map_or(self.text.len(), |byte| *byte as usize),
        };
        within + self.offset
    }

    fn span(&self, start: &Marker, end: &Marker) -> Span {
        Span {
            start: self.byte(start.index()),
            end: self.byte(end.index()),
            line: count(start.line()),
            column: count(start.col() + 1),
        }
    }

    /// The last character that is not blank: where a file that ends too early is marked.
    fn last(&self) -> Span {
        let written = self.text.trim_end();
        let start = written.char_indices().last().map_or(0, |(start, _)| start);
        let line_start = written[..start]
            .rfind('\n')
            .map_or(0, |newline| newline + 1);
        let line = 1 + written[..start].matches('\n').count();
        let column = 1 + written[line_start..start].chars().count();
        Span {
            start: start + self.offset,
            end: written.len() + self.offset,
            line: count(line),
            column: count(column),
        }
    }

    /// The error for what the parser (`info`) says at a place. Common mistakes get help: an
    /// unquoted `*`, a tab, a character that cannot begin a value, a colon in a value.
    fn syntax_error(&self, marker: &Marker, info: &str) -> Diagnostic {
        let mut span = self.span(marker, marker);
        if span.start >= self.text.trim_end().len() + self.offset {
            span = self.last();
        }
        let line = self
            .text
            .lines()
            .nth(span.line.saturating_sub(1) as usize)
            .unwrap_or("");
        if span.start < self.text.len() + self.offset {
            let width = self.text[span.start - self.offset..]
                .chars()
                .next()
                .map_or(0, char::len_utf8);
            span.end = span.start + width;
        }
        let written = line.trim_start().trim_start_matches("- ").trim_start();
        let value = line
            .split_once(": ")
            .map_or(written, |(_, value)| value.trim_start());
        if has_star(value) || has_star(written) || info.contains("anchor") && line.contains('*') {
            return Diagnostic::error("unquoted-star", span, "an unquoted `*` begins a YAML alias")
                .label(info.to_owned())
                .help("put quotes around it: \"*\", \"*.pdf\"");
        }
        let error = Diagnostic::error("yaml-syntax", span, format!("this is not YAML: {info}"));
        let help = if line.trim_start_matches(' ').starts_with('\t') {
            "YAML is indented with spaces; replace the tab"
        } else if value.starts_with(['%', '@', '`']) {
            "a value cannot begin with `%`, `@` or a backtick; put quotes around it"
        } else if info.contains("mapping values") {
            "a value that holds `: ` needs quotes around it; or the indentation is off"
        } else {
            return error;
        };
        error.help(help)
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn too_deep(span: Span) -> Failure {
    Diagnostic::error(
        "too-deep",
        span,
        format!("this is nested more than {MAX_DEPTH} levels deep"),
    )
    .into()
}

/// The place of a list or map that the parser began at `start` and ended at `end`. A block
/// collection's own events mark only where it begins, so its last entry ends it.
fn whole(start: Span, value: &Value, end: Span) -> Span {
    let last = match value {
        Value::Sequence(items) => items.last().map(|item| item.span.end),
        Value::Mapping(entries) => entries
            .last()
            .map(|(key, value)| value.span.end.max(key.span.end)),
        Value::Scalar { .. } => None,
    };
    let flow_end = (end.end > end.start).then_some(end.end);
    Span {
        end: flow_end.or(last).unwrap_or(start.end).max(start.start),
        ..start
    }
}

fn has_star(text: &str) -> bool {
    text.starts_with('*') || text.contains("[*") || text.contains(", *")
}

fn is_merge_key(key: &Node) -> bool {
    matches!(&key.value, Value::Scalar { text, plain: true } if text == "<<")
}

/// Applies `<<` (the merge key of YAML 1.1, which people use with anchors): keys of the map itself
/// win, then earlier sources. An error, from `<<` to the end of `span`, where a source is no map.
/// Lists stay.
fn merged(value: Value, span: Span) -> Result<Value, Failure> {
    let Value::Mapping(entries) = value else {
        return Ok(value);
    };
    let (merges, mut own): (Mapping, Mapping) =
        entries.into_iter().partition(|(key, _)| is_merge_key(key));
    for (key, value) in merges {
        let sources = match value.value {
            Value::Sequence(items) => items,
            _ => vec![value],
        };
        for source in sources {
            let Value::Mapping(entries) = source.value else {
                let span = Span {
                    end: span.end,
                    ..key.span
                };
                return Err(Diagnostic::error(
                    "bad-merge",
                    span,
                    "`<<` takes a map, or a list of maps",
                )
                .into());
            };
            for (key, value) in entries {
                if !own.iter().any(|(present, _)| present.value == key.value) {
                    own.push((key, value));
                }
            }
        }
    }
    Ok(Value::Mapping(own))
}
