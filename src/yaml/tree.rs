//! [`YamlDocument`]: a YAML file as a tree of [`Node`]s, each with its range in the text. Aliases
//! are expanded, up to a limit, and merge keys (`<<`) are applied. So are the defaults that follow a
//! policy. Duplicate keys stay; the decoder reports them.

use super::source::{DEFAULTS_MARK, SourceFile, SourceSpan};
use super::{Diagnostic, Diagnostics};
use saphyr_parser::{Event, Marker, Parser, ScalarStyle};
use std::collections::HashMap;

/// The most nodes of one file, with aliases expanded. It stops alias bombs.
const MAX_NODES: usize = 200_000;
/// The deepest nesting of one file, because decoding is recursive.
const MAX_DEPTH: usize = 64;

/// A node of the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its value.
    pub value: NodeValue,
    /// Its span. For a list or map: from its first to its last entry.
    pub span: SourceSpan,
}

/// The value of a node. Scalars stay text: the field that they are for decides their type.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeValue {
    /// A scalar. Only a plain one may be more than text: `yes`, `~`, `12`.
    Scalar {
        /// The text, escapes resolved.
        text: String,
        /// Whether it is unquoted.
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
    /// Whether it is null: an unquoted empty scalar, `~` or `null`.
    pub fn is_null(&self) -> bool {
        matches!(&self.value, NodeValue::Scalar { text, plain: true } if matches!(text.as_str(),
            "" | "~" | "null" | "Null" | "NULL"))
    }

    /// The text of a scalar, quoted or not.
    fn text(&self) -> Option<&str> {
        match &self.value {
            NodeValue::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Whether it is a map.
    pub fn is_map(&self) -> bool {
        matches!(self.value, NodeValue::Mapping(_))
    }

    /// Whether it is a list or a map without entries.
    pub fn is_empty(&self) -> bool {
        match &self.value {
            NodeValue::Scalar { .. } => false,
            NodeValue::Sequence(items) => items.is_empty(),
            NodeValue::Mapping(entries) => entries.is_empty(),
        }
    }

    /// The kind of node, for messages: `a list`, `a map`, `a single value`, `nothing`.
    pub fn kind_name(&self) -> &'static str {
        match &self.value {
            _ if self.is_null() => "nothing",
            NodeValue::Scalar { .. } => "a single value",
            NodeValue::Sequence(_) => "a list",
            NodeValue::Mapping(_) => "a map",
        }
    }

    /// The numbers of its nodes and of its levels; keys have no levels.
    fn size_and_depth(&self) -> (usize, usize) {
        let mut nodes = 1;
        let mut levels = 1;
        let below: Vec<&Node> = match &self.value {
            NodeValue::Scalar { .. } => Vec::new(),
            NodeValue::Sequence(items) => items.iter().collect(),
            NodeValue::Mapping(entries) => {
                for (key, _) in entries {
                    nodes += key.size_and_depth().0;
                }
                entries.iter().map(|(_, value)| value).collect()
            }
        };
        for node in below {
            let (more, deeper) = node.size_and_depth();
            nodes += more;
            levels = levels.max(deeper + 1);
        }
        (nodes, levels)
    }
}

/// A file as a tree; `root` is `None` for an empty file.
pub struct YamlDocument {
    /// The root node.
    pub root: Option<Node>,
}

impl YamlDocument {
    /// Parses a file. An error (of syntax, size, depth, aliases, or a second document) is added to
    /// `diagnostics`. A byte order mark at the beginning is skipped.
    pub fn parse(source: &SourceFile, diagnostics: &mut Diagnostics) -> Option<YamlDocument> {
        // A byte order mark is allowed at the start (YAML 1.2 section 5.2); the parser's positions
        // do not count it.
        let (text, offset) = match source.text.strip_prefix('\u{feff}') {
            Some(rest) => (rest, '\u{feff}'.len_utf8()),
            None => (&*source.text, 0),
        };
        let bytes =
            (!text.is_ascii()).then(|| text.char_indices().map(|(byte, _)| byte as u32).collect());
        TreeBuilder {
            text,
            offset,
            bytes,
            ..TreeBuilder::default()
        }
        .build()
        .map(|root| YamlDocument { root })
        .map_err(|error| diagnostics.push(*error))
        .ok()
    }
}

/// A list or map whose end was not parsed yet.
struct OpenCollection {
    anchor: usize,
    span: SourceSpan,
    value: NodeValue,
    key: Option<Node>,
}

#[derive(Default)]
struct TreeBuilder<'t> {
    text: &'t str,
    offset: usize,
    /// Byte offset of every character: the parser counts characters.
    bytes: Option<Vec<u32>>,
    open: Vec<OpenCollection>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    root: Option<Node>,
}

type ParseError = Box<Diagnostic>;

impl TreeBuilder<'_> {
    /// Parses the whole text, up to the first error. The root is `None` for an empty file or `null`.
    fn build(&mut self) -> Result<Option<Node>, ParseError> {
        use Event::*;

        // The policy's own tree, once its defaults follow.
        let mut policy = None;
        let mut parser = Parser::new_from_str(self.text);
        while let Some(event) = parser.next_event() {
            let (event, place) =
                event.map_err(|error| self.syntax_error(error.marker(), error.info()))?;
            let span = self.span_between(&place.start, &place.end);
            match event {
                DocumentStart(_) => {
                    let before = self.root.take().filter(|root| !root.is_null());
                    let is_mark = self.text[span.start - self.offset..].starts_with(DEFAULTS_MARK);
                    if is_mark && policy.is_none() {
                        policy = Some(before);
                    } else if is_mark || before.is_some() {
                        let error = Diagnostic::error(
                            "several-documents",
                            span,
                            "a second YAML document begins here",
                        );
                        return Err(error
                            .help("a file holds one policy; remove the \"---\" or make two files")
                            .into());
                    }
                }
                Scalar(text, style, anchor, _) => {
                    let node = Node {
                        value: NodeValue::Scalar {
                            text: text.into_owned(),
                            plain: style == ScalarStyle::Plain,
                        },
                        span,
                    };
                    self.attach(node, anchor)?;
                }
                SequenceStart(anchor, _) => {
                    self.open_collection(anchor, span, NodeValue::Sequence(Vec::new()))?
                }
                MappingStart(anchor, _) => {
                    self.open_collection(anchor, span, NodeValue::Mapping(Vec::new()))?
                }
                SequenceEnd | MappingEnd => {
                    if let Some(open) = self.open.pop() {
                        let span = collection_span(open.span, &open.value, span);
                        let value = apply_merge_keys(open.value, span)?;
                        self.attach(Node { value, span }, open.anchor)?;
                    }
                }
                Alias(anchor) => {
                    // An alias to an enclosing node is not in the table yet: such a tree would be
                    // infinite.
                    let message = "this alias refers to a value that contains it";
                    let target = self
                        .anchors
                        .get(&anchor)
                        .ok_or_else(|| Diagnostic::error("recursive-alias", span, message))?;
                    let (nodes, levels) = target.size_and_depth();
                    if self.open.len() + levels > MAX_DEPTH {
                        return Err(too_deep_error(span));
                    }
                    let node = Node {
                        span,
                        ..target.clone()
                    };
                    self.nodes += nodes;
                    self.attach(node, 0)?;
                }
                Nothing | StreamStart | StreamEnd | DocumentEnd => {}
            }
        }
        let last = self.root.take().filter(|root| !root.is_null());
        match policy {
            Some(policy) => with_defaults(policy, last),
            None => Ok(last),
        }
    }

    /// Opens a list or map. An error if it is nested too deep.
    fn open_collection(
        &mut self,
        anchor: usize,
        span: SourceSpan,
        value: NodeValue,
    ) -> Result<(), ParseError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep_error(span));
        }
        self.open.push(OpenCollection {
            anchor,
            span,
            value,
            key: None,
        });
        Ok(())
    }

    /// Adds a finished node to the open list or map, there as a key or as the value of the last key,
    /// else as the root. Stores it under its anchor (0 for none). An error beyond `MAX_NODES`.
    fn attach(&mut self, node: Node, anchor: usize) -> Result<(), ParseError> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            let message =
                format!("the file has more than {MAX_NODES} values, with all aliases expanded");
            return Err(Diagnostic::error("too-large", node.span, message)
                .help("write fewer aliases, or split the policy into several sites")
                .into());
        }
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(open) => match &mut open.value {
                NodeValue::Sequence(items) => items.push(node),
                NodeValue::Mapping(entries) => match open.key.take() {
                    None => open.key = Some(node),
                    Some(key) => entries.push((key, node)),
                },
                NodeValue::Scalar { .. } => {}
            },
        }
        Ok(())
    }

    /// The byte offset of a character of the file. The parser counts characters without the byte
    /// order mark.
    fn byte_offset(&self, character: usize) -> usize {
        let within = match &self.bytes {
            None => character.min(self.text.len()),
            Some(bytes) => bytes
                .get(character)
                .map_or(self.text.len(), |byte| *byte as usize),
        };
        within + self.offset
    }

    fn span_between(&self, start: &Marker, end: &Marker) -> SourceSpan {
        SourceSpan {
            start: self.byte_offset(start.index()),
            end: self.byte_offset(end.index()),
            line: saturating_u32(start.line()),
            column: saturating_u32(start.col() + 1),
        }
    }

    /// The span of the last character that is not blank, to mark a text that ends too early.
    fn last_char_span(&self, text: &str) -> SourceSpan {
        let written = text.trim_end();
        let start = written.char_indices().last().map_or(0, |(start, _)| start);
        SourceSpan {
            start: start + self.offset,
            end: written.len() + self.offset,
            line: saturating_u32(written.lines().count().max(1)),
            column: saturating_u32(
                written
                    .lines()
                    .last()
                    .unwrap_or_default()
                    .chars()
                    .count()
                    .max(1),
            ),
        }
    }

    /// The error for the parser's message `info`. Common mistakes get help: an unquoted `*`, a tab, a
    /// character that cannot begin a value, a colon in a value.
    fn syntax_error(&self, marker: &Marker, info: &str) -> Diagnostic {
        let mut span = self.span_between(marker, marker);
        let before = self
            .text
            .get(..span.start - self.offset)
            .unwrap_or(self.text);
        // The defaults follow a policy that ends too early.
        let is_end = self.text[before.len()..].starts_with(DEFAULTS_MARK);
        if is_end || before.len() >= self.text.trim_end().len() {
            span = self.last_char_span(before);
        }
        let line = self
            .text
            .lines()
            .nth(span.line.saturating_sub(1) as usize)
            .unwrap_or("");
        let rest = self.text.get(span.start - self.offset..);
        if let Some(first) = rest.and_then(|rest| rest.chars().next()) {
            span.end = span.start + first.len_utf8();
        }
        let written = line.trim_start().trim_start_matches("- ").trim_start();
        let value = line
            .split_once(": ")
            .map_or(written, |(_, value)| value.trim_start());
        if has_unquoted_star(value)
            || has_unquoted_star(written)
            || info.contains("anchor") && line.contains('*')
        {
            return Diagnostic::error(
                "unquoted-star",
                span,
                "an unquoted \"*\" begins a YAML alias",
            )
            .label(info.to_owned())
            .help("put quotes around it: \"*\", \"*.pdf\"");
        }
        let error = Diagnostic::error("yaml-syntax", span, format!("this is not YAML: {info}"));
        let help = if line.trim_start_matches(' ').starts_with('\t') {
            "YAML uses spaces for indentation; replace the tab"
        } else if value.starts_with(['%', '@', '`']) {
            "a value cannot begin with \"%\", \"@\" or a backtick; put quotes around it"
        } else if info.contains("mapping values") {
            "a value that contains \": \" needs quotes around it; or the indentation is wrong"
        } else {
            return error;
        };
        error.help(help)
    }
}

/// A policy with its defaults, if both files have fields.
fn with_defaults(
    mut policy: Option<Node>,
    defaults: Option<Node>,
) -> Result<Option<Node>, ParseError> {
    let Some(defaults) = defaults else {
        return Ok(policy);
    };
    if !defaults.is_map() {
        let message = "the defaults are no map of fields";
        return Err(Diagnostic::error("wrong-type", defaults.span, message).into());
    }
    if let Some(policy) = &mut policy {
        add_defaults(policy, defaults);
    }
    Ok(policy)
}

/// Adds the fields that a policy lacks, also within its maps. Lists stay as they are.
fn add_defaults(own: &mut Node, defaults: Node) {
    if let NodeValue::Mapping(own) = &mut own.value
        && let NodeValue::Mapping(defaults) = defaults.value
    {
        // A key that the defaults repeat stays a mistake.
        let count = own.len();
        for (key, value) in defaults {
            let mut present = own[..count].iter_mut();
            match present.find(|(present, _)| present.text() == key.text()) {
                Some((_, own)) => add_defaults(own, value),
                None => own.push((key, value)),
            }
        }
    }
}

/// The number, or the largest one that fits.
pub fn saturating_u32(number: impl TryInto<u32>) -> u32 {
    number.try_into().unwrap_or(u32::MAX)
}

fn too_deep_error(span: SourceSpan) -> ParseError {
    Diagnostic::error(
        "too-deep",
        span,
        format!("this is nested more than {MAX_DEPTH} levels deep"),
    )
    .into()
}

/// The span of a list or map, from the spans of its start and end events. The end event of a block
/// collection is empty, so the span ends with the last entry.
fn collection_span(start: SourceSpan, value: &NodeValue, end: SourceSpan) -> SourceSpan {
    let last = match value {
        NodeValue::Sequence(items) => items.last().map(|item| item.span.end),
        NodeValue::Mapping(entries) => entries
            .last()
            .map(|(key, value)| value.span.end.max(key.span.end)),
        NodeValue::Scalar { .. } => None,
    };
    let flow_end = (end.end > end.start).then_some(end.end);
    SourceSpan {
        end: flow_end.or(last).unwrap_or(start.end).max(start.start),
        ..start
    }
}

fn has_unquoted_star(text: &str) -> bool {
    text.starts_with('*') || text.contains("[*") || text.contains(", *")
}

/// Applies `<<`, the merge key of YAML 1.1: keys of the map itself win, then those of earlier
/// sources. An error, from `<<` to the end of `span`, if a source is no map. Lists stay.
fn apply_merge_keys(value: NodeValue, span: SourceSpan) -> Result<NodeValue, ParseError> {
    let NodeValue::Mapping(entries) = value else {
        return Ok(value);
    };
    let (merges, mut own): (Mapping, Mapping) = entries.into_iter().partition(
        |(key, _)| matches!(&key.value, NodeValue::Scalar { text, plain: true } if text == "<<"),
    );
    for (key, value) in merges {
        let sources = match value.value {
            NodeValue::Sequence(items) => items,
            _ => vec![value],
        };
        for source in sources {
            let NodeValue::Mapping(entries) = source.value else {
                let span = SourceSpan {
                    end: span.end,
                    ..key.span
                };
                return Err(Diagnostic::error(
                    "bad-merge",
                    span,
                    "\"<<\" must be a map, or a list of maps",
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
    Ok(NodeValue::Mapping(own))
}
