//! Decodes what a policy says about the use of the site's content, for example for AI training.
//! [`site_signals`] decodes fields of the section `robots`, and [`group_signals`] fields of its
//! groups. [`tdm`] decodes the section `tdm` (text and data mining), and [`unlicensed`] the answer
//! to crawlers without a licence. An accepted value always fits into one line of robots.txt or one
//! header field.

use super::indexing::condition_list;
use super::patterns::patterns;
use crate::policy::model::{
    ContentSignal, ContentUsageRule, GroupSignals, LicensePolicy, SignalCategory, SiteSignals,
    TdmRule, USAGE_CATEGORIES, USES, UnlicensedAnswer,
};
use crate::policy::signal_lines::is_category;
use crate::robots::PathPattern;
use crate::yaml::{
    Decoder, Located, MapFields, NodeReader, NodeValue, SourceSpan, strip_http_scheme,
};

/// The most bytes of a URL. Some readers cut longer ones.
const MAX_URL: usize = 2_000;
/// The most paths of all rules of a field.
const MAX_PATHS: usize = 10_000;

const NOTHING_SAID: &str = "this is empty";

/// Decodes `content_signal`, `content_usage`, `license` and `signals` of `robots`.
pub fn site_signals(fields: &mut MapFields<'_>) -> SiteSignals {
    SiteSignals {
        content_signal: fields.get("content_signal", content_signal),
        content_usage: fields.get_or_default("content_usage", content_usage),
        licenses: fields.get_or_default("license", licenses),
        placement: fields
            .variant("signals", "a value of \"signals\"")
            .unwrap_or_default(),
    }
}

/// Decodes `content_signal`, `content_usage` and `license` of one group, whose licences have no
/// paths.
pub fn group_signals(fields: &mut MapFields<'_>) -> GroupSignals {
    GroupSignals {
        content_signal: fields.get("content_signal", content_signal),
        content_usage: fields.get_or_default("content_usage", content_usage),
        licenses: fields.get_or_default("license", urls),
    }
}

/// Decodes a map of categories and `use`. `None` if nothing in it is valid.
fn content_signal(node: NodeReader<'_>) -> Option<ContentSignal> {
    let signal = node.decode_map(
        "a map of categories, like \"{ search: yes, ai-train: no }\"",
        |fields| ContentSignal {
            values: SignalCategory::ALL
                .into_iter()
                .filter_map(|category| {
                    Some((
                        category,
                        fields.located(category.name(), NodeReader::boolean)?,
                    ))
                })
                .collect(),
            extent: fields.get("use", |node| {
                Some(USES[node.word_position(&USES, "a value of \"use\"")?])
            }),
            span: node.span,
        },
    )?;
    if node.is_empty() {
        node.error_with_help(
            "empty-signal",
            NOTHING_SAID,
            "write a category, like \"{ ai-train: no }\"; a missing category is neither granted \
             nor restricted",
        );
    }
    (!signal.values.is_empty() || signal.extent.is_some()).then_some(signal)
}

/// Decodes `content_usage`: a list of rules, or a single one.
fn content_usage(node: NodeReader<'_>) -> Vec<ContentUsageRule> {
    let rules = rule_list(
        node,
        [
            "a list of rules, like \"{ train-ai: no }\" or \"{ paths: /open/, train-ai: yes }\"",
            "a rule: paths, train-ai, ai-use, search",
        ],
        usage_rule,
    );
    check_unique_paths(
        rules.iter().map(|rule| (rule.span, &rule.paths)),
        node.decoder,
    );
    rules
}

/// Decodes one rule: `paths`, yes or no for each category of the vocabulary, and further categories
/// under `other`. `None` if no category has a valid value.
fn usage_rule(fields: &mut MapFields<'_>) -> Option<ContentUsageRule> {
    let paths = condition_list(fields, "paths", patterns);
    for path in paths.iter().filter(|path| !path.starts_with('/')) {
        fields.decoder.error_with_help(
            "bad-path",
            path.span,
            format!(
                "\"{}\" does not begin with \"/\", but the path of a Content-Usage line must",
                path.value
            ),
            format!("write \"/{}\"", path.value),
        );
    }
    let mut values = Vec::new();
    for category in USAGE_CATEGORIES {
        if let Some((key, node)) = fields.field_with_key(category)
            && let Some(allows) = node.boolean()
        {
            values.push((
                Located {
                    value: category.to_owned(),
                    span: key.span,
                },
                allows,
            ));
        }
    }
    if let Some(node) = fields.field("other") {
        let entries = node.entries("a map of categories that the vocabulary does not have");
        for (key, node) in entries.into_iter().flatten() {
            let allows = node.boolean();
            if let Some(category) = key.located("the name of a category")
                && check_category(&category, fields.decoder)
                && let Some(allows) = allows
            {
                values.push((category, allows));
            }
        }
    }
    super::report_repeated(
        values.iter().map(|(name, _)| name),
        [
            "duplicate-key",
            "is written twice",
            "remove one of the two: readers take the last",
        ],
        fields.decoder,
    );
    if fields.has_only("paths") {
        fields.decoder.error_with_help(
            "empty-signal",
            fields.span,
            NOTHING_SAID,
            "write a category, like \"train-ai: no\"; a missing category is unknown",
        );
    }
    (!values.is_empty()).then_some(ContentUsageRule {
        paths,
        values,
        span: fields.span,
    })
}

/// Whether a category under `other` is valid; otherwise adds an error.
fn check_category(name: &Located<String>, decoder: &Decoder) -> bool {
    let text = name.as_str();
    let is_valid = is_category(text);
    if !is_valid {
        decoder.error_with_help(
            "bad-category",
            name.span,
            format!("\"{}\" is not the name of a category", text.escape_debug()),
            "a name begins with a lower-case letter and has lower-case letters, digits, \"_\", \
             \"-\", \".\" and \"*\"",
        );
    }
    is_valid
}

/// Decodes the site's licences: one URL, a map of `url` and `paths`, or a list of both.
fn licenses(node: NodeReader<'_>) -> Vec<LicensePolicy> {
    reject_empty_list(node);
    node.one_or_many("the URL of a licence")
        .filter_map(license)
        .collect()
}

fn license(node: NodeReader<'_>) -> Option<LicensePolicy> {
    if !node.is_map() {
        return Some(LicensePolicy {
            url: url(node, "the URL of a licence", LICENSE)?,
            paths: Vec::new(),
        });
    }
    node.decode_map("a licence: url, paths", |fields| {
        fields.required_field("url", "a licence needs a \"url\"", None);
        let url = fields.get("url", |node| url(node, "an absolute URL", LICENSE));
        let paths = condition_list(fields, "paths", patterns);
        Some(LicensePolicy { url: url?, paths })
    })?
}

/// Decodes the licences of a group: one URL, or a list.
fn urls(node: NodeReader<'_>) -> Vec<Located<String>> {
    reject_empty_list(node);
    node.one_or_many("a list of URLs")
        .filter_map(|item| url(item, "a list of URLs", LICENSE))
        .collect()
}

/// Decodes the section `tdm`: a list of rules, or a single one.
pub fn tdm(node: NodeReader<'_>) -> Vec<TdmRule> {
    let rules = rule_list(
        node,
        [
            "a list of rules, like \"{ reservation: yes }\"",
            "a rule: paths, reservation, policy",
        ],
        |fields| {
            let paths = condition_list(fields, "paths", patterns);
            fields.required_field(
                "reservation",
                "this rule has no \"reservation\"",
                "write \"reservation: yes\" (reserved) or \"no\" (not reserved)",
            );
            let reserved = fields.get("reservation", NodeReader::boolean);
            let policy = fields.get("policy", |node| {
                url(node, "the URL of a TDM policy", "tdm-policy.json")
            });
            Some(TdmRule {
                paths,
                reserved: reserved?,
                policy,
                span: fields.span,
            })
        },
    );
    check_unique_paths(
        rules.iter().map(|rule| (rule.span, &rule.paths)),
        node.decoder,
    );
    rules
}

/// `pass`, 401 or 402.
pub fn unlicensed(node: NodeReader<'_>) -> Option<UnlicensedAnswer> {
    let words = [
        ("pass", UnlicensedAnswer::Pass),
        ("401", UnlicensedAnswer::Refuse(401)),
        ("402", UnlicensedAnswer::Refuse(402)),
    ];
    node.word(&words, "an answer to a crawler without a licence")
}

/// Adds an error for an empty list, which looks like a refusal of everything.
fn reject_empty_list(node: NodeReader<'_>) {
    if matches!(node.value, NodeValue::Sequence(_)) && node.is_empty() {
        node.error_with_help(
            "empty-signal",
            NOTHING_SAID,
            "write a value, or omit the field",
        );
    }
}

/// Decodes a list of maps, or a single map, with `read`. `wanted` describes the list and one map in
/// messages.
fn rule_list<T>(
    node: NodeReader<'_>,
    wanted: [&str; 2],
    read: impl FnMut(&mut MapFields<'_>) -> Option<T>,
) -> Vec<T> {
    reject_empty_list(node);
    node.decode_maps(wanted, read)
}

/// Adds an error for each path that is in two rules. A rule without paths counts as `/`.
fn check_unique_paths<'a>(
    rules: impl Iterator<Item = (SourceSpan, &'a Vec<Located<String>>)>,
    decoder: &Decoder,
) {
    let paths = rules.flat_map(|(span, paths)| {
        let whole_site = paths.is_empty().then_some((span, "/"));
        paths
            .iter()
            .map(|path| (path.span, path.as_str()))
            .chain(whole_site)
    });
    let mut seen = std::collections::HashMap::new();
    for (count, (span, path)) in paths.enumerate() {
        if count == MAX_PATHS {
            decoder.error_with_help(
                "bad-value",
                span,
                format!("more than {MAX_PATHS} paths"),
                "use wider patterns",
            );
            return;
        }
        if let Some(first) = seen.insert(PathPattern::new(path), span) {
            let what = match path {
                "/" => "the whole site".to_owned(),
                path => format!("\"{path}\""),
            };
            decoder.duplicate(
                "duplicate-path",
                [span, first],
                format!("{what} is in two rules"),
                "remove one of the two: readers differ in which one they follow",
            );
        }
    }
}

/// The file in the example of the help for a bad URL.
const LICENSE: &str = "license.xml";

/// Decodes an absolute URL for lines of robots.txt, for `<...>` in a Link header, and for other
/// headers: nothing in it may end one of these.
fn url(node: NodeReader<'_>, wanted: &str, example: &str) -> Option<Located<String>> {
    let url = node.located(wanted)?;
    let Some((message, help)) = url_mistake(&url) else {
        return Some(url);
    };
    let help = help.map_or_else(
        || format!("write the full URL, like \"https://shop.example/{example}\""),
        str::to_owned,
    );
    node.decoder
        .error_with_help("bad-url", url.span, message, help);
    None
}

/// What is wrong with a URL, and the help unless it is an example of a URL; `None` for a valid one.
/// robots.txt would take a fragment for a comment.
pub fn url_mistake(text: &str) -> Option<(String, Option<&'static str>)> {
    let has_host = strip_http_scheme(text)
        .is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', '?', ':', '@']));
    let shown: String = text.chars().take(100).collect();
    let shown = shown.escape_debug();
    let unfit = text
        .chars()
        .find(|sign| !sign.is_ascii_graphic() || "<>\"\\^`{|}".contains(*sign));
    Some(if !has_host {
        (format!("\"{shown}\" is not an absolute URL"), None)
    } else if text.contains('#') {
        (
            format!("\"{shown}\" has a fragment, which robots.txt takes for a comment"),
            Some("write the URL without \"#...\""),
        )
    } else if let Some(sign) = unfit {
        (
            format!("a URL cannot contain \"{}\"", sign.escape_debug()),
            Some("percent-encode it: a space is \"%20\", \"é\" is \"%C3%A9\""),
        )
    } else if text.len() > MAX_URL {
        (
            "this URL is longer than 2,000 characters".to_owned(),
            Some("put the file at a shorter address"),
        )
    } else {
        return None;
    })
}
