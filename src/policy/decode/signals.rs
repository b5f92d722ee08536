//! Decodes what a policy says about the use of the site's content, for example for AI training.
//! [`site`] and [`group`] read `content_signal`, `content_usage` and `license`, for the whole site
//! and for one group. [`site`] also reads `signals`, which says where these statements are
//! published. [`tdm`] reads the section `tdm` (text and data mining), and [`unlicensed`] the answer
//! to crawlers without a licence. A value that is accepted here cannot break the line of robots.txt
//! or the header that it is written into.

use super::indexing::listed;
use super::patterns::patterns;
use crate::policy::model::{
    ContentSignal, ContentUsage, Defaulted, Emission, GroupSignals, LicensePolicy, OriginRobots,
    Policy, SignalCategory, SiteSignals, TdmRule, USAGE_CATEGORIES, USES, Unlicensed,
};
use crate::robots::Pattern;
use crate::yaml::{Decoder, Fields, Located, Reader, Span, Value};

/// Longer URLs are cut by some readers.
const MAX_URL: usize = 2_000;
/// A key of a dictionary may be longer (RFC 9651 section 3.1.2); no draft has one.
const MAX_CATEGORY: usize = 64;
/// The most rules of a field.
const MAX_RULES: usize = 1_000;
/// Paths of all rules of a field together: their indexes are 16 bits wide.
const MAX_PATHS: usize = 10_000;

const NOTHING_SAID: &str = "nothing is said here";
const USE_WIDER: &str = "use wider patterns";

/// Decodes `content_signal`, `content_usage`, `license` and `signals` of `robots`, for the whole
/// site. Signals go into robots.txt and headers unless `signals` says otherwise.
pub fn site(fields: &mut Fields<'_>) -> SiteSignals {
    let emission = fields.located("signals", |node| node.variant("a place for signals"));
    SiteSignals {
        content_signal: fields.get("content_signal", content_signal),
        content_usage: fields.get_or_default("content_usage", content_usage),
        licenses: fields.get_or_default("license", licenses),
        emission: Defaulted::or(emission, Emission::All),
    }
}

/// Decodes `content_signal`, `content_usage` and `license` of one group. Unlike the site's, a
/// licence of a group has no paths.
pub fn group(fields: &mut Fields<'_>) -> GroupSignals {
    GroupSignals {
        content_signal: fields.get("content_signal", content_signal),
        content_usage: fields.get_or_default("content_usage", content_usage),
        licenses: fields.get_or_default("license", urls),
    }
}

/// Decodes a map of categories and `use`. `None` where nothing valid is in it; an empty map is an
/// error.
fn content_signal(node: Reader<'_>) -> Option<ContentSignal> {
    let wanted = "a map of categories, like `{ search: yes, ai-train: no }`";
    let signal = node.map(wanted, |fields| ContentSignal {
        said: SignalCategory::ALL
            .into_iter()
            .filter_map(|category| Some((category, fields.located(category.name(), yes_or_no)?)))
            .collect(),
        extent: fields.get("use", |node| {
            Some(USES[node.one_of(&USES, "how far the content may be used")?])
        }),
        span: node.span,
    })?;
    if node.is_empty() {
        node.error_with_help("empty-signal",
            NOTHING_SAID,
            "write `{ ai-train: no }`, say; a category that is absent is neither granted nor restricted",
        );
    }
    (!signal.said.is_empty() || signal.extent.is_some()).then_some(signal)
}

pub fn yes_or_no(node: Reader<'_>) -> Option<bool> {
    node.word(
        &[
            ("yes", true),
            ("no", false),
            ("true", true),
            ("false", false),
        ],
        "yes or no",
    )
}

/// The drafts write `y` and `n`.
fn y_or_n(node: Reader<'_>) -> Option<bool> {
    let words = [
        ("yes", true),
        ("no", false),
        ("y", true),
        ("n", false),
        ("true", true),
        ("false", false),
    ];
    node.word(&words, "yes or no")
}

/// Decodes `content_usage`: a list of rules, or a single one. A path in two rules is an error, and
/// so are two rules without paths.
fn content_usage(node: Reader<'_>) -> Vec<ContentUsage> {
    let wanted = [
        "a list of rules, like `{ train-ai: no }` or `{ paths: /open/, train-ai: yes }`",
        "a rule: paths, train-ai, ai-use, search",
    ];
    let rules = rules(node, wanted, usage_rule);
    one_rule_per_path(
        rules.iter().map(|rule| (rule.span, &rule.paths)),
        node.decoder,
    );
    rules
}

/// Decodes one rule: `paths`, a yes or no for each category of the vocabulary, and `other` with
/// further categories. `None` where no category has a valid value. A path that does not begin with
/// `/`, and a rule without any category, are errors.
fn usage_rule(fields: &mut Fields<'_>) -> Option<ContentUsage> {
    let paths = listed(fields, "paths", patterns);
    for path in paths.iter().filter(|path| !path.starts_with('/')) {
        fields.decoder.error_with_help(
            "bad-path",
            path.span,
            format!(
                "`{}` does not begin with `/`, as the path of a Content-Usage line must",
                path.value
            ),
            format!("write `/{}`", path.value),
        );
    }
    let mut said = Vec::new();
    for category in USAGE_CATEGORIES {
        if let Some((key, node)) = fields.take_with_key(category)
            && let Some(allows) = y_or_n(node)
        {
            let value = category.to_owned();
            let span = key.span;
            said.push((Located { value, span }, allows));
        }
    }
    if let Some(node) = fields.take("other") {
        let wanted = "a map of categories that the vocabulary does not have (yet)";
        let entries = node.entries(wanted);
        for (key, node) in entries.into_iter().flatten() {
            let allows = y_or_n(node);
            if let Some(category) = key.located("the name of a category")
                && category_is_valid(&category, &said, fields.decoder)
                && let Some(allows) = allows
            {
                said.push((category, allows));
            }
        }
    }
    if fields.has_only("paths") {
        fields.decoder.error_with_help(
            "empty-signal",
            fields.span,
            NOTHING_SAID,
            "write `train-ai: no`, say; a category that is absent is unknown",
        );
    }
    (!said.is_empty()).then_some(ContentUsage {
        paths,
        said,
        span: fields.span,
    })
}

/// Whether a category under `other` can be written into the line; otherwise adds an error. It must
/// be a key of a structured field (RFC 9651 section 3.1.2), which a capital letter would spoil
/// altogether, and must not be among those of the rule so far (`said`).
fn category_is_valid(
    name: &Located<String>,
    said: &[(Located<String>, bool)],
    decoder: &Decoder,
) -> bool {
    let text = name.as_str();
    if !is_category(text) {
        decoder.error_with_help(
            "bad-category",
            name.span,
            format!("`{}` is not the name of a category", text.escape_debug()),
            "a name begins with a small letter and holds small letters, digits, `_`, `-`, `.` and `*`",
        );
    } else if let Some((first, _)) = said.iter().find(|(other, _)| other.value == text) {
        decoder.duplicate(
            "duplicate-key",
            [name.span, first.span],
            format!("`{text}` is written twice"),
            "keep one of them; of two, readers take the last",
        );
    } else {
        return true;
    }
    false
}

/// Whether a text can be the name of a category: up to 64 of `a-z`, `0-9` and `_-.*`, the first of
/// them a letter.
pub fn is_category(text: &str) -> bool {
    text.starts_with(|sign: char| sign.is_ascii_lowercase())
        && text.len() <= MAX_CATEGORY
        && text.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte)
        })
}

/// Decodes the site's licences: one URL (`https://...`), a map of `url` and `paths`, or a list of
/// both. A licence without a valid URL is left out with an error.
fn licenses(node: Reader<'_>) -> Vec<LicensePolicy> {
    refuse_empty(node);
    if matches!(node.value, Value::Sequence(_)) {
        node.one_or_many("a list of licences")
            .filter_map(license)
            .collect()
    } else {
        license(node).into_iter().collect()
    }
}

fn license(node: Reader<'_>) -> Option<LicensePolicy> {
    if !node.is_map() {
        return Some(LicensePolicy {
            url: url(node, "the URL of a licence")?,
            paths: Vec::new(),
        });
    }
    node.map("a licence: url, paths", |fields| {
        fields.required("url", "a licence needs a `url`", None);
        let url = fields.get("url", |node| url(node, "an absolute URL"));
        let paths = listed(fields, "paths", patterns);
        Some(LicensePolicy { url: url?, paths })
    })?
}

/// Decodes the licences of a group: one URL, or a list. Those that are not valid are left out with
/// an error, and an empty list is an error.
fn urls(node: Reader<'_>) -> Vec<Located<String>> {
    refuse_empty(node);
    node.one_or_many("a list of URLs")
        .filter_map(|item| url(item, "a list of URLs"))
        .collect()
}

/// Decodes the section `tdm`: a list of rules, or a single one. A rule without a valid
/// `reservation` is left out with an error. A path in two rules is an error.
pub fn tdm(node: Reader<'_>) -> Vec<TdmRule> {
    let wanted = [
        "a list of rules, like `{ reservation: yes }`",
        "a rule: paths, reservation, policy",
    ];
    let rules = rules(node, wanted, |fields| {
        let paths = listed(fields, "paths", patterns);
        fields.required(
            "reservation",
            "this rule does not say `reservation`",
            "write `reservation: yes` (reserved) or `no` (not reserved)",
        );
        let reserved = fields.get("reservation", yes_or_no);
        let policy = fields.get("policy", |node| url(node, "the URL of a policy"));
        Some(TdmRule {
            paths,
            reserved: reserved?,
            policy,
            span: fields.span,
        })
    });
    one_rule_per_path(
        rules.iter().map(|rule| (rule.span, &rule.paths)),
        node.decoder,
    );
    rules
}

/// `pass`, 401 or 402.
pub fn unlicensed(node: Reader<'_>) -> Option<Unlicensed> {
    let words = [
        ("pass", Unlicensed::Pass),
        ("401", Unlicensed::Refuse(401)),
        ("402", Unlicensed::Refuse(402)),
    ];
    node.word(&words, "an answer to a crawler without a licence")
}

/// Adds an error for each demand for a licence where the policy names no licence (RSL 1.0 section
/// 6.3.3). A licence of a group counts if robots.txt publishes it. Nothing is checked where the
/// origin's file is read: that may name the licence, and a lint checks it.
pub fn whole_file(policy: &Policy, decoder: &Decoder) {
    let robots = &policy.robots;
    // The crawlers of a group with a licence of its own are asked for that one.
    let groups_have_one = robots.signals.emission.value == Emission::All
        && robots
            .groups
            .iter()
            .any(|group| !group.signals.licenses.is_empty());
    // A licence that is written wrong is not one that is missing.
    let is_written_wrong = decoder.diagnostics.borrow().items.iter().any(|item| {
        matches!(item.id, "bad-url" | "missing-field" | "wrong-type")
            && item.span.zip(robots.span).is_some_and(|(place, robots)| {
                robots.start <= place.start && place.end <= robots.end
            })
    });
    if groups_have_one
        || is_written_wrong
        || robots.origin != OriginRobots::Replace
        || !robots.signals.licenses.is_empty()
    {
        return;
    }
    for said in policy.asks_for_license() {
        decoder.error_with_help(
            "unlicensed-without-license",
            said.span,
            "there is no licence to ask for",
            "write where it is: for the site (`robots: { license: https://shop.example/license.xml }`) or in a \
                    group (`groups: [{ agents: GPTBot, license: https://shop.example/license.xml }]`)",
        );
    }
}

/// Refuses an empty list: it looks like a refusal of everything, but says nothing.
fn refuse_empty(node: Reader<'_>) {
    if matches!(node.value, Value::Sequence(_)) && node.is_empty() {
        node.error_with_help(
            "empty-signal",
            NOTHING_SAID,
            "say something, or leave the field out",
        );
    }
}

/// Decodes a list of maps, or a single map, with `read`. A list of more than 1,000 is an error and
/// gives nothing; an empty list is an error. `wanted` describes the list and one map in messages.
fn rules<T>(
    node: Reader<'_>,
    wanted: [&str; 2],
    read: impl FnMut(&mut Fields<'_>) -> Option<T>,
) -> Vec<T> {
    if matches!(&node.value, Value::Sequence(items) if items.len() > MAX_RULES) {
        node.error_with_help(
            "bad-value",
            format!("more than {MAX_RULES} rules"),
            USE_WIDER,
        );
        return Vec::new();
    }
    refuse_empty(node);
    node.maps(wanted, read)
}

/// Adds an error for each path that is in two rules. A rule without paths is for the whole site,
/// which is the path `/` here, and counts as the earlier of the two. At most 10,000 paths are
/// compared: more are an error.
fn one_rule_per_path<'a>(
    rules: impl Iterator<Item = (Span, &'a Vec<Located<String>>)>,
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
                USE_WIDER,
            );
            return;
        }
        if let Some(first) = seen.insert(Pattern::new(path), span) {
            let what = match path {
                "/" => "the whole site".to_owned(),
                path => format!("`{path}`"),
            };
            decoder.duplicate(
                "duplicate-path",
                [span, first],
                format!("{what} is spoken of in two rules"),
                "keep one of them; readers differ in which of two they follow",
            );
        }
    }
}

/// An absolute URL in printable ASCII. It stands in lines of robots.txt, between `<` and `>` in a
/// Link field, and by itself in a header; nothing that could end one of them is let in, nor a
/// fragment, which robots.txt takes for a comment.
fn url(node: Reader<'_>, wanted: &str) -> Option<Located<String>> {
    let url = node.located(wanted)?;
    let Some((message, help)) = url_mistake(&url) else {
        return Some(url);
    };
    node.decoder
        .error_with_help("bad-url", url.span, message, help);
    None
}

/// What is wrong with a URL, and the help. `None` for a good URL: http or https with a host, no
/// fragment, only characters that may stand in a URL, at most 2,000 bytes.
pub fn url_mistake(text: &str) -> Option<(String, &'static str)> {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    let has_host =
        rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', '?', ':', '@']));
    let shown: String = text.chars().take(100).collect();
    let shown = shown.escape_debug();
    let unfit = text
        .chars()
        .find(|sign| !sign.is_ascii_graphic() || "<>\"\\^`{|}".contains(*sign));
    Some(if !has_host {
        (
            format!("`{shown}` is not an absolute URL"),
            "write it whole: `https://shop.example/license.xml`",
        )
    } else if text.contains('#') {
        (
            format!("`{shown}` has a fragment, which robots.txt takes for a comment"),
            "write the URL without `#...`",
        )
    } else if let Some(sign) = unfit {
        (
            format!("`{}` cannot stand in a URL", sign.escape_debug()),
            "percent-encode it: a blank is `%20`, `é` is `%C3%A9`",
        )
    } else if text.len() > MAX_URL {
        (
            "this URL is longer than 2000 characters".to_owned(),
            "put the file at a shorter address",
        )
    } else {
        return None;
    })
}
