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
use crate::yaml::{Diagnostic, Fields, Located, Reader, Severity, Span, is_word};

pub fn rules(node: Reader<'_>) -> Vec<IndexingRule> {
    let wanted = [
        "a list of rules, each with conditions and a tag",
        "a rule: conditions (paths, types, ...) and `tag` or `tags`",
    ];
    node.maps(wanted, |fields| Some(rule(fields)))
}

/// Decodes one rule. It needs `tag` or `tags`, or `origin_tags` alone with another value than
/// `replace`; otherwise, and for an empty `not`, it adds an error. The order of the `take` and
/// `finish` calls puts the errors about unknown fields before those about the whole rule.
fn rule(fields: &mut Fields<'_>) -> IndexingRule {
    let when = conditions(fields);
    let unless = fields.get("not", unless);
    let tag = fields.take("tag");
    let scoped = fields.take("tags");
    let speaks_of_origin = fields.take("origin_tags").is_some();
    let origin_tags = fields.get("origin_tags", origin_tags);
    let mut said = Said::default();
    if let Some(node) = tag {
        said.add(Scope::All, node);
    }
    if let Some(node) = scoped {
        add_scoped(node, &mut said);
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

fn unless(node: Reader<'_>) -> Option<Conditions> {
    if node.is_empty() {
        node.error("empty-not", "an empty `not` would exclude everything");
    }
    node.map("conditions: paths, path_regex, types, status", conditions)
}

/// Adds the directives of `tags`, a map from crawlers to directives. A key that is the name of a
/// directive or no name of a crawler is an error, and so are a crawler without a value and one that
/// is named twice in different case.
fn add_scoped(node: Reader<'_>, said: &mut Said) {
    let Some(entries) =
        node.entries("a map of crawlers, like `googlebot: noindex` (`tag: noindex` is for all)")
    else {
        return;
    };
    if node.is_empty() {
        node.error("rule-without-tags", "nothing is said here");
    }
    let mut told: Vec<(Scope, Span)> = Vec::new();
    for (key, value) in entries {
        let span = key.span;
        let Some(name) = key.text("the name of a crawler, or \"*\"") else {
            continue;
        };
        if is_directive_name(name) {
            node.decoder.error_with_help(
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
        let Some(scope) = key.parsed("", scope, mistake) else {
            continue;
        };
        // Case does not matter in the name of a crawler.
        if let Some((_, first)) = told.iter().find(|(known, _)| *known == scope) {
            node.decoder.duplicate(
                "duplicate-key",
                [span, *first],
                format!("`{name}` is told something twice"),
                "write it once, with all that it is told: `googlebot: [noindex, nofollow]`",
            );
        }
        told.push((scope.clone(), span));
        if value.is_null() {
            node.decoder.error_with_help(
                "wrong-type",
                span,
                format!("`{name}` is told nothing"),
                "inside `{ }` a comma begins the next crawler: write a list, `googlebot: [noindex, nofollow]`",
            );
            continue;
        }
        said.add(scope, value);
    }
}

/// The treatment of the origin's own lines.
pub fn origin_tags(node: Reader<'_>) -> Option<OriginTags> {
    node.variant("a way to treat the origin's tags")
}

/// The directives of a rule: together, and piece by piece as they were written.
#[derive(Default)]
struct Said {
    tags: Tags,
    written: Vec<WrittenDirectives>,
}

impl Said {
    /// Adds the directives of `node` (a text or a list) for the crawlers of `scope`. Text that does
    /// not parse adds an error, but is kept in `written` for the lints.
    fn add(&mut self, scope: Scope, node: Reader<'_>) {
        let mut all = Directives::default();
        if node.is_empty() {
            node.error_with_help(
                "rule-without-tags",
                "nothing is said here",
                "write `noindex`, say",
            );
        }
        for text in node.texts("directives, like `noindex, noarchive`") {
            match Directives::parse(&text) {
                Ok(directives) => all.extend(&directives),
                Err(DirectiveError { message, help }) => {
                    let error = Diagnostic::error("bad-directive", text.span, message);
                    node.decoder.push(Diagnostic { help, ..error });
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

/// The scope of a crawler's name: `*`, or up to 64 letters, digits and `-_.`; `None` for other
/// text.
fn scope(name: &str) -> Option<Scope> {
    (is_word(name, 64, "-_.") || name == "*").then(|| Scope::named(name))
}

/// Takes the conditions of a rule, or of its `not`, out of the fields. What is absent does not
/// restrict.
fn conditions(fields: &mut Fields<'_>) -> Conditions {
    Conditions {
        paths: listed(fields, "paths", patterns),
        path_regex: fields.get("path_regex", path_regex),
        types: listed(fields, "types", types),
        status: listed(fields, "status", statuses),
    }
}

/// Decodes a field that is a list of conditions; an absent field is an empty list. A written list
/// that comes out empty without an error of its own adds one: it would not restrict, and directives
/// for some pages would be for all.
pub fn listed<T>(
    fields: &mut Fields<'_>,
    name: &'static str,
    decode: fn(Reader<'_>) -> Vec<T>,
) -> Vec<T> {
    let Some((key, node)) = fields.take_with_key(name) else {
        return Vec::new();
    };
    let decoder = fields.decoder;
    let before = decoder.diagnostics.borrow().items.len();
    let list = decode(node);
    let is_wrong = decoder.diagnostics.borrow().items[before..]
        .iter()
        .any(|item| item.severity == Severity::Error);
    if list.is_empty() && !is_wrong {
        key.error_with_help(
            "empty-condition",
            format!("`{name}` names nothing"),
            format!("leave out `{name}` to mean all, or say which"),
        );
    }
    list
}

/// Decodes a regular expression on paths as text; `None` with an error where it does not compile.
fn path_regex(node: Reader<'_>) -> Option<Located<String>> {
    let text = node.located("a regular expression")?;
    let Some((what, help)) = mistake_in(&text) else {
        return Some(text);
    };
    node.error_with_help("bad-regex", what, help);
    None
}

/// Decodes media types and writes them in lower case: `application/pdf` or `image/*`. Types with
/// parameters, `*/*`, and other text are left out with an error.
fn types(node: Reader<'_>) -> Vec<Located<String>> {
    let mut types = node.texts("a list of media types");
    types.retain_mut(|media| {
        media.value.make_ascii_lowercase();
        let text = media.as_str();
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
        node.decoder
            .error_with_help("bad-type", media.span, format!("`{text}` is {what}"), help);
        false
    });
    types
}

fn is_media_type(text: &str) -> bool {
    const SIGNS: &str = "-_.+!#$&^";
    text.split_once('/').is_some_and(|(kind, subtype)| {
        is_word(kind, text.len(), SIGNS) && (subtype == "*" || is_word(subtype, text.len(), SIGNS))
    })
}

/// Decodes status codes from 200 to 599, and classes from `2xx` to `5xx`. Others are left out with
/// an error; so is 304, which is tagged as the 200 that it confirms.
fn statuses(node: Reader<'_>) -> Vec<Located<StatusCondition>> {
    let mut statuses = Vec::new();
    for Located { value: text, span } in node.texts("a list of status codes") {
        let value = match text.strip_suffix("xx") {
            Some(class) => class.parse().ok().map(StatusCondition::Class),
            None => text.parse().ok().map(StatusCondition::Code),
        };
        match value {
            Some(StatusCondition::Code(304)) => node.decoder.error_with_help(
                "bad-status",
                span,
                "a 304 is tagged as the 200 it speaks of",
                "write 200: what holds for the page holds for its confirmation",
            ),
            Some(value @ (StatusCondition::Class(2..=5) | StatusCondition::Code(200..=599))) => {
                statuses.push(Located { value, span });
            }
            _ => node.decoder.error_with_help(
                "bad-status",
                span,
                format!("`{text}` is not a status"),
                "write a code from 200 to 599, or a class: `4xx`",
            ),
        }
    }
    statuses
}
