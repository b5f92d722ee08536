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
    let wanted = [
        "a list of rules, each with conditions and a tag",
        "a rule: conditions (paths, types, ...) and `tag` or `tags`",
    ];
    decoder.maps(node, wanted, |fields| Some(rule(fields)))
}

fn rule(fields: &mut Fields<'_>) -> IndexingRule {
    let when = conditions(fields);
    let unless = fields.get("not", unless);
    let tag = fields.take("tag");
    let scoped = fields.take("tags");
    let speaks_of_origin = fields.take("origin_tags").is_some();
    let origin_tags = fields.get("origin_tags", origin_tags);
    let mut said = Said::default();
    if let Some(node) = tag {
        said.add(Scope::All, node, fields.decoder);
    }
    if let Some(node) = scoped {
        add_scoped(node, &mut said, fields.decoder);
    }
    fields.finish();
    if tag.is_none() && scoped.is_none() {
        if origin_tags == Some(OriginTags::Replace) {
            fields.decoder.error_with_help(
                "rule-without-tags",
                fields.span,
                "this rule has nothing to put in the place of what the origin says",
                "write `strip` to take it away, or a `tag`",
            );
        } else if !speaks_of_origin {
            fields.decoder.error_with_help(
                "rule-without-tags",
                fields.span,
                "this rule says nothing: it has neither `tag` nor `tags`",
                "write `tag: noindex`",
            );
        }
    }
    IndexingRule {
        when,
        unless,
        tags: said.tags,
        written: said.written,
        origin_tags,
        span: fields.span,
    }
}

fn unless(decoder: &mut Decoder, node: &Node) -> Option<Conditions> {
    if node.is_empty() {
        decoder.error(
            "empty-not",
            node.span,
            "an empty `not` would exclude everything",
        );
    }
    decoder.map(
        node,
        "conditions: paths, path_regex, types, status",
        conditions,
    )
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
        let span = key.span;
        let Some(name) = decoder.text(key, "the name of a crawler, or \"*\"") else {
            continue;
        };
        if is_directive_name(name) {
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
        // Case does not matter in the name of a crawler.
        if let Some((_, first)) = told.iter().find(|(known, _)| *known == scope) {
            decoder.duplicate(
                "duplicate-key",
                [span, *first],
                format!("`{name}` is told something twice"),
                "write it once, with all that it is told: `googlebot: [noindex, nofollow]`",
            );
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
    let is_name = (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    (is_name || name == "*").then(|| Scope::named(name))
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
    let before = decoder.diagnostics.items.len();
    let list = decode(decoder, node);
    let mut new = decoder.diagnostics.items[before..].iter();
    if list.is_empty() && !new.any(|item| item.severity == Severity::Error) {
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
    let Some((what, help)) = mistake_in(&text.value) else {
        return Some(text);
    };
    decoder.error_with_help("bad-regex", node.span, what, help);
    None
}

fn types(decoder: &mut Decoder, node: &Node) -> Vec<Located<String>> {
    let mut types = decoder.texts(node, "a list of media types");
    types.retain_mut(|media| {
        media.value.make_ascii_lowercase();
        let text = media.value.as_str();
        let bare = text.split_once(';').map_or(text, |(bare, _)| bare.trim());
        let (what, help): (_, String) = if text == "*/*" {
            (
                "any media type, which restricts nothing",
                "leave `types` out: what has none holds for every type".into(),
            )
        } else if !is_media_type(bare) {
            (
                "not a media type",
                "write `application/pdf` or \"image/*\", without parameters such as charset".into(),
            )
        } else if bare != text {
            // Taken as it is it would promise to tell one charset from another.
            (
                "a media type with parameters",
                format!("leave the parameters out: `{bare}` matches with any charset"),
            )
        } else {
            return true;
        };
        decoder.error_with_help("bad-type", media.span, format!("`{text}` is {what}"), help);
        false
    });
    types
}

fn is_media_type(text: &str) -> bool {
    text.split_once('/').is_some_and(|(kind, subtype)| {
        is_type_name(kind) && (subtype == "*" || is_type_name(subtype))
    })
}

fn is_type_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.+!#$&^".contains(&byte))
}

fn statuses(decoder: &mut Decoder, node: &Node) -> Vec<Located<StatusCondition>> {
    let mut statuses = Vec::new();
    for Located { value: text, span } in decoder.texts(node, "a list of status codes") {
        let value = match text.strip_suffix("xx") {
            Some(class) => class.parse().ok().map(StatusCondition::Class),
            None => text.parse().ok().map(StatusCondition::Code),
        };
        match value {
            Some(StatusCondition::Code(304)) => decoder.error_with_help(
                "bad-status",
                span,
                "a 304 is tagged as the 200 it speaks of",
                "write 200: what holds for the page holds for its confirmation",
            ),
            Some(value @ (StatusCondition::Class(2..=5) | StatusCondition::Code(200..=599))) => {
                statuses.push(Located { value, span });
            }
            _ => decoder.error_with_help(
                "bad-status",
                span,
                format!("`{text}` is not a status"),
                "write a code from 200 to 599, or a class: `4xx`",
            ),
        }
    }
    statuses
}
