//! [`rules`] decodes the policy section `indexing`: rules with conditions on a response, and the
//! X-Robots-Tag directives for responses that meet them. [`listed`] decodes a condition that is a
//! list, also for other sections. It refuses an empty list, which would restrict nothing, so that
//! the rule would hold for all pages.

use super::patterns::patterns;
use crate::indexing::{DirectiveError, Directives, Scope, Tags, is_directive_name};
use crate::policy::model::{
    Conditions, IndexingRule, OriginTags, StatusCondition, WrittenDirectives,
};
use crate::policy::regular_expression::mistake_in;
use crate::yaml::{Decoder, Diagnostic, Fields, Located, Node, Severity, Span};

pub fn rules(decoder: &mut Decoder, node: &Node) -> Vec<IndexingRule> {
    let list = "a list of rules, each with conditions and a tag";
    decoder.maps(
        node,
        [
            list,
            "a rule: conditions (paths, types, ...) and `tag` or `tags`",
        ],
        |fields| Some(rule(fields)),
    )
}

fn rule(fields: &mut Fields<'_>) -> IndexingRule {
    let when = conditions(fields);
    let unless = fields.get("not", |decoder, node| {
        let unless = decoder.map(
            node,
            "conditions: paths, path_regex, types, status",
            conditions,
        )?;
        if node.is_empty() {
            decoder.error(
                "empty-not",
                node.span,
                "an empty `not` would exclude everything",
            );
        }
        (!node.is_empty()).then_some(unless)
    });
    let mut said = Said::default();
    let (tag, scoped, origins) = (
        fields.take("tag"),
        fields.take("tags"),
        fields.take("origin_tags"),
    );
    let origin_tags = fields.get("origin_tags", origin_tags);
    if let Some(node) = tag {
        said.add(Scope::All, node, fields.decoder);
    }
    if let Some(node) = scoped {
        add_scoped(node, &mut said, fields.decoder);
    }
    fields.finish();
    if tag.is_none() && scoped.is_none() {
        let (id, span) = ("rule-without-tags", fields.span);
        if origin_tags == Some(OriginTags::Replace) {
            fields.decoder.error_with_help(
                id,
                span,
                "this rule has nothing to put in the place of what the origin says",
                "write `strip` to take it away, or a `tag`",
            );
        }
        if origins.is_none() {
            fields.decoder.error_with_help(
                id,
                span,
                "this rule says nothing: it has neither `tag` nor `tags`",
                "write `tag: noindex`",
            );
        }
    }
    let Said { tags, written } = said;
    IndexingRule {
        when,
        unless,
        tags,
        written,
        origin_tags,
        span: fields.span,
    }
}

/// Adds the directives of `tags` for each crawler.
fn add_scoped(node: &Node, said: &mut Said, decoder: &mut Decoder) {
    let Some(entries) = decoder.entries(
        node,
        "a map of crawlers, like `googlebot: noindex` (`tag: noindex` is for all)",
    ) else {
        return;
    };
    if entries.is_empty() {
        decoder.error("rule-without-tags", node.span, "nothing is said here");
    }
    let mut told: Vec<(Scope, Span)> = Vec::new();
    for (key, value) in entries {
        let Some(name) = decoder.located(key, "the name of a crawler, or \"*\"") else {
            continue;
        };
        let (name, span) = (name.value, name.span);
        if is_directive_name(&name) {
            decoder.error_with_help(
                "bad-token",
                span,
                format!("`{name}` is a directive, not the name of a crawler"),
                "`tags` says who is told what (`googlebot: noindex`); what everybody is told stands in `tag`",
            );
            continue;
        }
        let mistake = (
            "bad-token",
            "is not the name of a crawler",
            "write a name like `googlebot`, or \"*\" for all",
        );
        let Some(scope) = decoder.parsed(key, "", scope, mistake) else {
            continue;
        };
        // The same text twice is an error of every map; case does not matter in the name of a
        // crawler.
        if let Some((_, first)) = told
            .iter()
            .find(|(known, first)| *known == scope && *first != span)
        {
            let error = Diagnostic::error(
                "duplicate-key",
                span,
                format!("`{name}` is told something twice"),
            )
            .related(*first, "first here, in other letters")
            .help("write it once, with all that it is told: `googlebot: [noindex, nofollow]`");
            decoder.diagnostics.push(error);
        }
        told.push((scope.clone(), span));
        if value.is_null() {
            decoder.error_with_help(
                "wrong-type",
                span,
                format!("`{name}` is told nothing"),
                "inside `{ }` a comma begins the next crawler: write a list, `googlebot: [noindex, nofollow]`",
            );
            continue;
        }
        said.add(scope, value, decoder);
    }
}

/// The treatment of the origin's own lines.
pub fn origin_tags(decoder: &mut Decoder, node: &Node) -> Option<OriginTags> {
    decoder.variant(node, "a way to treat the origin's tags")
}

/// The directives of a rule: together, and piece by piece as they were written.
#[derive(Default)]
struct Said {
    tags: Tags,
    written: Vec<WrittenDirectives>,
}

impl Said {
    fn add(&mut self, scope: Scope, node: &Node, decoder: &mut Decoder) {
        let mut all = Directives::default();
        if node.is_empty() {
            decoder.error_with_help(
                "rule-without-tags",
                node.span,
                "nothing is said here",
                "write `noindex`, say",
            );
        }
        for text in decoder.texts(node, "directives, like `noindex, noarchive`") {
            match Directives::parse(&text.value) {
                Ok(directives) => all.extend(&directives),
                Err(DirectiveError { message, help }) => {
                    let error = Diagnostic::error("bad-directive", text.span, message);
                    decoder.diagnostics.push(Diagnostic { help, ..error });
                }
            }
            self.written.push(WrittenDirectives {
                scope: scope.clone(),
                text,
            });
        }
        self.tags.add(scope, &all);
    }
}

fn scope(name: &str) -> Option<Scope> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_name = name == "*" || !name.is_empty() && name.len() <= 64 && name.bytes().all(token);
    is_name.then(|| Scope::named(name))
}

fn conditions(fields: &mut Fields<'_>) -> Conditions {
    Conditions {
        paths: listed(fields, "paths", patterns),
        path_regex: fields.get("path_regex", path_regex),
        types: listed(fields, "types", types),
        status: listed(fields, "status", statuses),
    }
}

/// A condition that is a list. An empty list is a mistake: it would not restrict, and directives
/// for some pages would be for all.
pub fn listed<T>(
    fields: &mut Fields<'_>,
    name: &'static str,
    decode: fn(&mut Decoder, &Node) -> Vec<T>,
) -> Vec<T> {
    let Some((key, node)) = fields.take_with_key(name) else {
        return Vec::new();
    };
    let decoder = &mut *fields.decoder;
    let errors = |decoder: &Decoder| {
        decoder
            .diagnostics
            .items
            .iter()
            .filter(|item| item.severity == Severity::Error)
            .count()
    };
    let before = errors(decoder);
    let list = decode(decoder, node);
    if list.is_empty() && errors(decoder) == before {
        decoder.error_with_help(
            "empty-condition",
            key,
            format!("`{name}` names nothing"),
            format!("leave out `{name}` to mean all, or say which"),
        );
    }
    list
}

fn path_regex(decoder: &mut Decoder, node: &Node) -> Option<Located<String>> {
    let text = decoder.located(node, "a regular expression")?;
    if let Some((what, help)) = mistake_in(&text.value) {
        decoder.error_with_help("bad-regex", node.span, what, help);
        return None;
    }
    Some(text)
}

fn types(decoder: &mut Decoder, node: &Node) -> Vec<Located<String>> {
    let mut types = decoder.texts(node, "a list of media types");
    types.retain_mut(|media| {
        media.value.make_ascii_lowercase();
        let text = media.value.as_str();
        let token = |part: &str| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_.+!#$&^".contains(&byte))
        };
        let is_type = |text: &str| {
            text.split_once('/')
                .is_some_and(|(kind, subtype)| token(kind) && (subtype == "*" || token(subtype)))
        };
        let bare = text
            .split_once(';')
            .map(|(bare, _)| bare.trim())
            .filter(|bare| is_type(bare));
        let mut refuse = |what, help: &str| {
            decoder.error_with_help("bad-type", media.span, format!("`{text}` is {what}"), help);
            false
        };
        if let Some(bare) = bare {
            // Taken as it is it would promise to tell one charset from another.
            let help = format!("leave the parameters out: `{bare}` matches with any charset");
            refuse("a media type with parameters", &help)
        } else if text == "*/*" {
            refuse(
                "any media type, which restricts nothing",
                "leave `types` out: what has none holds for every type",
            )
        } else if !is_type(text) {
            refuse(
                "not a media type",
                "write `application/pdf` or \"image/*\", without parameters such as charset",
            )
        } else {
            true
        }
    });
    types
}

fn statuses(decoder: &mut Decoder, node: &Node) -> Vec<Located<StatusCondition>> {
    let written = decoder.texts(node, "a list of status codes").into_iter();
    let read = |Located { value: text, span }: Located<String>| {
        let class = text.strip_suffix("xx").and_then(|class| class.parse().ok());
        let class = class
            .filter(|class| (2..=5).contains(class))
            .map(StatusCondition::Class);
        let code = text.parse().ok().filter(|code| (200..=599).contains(code));
        let (message, help) = match class.or(code.map(StatusCondition::Code)) {
            Some(StatusCondition::Code(304)) => (
                "a 304 is tagged as the 200 it speaks of".to_owned(),
                "write 200: what holds for the page holds for its confirmation",
            ),
            Some(value) => return Some(Located { value, span }),
            None => (
                format!("`{text}` is not a status"),
                "write a code from 200 to 599, or a class: `4xx`",
            ),
        };
        decoder.error_with_help("bad-status", span, message, help);
        None
    };
    written.filter_map(read).collect()
}
