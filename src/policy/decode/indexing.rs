//! `indexing`: conditions, and what is then said.

use super::patterns::patterns;
use crate::indexing::{Directives, Scope, Tags, is_directive_name};
use crate::policy::model::{Conditions, IndexingRule, OriginTags, StatusCondition, WrittenDirectives};
use crate::policy::regular_expression::{Mistake, mistake_in};
use crate::yaml::{Decoder, Diagnostic, Fields, Located, Node, Severity, Span, Value};

pub fn rules(node: &Node, decoder: &mut Decoder<'_>) -> Vec<IndexingRule> {
    let items = decoder.one_or_many_maps(node, "a list of rules, each with conditions and a tag");
    items.iter().filter_map(|item| rule(item, decoder)).collect()
}

fn rule(node: &Node, decoder: &mut Decoder<'_>) -> Option<IndexingRule> {
    let mut fields = decoder.fields(node, "a rule: conditions (paths, types, ...) and `tag` or `tags`")?;
    let when = conditions(&mut fields, decoder);
    let unless = fields.take("not").and_then(|node| {
        let mut fields = decoder.fields(node, "conditions: paths, path_regex, types, status")?;
        let empty = node.is_null() || matches!(&node.value, Value::Mapping(entries) if entries.is_empty());
        let unless = conditions(&mut fields, decoder);
        fields.finish(decoder);
        if empty {
            decoder.error("empty-not", node.span, "an empty `not` would exclude everything");
            return None;
        }
        Some(unless)
    });
    let mut said = Said::default();
    let tag = fields.take("tag");
    let scoped = fields.take("tags");
    let origins = fields.take("origin_tags");
    let origin_tags = origins.and_then(|node| self::origin_tags(node, decoder));
    if let Some(node) = tag {
        said.add(Scope::All, node, decoder);
    }
    if let Some(node) = scoped {
        add_scoped(node, &mut said, decoder);
    }
    fields.finish(decoder);
    if (tag, scoped, origin_tags) == (None, None, Some(OriginTags::Replace)) {
        decoder
            .error("rule-without-tags", node.span, "this rule has nothing to put in the place of what the origin says")
            .help = Some("write `strip` to take it away, or a `tag`".into());
    }
    if tag.is_none() && scoped.is_none() && origins.is_none() {
        decoder.error("rule-without-tags", node.span, "this rule says nothing: it has neither `tag` nor `tags`").help =
            Some("write `tag: noindex`".into());
    }
    let Said { tags, written } = said;
    Some(IndexingRule { when, unless, tags, written, origin_tags, span: node.span })
}

/// What `tags` says to each crawler.
fn add_scoped(node: &Node, said: &mut Said, decoder: &mut Decoder<'_>) {
    let Some(entries) = decoder.entries(node, "a map of crawlers, like `googlebot: noindex`") else { return };
    if entries.is_empty() {
        decoder.error("rule-without-tags", node.span, "nothing is said here");
    }
    let mut told: Vec<(Scope, Span)> = Vec::new();
    for (key, value) in entries {
        let Some(name) = decoder.located(key, "the name of a crawler, or \"*\"") else { continue };
        if is_directive_name(&name.value) {
            decoder
                .error("bad-token", name.span, format!("`{}` is a directive, not the name of a crawler", name.value))
                .help = Some(
                "`tags` says who is told what (`googlebot: noindex`); what everybody is told stands in `tag`".into(),
            );
            continue;
        }
        if let Some(scope) = scope(&name, decoder) {
            // The same text twice is an error of every map; case does not matter in the name of a crawler.
            if let Some((_, first)) = told.iter().find(|(known, first)| *known == scope && *first != name.span) {
                let diagnostic =
                    Diagnostic::error("duplicate-key", name.span, format!("`{}` is told something twice", name.value))
                        .related(*first, "first here, in other letters")
                        .help("write it once, with all that it is told: `googlebot: [noindex, nofollow]`");
                decoder.diagnostics.push(diagnostic);
            }
            told.push((scope.clone(), name.span));
            if value.is_null() {
                decoder.error("wrong-type", key.span, format!("`{}` is told nothing", name.value)).help = Some(
                    "inside `{ }` a comma begins the next crawler: write a list, `googlebot: [noindex, nofollow]`"
                        .into(),
                );
                continue;
            }
            said.add(scope, value, decoder);
        }
    }
}

/// What is to be done with the origin's own lines.
pub fn origin_tags(node: &Node, decoder: &mut Decoder<'_>) -> Option<OriginTags> {
    let words = [
        ("keep", OriginTags::Keep),
        ("merge", OriginTags::Merge),
        ("replace", OriginTags::Replace),
        ("strip", OriginTags::Strip),
    ];
    decoder.word(node, &words, "a way to treat the origin's tags")
}

/// What a rule says: together, and piece by piece as it was written.
#[derive(Default)]
struct Said {
    tags: Tags,
    written: Vec<WrittenDirectives>,
}

impl Said {
    fn add(&mut self, scope: Scope, node: &Node, decoder: &mut Decoder<'_>) {
        let (directives, texts) = directives(node, decoder);
        self.tags.add(scope.clone(), &directives);
        self.written.extend(texts.into_iter().map(|text| WrittenDirectives { scope: scope.clone(), text }));
    }
}

fn scope(name: &Located<String>, decoder: &mut Decoder<'_>) -> Option<Scope> {
    let text = name.value.as_str();
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if text == "*" || !text.is_empty() && text.len() <= 64 && text.bytes().all(token) {
        return Some(Scope::named(text));
    }
    decoder.error("bad-token", name.span, format!("`{text}` is not the name of a crawler")).help =
        Some("write a name like `googlebot`, or \"*\" for all".into());
    None
}

fn directives(node: &Node, decoder: &mut Decoder<'_>) -> (Directives, Vec<Located<String>>) {
    let mut all = Directives::default();
    if matches!(&node.value, Value::Sequence(items) if items.is_empty()) {
        decoder.error("rule-without-tags", node.span, "nothing is said here").help =
            Some("write `noindex`, say".into());
    }
    let texts = decoder.texts(node, "directives, like `noindex, noarchive`");
    for written in &texts {
        match Directives::parse(&written.value) {
            Ok(directives) => all.extend(&directives),
            Err(error) => decoder.error("bad-directive", written.span, error.message).help = error.help,
        }
    }
    (all, texts)
}

fn conditions(fields: &mut Fields<'_>, decoder: &mut Decoder<'_>) -> Conditions {
    Conditions {
        paths: listed(fields, "paths", patterns, decoder),
        path_regex: fields.take("path_regex").and_then(|node| path_regex(node, decoder)),
        types: listed(fields, "types", types, decoder),
        status: listed(fields, "status", statuses, decoder),
    }
}

/// A condition that is a list. One that names nothing would not restrict, and what is meant for some pages be said of
/// all.
pub fn listed<T>(
    fields: &mut Fields<'_>,
    name: &'static str,
    decode: fn(&Node, &mut Decoder<'_>) -> Vec<T>,
    decoder: &mut Decoder<'_>,
) -> Vec<T> {
    let Some((key, node)) = fields.take_with_key(name) else { return Vec::new() };
    let before = decoder.diagnostics.items.iter().filter(|item| item.severity == Severity::Error).count();
    let list = decode(node, decoder);
    let errors = decoder.diagnostics.items.iter().filter(|item| item.severity == Severity::Error).count();
    if list.is_empty() && errors == before {
        decoder.error("empty-condition", key.span, format!("`{name}` names nothing")).help =
            Some(format!("leave out `{name}` to mean all, or say which"));
    }
    list
}

fn path_regex(node: &Node, decoder: &mut Decoder<'_>) -> Option<Located<String>> {
    let text = decoder.located(node, "a regular expression")?;
    if let Some(Mistake { what, help }) = mistake_in(&text.value) {
        decoder.error("bad-regex", node.span, what).help = Some(help);
        return None;
    }
    Some(text)
}

fn types(node: &Node, decoder: &mut Decoder<'_>) -> Vec<Located<String>> {
    let mut types = decoder.texts(node, "a list of media types");
    types.retain_mut(|media| {
        media.value.make_ascii_lowercase();
        let token = |part: &str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.+!#$&^".contains(&byte))
        };
        let is_type = |text: &str| {
            text.split_once('/').is_some_and(|(kind, subtype)| token(kind) && (subtype == "*" || token(subtype)))
        };
        let valid = is_type(&media.value);
        let bare = media.value.split_once(';').map(|(bare, _)| bare.trim()).filter(|bare| is_type(bare));
        if let Some(bare) = bare {
            // Taken as it is it would promise to tell one charset from another.
            decoder.error("bad-type", media.span, format!("`{}` is a media type with parameters", media.value)).help =
                Some(format!("leave the parameters out: `{bare}` matches with any charset"));
        } else if media.value == "*/*" {
            decoder.error("bad-type", media.span, "`*/*` is any media type, which restricts nothing").help =
                Some("leave `types` out: what has none holds for every type".into());
        } else if !valid {
            decoder.error("bad-type", media.span, format!("`{}` is not a media type", media.value)).help =
                Some("write `application/pdf` or \"image/*\", without parameters such as charset".into());
        }
        valid
    });
    types
}

fn statuses(node: &Node, decoder: &mut Decoder<'_>) -> Vec<Located<StatusCondition>> {
    let written = decoder.texts(node, "a list of status codes");
    written
        .into_iter()
        .filter_map(|status| {
            let class = status
                .value
                .strip_suffix("xx")
                .and_then(|class| class.parse().ok())
                .filter(|class| (2..=5).contains(class));
            let code = status.value.parse().ok().filter(|code| (200..=599).contains(code));
            if code == Some(304) {
                decoder.error("bad-status", status.span, "a 304 is tagged as the 200 it speaks of").help =
                    Some("write 200: what holds for the page holds for its confirmation".into());
                return None;
            }
            let value = class.map(StatusCondition::Class).or(code.map(StatusCondition::Code));
            if value.is_none() {
                decoder.error("bad-status", status.span, format!("`{}` is not a status", status.value)).help =
                    Some("write a code from 200 to 599, or a class: `4xx`".into());
            }
            value.map(|value| Located { value, span: status.span })
        })
        .collect()
}
