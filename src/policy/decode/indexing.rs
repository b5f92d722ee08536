//! [`rules`] decodes the policy section `indexing`: X-Robots-Tag directives, and the conditions
//! that say which responses get them. [`condition_list`] decodes a condition that is a list, for
//! other sections, too. An empty list is an error, because the rule would then apply to all pages.

use super::patterns::patterns;
use crate::indexing::{DirectiveError, Directives, TagScope, is_directive_name};
use crate::policy::model::{
    IndexingRule, OriginTagsMode, ResponseConditions, StatusCondition, WrittenDirectives,
};
use crate::policy::regular_expression::regex_mistake;
use crate::yaml::{Diagnostic, Located, MapFields, NodeReader, Severity, is_plain_word};
use StatusCondition::*;

pub fn rules(node: NodeReader<'_>) -> Vec<IndexingRule> {
    node.decode_maps(
        [
            "a list of rules, each with conditions and a tag",
            "a rule: conditions (paths, types, ...) and \"tag\" or \"tags\"",
        ],
        |fields| Some(rule(fields)),
    )
}

/// Decodes one rule. It needs `tag` or `tags`, or `origin_tags` with another value than `replace`.
fn rule(fields: &mut MapFields<'_>) -> IndexingRule {
    let when = conditions(fields);
    let unless = fields.get("not", unless);
    let tag = fields.field("tag");
    let scoped = fields.field("tags");
    let speaks_of_origin = fields.field("origin_tags").is_some();
    let mut rule = IndexingRule {
        when,
        unless,
        origin_tags: fields.variant("origin_tags", "a value of \"origin_tags\""),
        span: fields.span,
        ..IndexingRule::default()
    };
    if let Some(node) = tag {
        add_directives(&mut rule, TagScope::All, node);
    }
    if let Some(node) = scoped {
        add_scoped_tags(node, &mut rule);
    }
    fields.report_unknown();
    if tag.is_none() && scoped.is_none() {
        if rule.origin_tags == Some(OriginTagsMode::Replace) {
            fields.decoder.error_with_help(
                "rule-without-tags",
                fields.span,
                "this rule has no tag that could replace the origin's",
                "write \"strip\" to remove the origin's tag, or add a \"tag\"",
            );
        } else if !speaks_of_origin {
            fields.decoder.error_with_help(
                "rule-without-tags",
                fields.span,
                "this rule has no effect: it has neither \"tag\" nor \"tags\"",
                "write \"tag: noindex\"",
            );
        }
    }
    rule
}

fn unless(node: NodeReader<'_>) -> Option<ResponseConditions> {
    if node.is_empty() {
        node.error("empty-not", "an empty \"not\" would exclude everything");
    }
    node.decode_map("conditions: paths, path_regex, types, status", conditions)
}

/// Decodes `tags`, a map from crawlers to directives.
fn add_scoped_tags(node: NodeReader<'_>, rule: &mut IndexingRule) {
    let Some(entries) = node.entries(
        "a map of crawlers, like \"googlebot: noindex\" (\"tag: noindex\" is for all crawlers)",
    ) else {
        return;
    };
    if node.is_empty() {
        node.error("rule-without-tags", "this is empty");
    }
    let mut names: Vec<Located<String>> = Vec::new();
    for (key, value) in entries {
        let span = key.span;
        let Some(name) = key.text("the name of a crawler, or \"*\"") else {
            continue;
        };
        if is_directive_name(name) {
            node.decoder.error_with_help(
                "bad-token",
                span,
                format!("\"{name}\" is a directive, not the name of a crawler"),
                "\"tags\" has directives for single crawlers (\"googlebot: noindex\"); directives \
                 for all crawlers go under \"tag\"",
            );
            continue;
        }
        let Some(scope) = key.parse_with(
            "",
            parse_scope,
            (
                "bad-token",
                "is not the name of a crawler",
                "write a name like \"googlebot\", or \"*\" for all crawlers",
            ),
        ) else {
            continue;
        };
        names.push(Located {
            value: name.to_owned(),
            span,
        });
        if value.is_null() {
            node.decoder.error_with_help(
                "wrong-type",
                span,
                format!("\"{name}\" has no directives"),
                "inside \"{ }\" a comma begins the next crawler. Write a list: \"googlebot: \
                 [noindex, nofollow]\"",
            );
            continue;
        }
        add_directives(rule, scope, value);
    }
    super::report_repeated(
        names.iter(),
        [
            "duplicate-key",
            "is listed twice",
            "write it once, with all of its directives: \"googlebot: [noindex, nofollow]\"",
        ],
        node.decoder,
    );
}

/// Decodes the directives for the crawlers of `scope`: a text, or a list.
fn add_directives(rule: &mut IndexingRule, scope: TagScope, node: NodeReader<'_>) {
    if node.is_empty() {
        node.error_with_help(
            "rule-without-tags",
            "this is empty",
            "write a directive, like \"noindex\"",
        );
    }
    for text in node.texts("directives, like \"noindex, noarchive\"") {
        match Directives::parse(&text) {
            Ok(directives) => rule.tags.add(scope.clone(), &directives),
            Err(DirectiveError { message, help }) => {
                let error = Diagnostic::error("bad-directive", text.span, message);
                node.decoder.push(Diagnostic { help, ..error });
            }
        }
        rule.written.push(WrittenDirectives {
            scope: scope.clone(),
            text,
        });
    }
}

/// Parses `*`, or the name of a crawler.
fn parse_scope(name: &str) -> Option<TagScope> {
    (is_plain_word(name, 64, "-_.") || name == "*").then(|| TagScope::from_name(name))
}

/// Decodes the conditions of a rule, or of its `not`.
fn conditions(fields: &mut MapFields<'_>) -> ResponseConditions {
    ResponseConditions {
        paths: condition_list(fields, "paths", patterns),
        path_regex: fields.get("path_regex", path_regex),
        types: condition_list(fields, "types", types),
        status: condition_list(fields, "status", status_conditions),
    }
}

/// Decodes a condition that is a list. An empty list is an error: it would not restrict, and
/// directives for some pages would be for all. An absent field is an empty list.
pub fn condition_list<T>(
    fields: &mut MapFields<'_>,
    name: &'static str,
    decode: fn(NodeReader<'_>) -> Vec<T>,
) -> Vec<T> {
    let Some((key, node)) = fields.field_with_key(name) else {
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
            format!("\"{name}\" is empty"),
            format!("omit \"{name}\" to mean all, or name some"),
        );
    }
    list
}

/// Decodes a regular expression that compiles.
fn path_regex(node: NodeReader<'_>) -> Option<Located<String>> {
    let text = node.located("a regular expression")?;
    let Some((what, help)) = regex_mistake(&text) else {
        return Some(text);
    };
    node.error_with_help("bad-regex", what, help);
    None
}

/// Decodes media types (`application/pdf` or `image/*`), in lower case. Parameters are an error.
fn types(node: NodeReader<'_>) -> Vec<Located<String>> {
    let mut types = node.texts("a list of media types");
    types.retain_mut(|media| {
        media.value.make_ascii_lowercase();
        let text = media.as_str();
        let (what, help) = if text == "*/*" {
            (
                "any media type, so it restricts nothing",
                "omit \"types\": a rule without it applies to all types",
            )
        } else if !is_media_type(text) {
            (
                "not a media type",
                "write \"application/pdf\" or \"image/*\", without parameters such as charset",
            )
        } else {
            return true;
        };
        node.decoder.error_with_help(
            "bad-type",
            media.span,
            format!("\"{text}\" is {what}"),
            help,
        );
        false
    });
    types
}

fn is_media_type(text: &str) -> bool {
    const SIGNS: &str = "-_.+!#$&^";
    text.split_once('/').is_some_and(|(kind, subtype)| {
        is_plain_word(kind, text.len(), SIGNS)
            && (subtype == "*" || is_plain_word(subtype, text.len(), SIGNS))
    })
}

/// Decodes status codes from 200 to 599, and classes from `2xx` to `5xx`. 304 is an error: it is
/// tagged as the 200 that it confirms.
fn status_conditions(node: NodeReader<'_>) -> Vec<Located<StatusCondition>> {
    let mut status_conditions = Vec::new();
    for Located { value: text, span } in node.texts("a list of status codes") {
        let value = match text.strip_suffix("xx") {
            Some(class) => class.parse().ok().map(Class),
            None => text.parse().ok().map(Code),
        };
        match value {
            Some(Code(304)) => node.decoder.error_with_help(
                "bad-status",
                span,
                "a 304 has the tags of the 200 that it confirms",
                "write 200: a rule for it also applies to its 304",
            ),
            Some(value @ (Class(2..=5) | Code(200..=599))) => {
                status_conditions.push(Located { value, span });
            }
            _ => node.decoder.error_with_help(
                "bad-status",
                span,
                format!("\"{text}\" is not a status"),
                "write a code from 200 to 599, or a class: \"4xx\"",
            ),
        }
    }
    status_conditions
}
