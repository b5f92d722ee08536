//! `content_signal`, `content_usage`, `license`, `signals` and `unlicensed`, and the section `tdm`. What is accepted
//! here can leave neither its line of robots.txt nor its header.

use super::indexing::listed;
use super::patterns::patterns;
use crate::policy::model::{
    ContentSignal, ContentUsage, Defaulted, Emission, GroupSignals, LicensePolicy, OriginRobots, Policy,
    SignalCategory, SiteSignals, TdmRule, USAGE_CATEGORIES, USES, Unlicensed,
};
use crate::robots::Pattern;
use crate::yaml::{Decoder, Diagnostic, Fields, Located, Node, Span, Value};

/// Longer URLs are cut by some readers.
const MAX_URL: usize = 2_000;
/// A key of a dictionary may be longer (RFC 9651 section 3.1.2); no draft has one.
const MAX_CATEGORY: usize = 64;
/// More belong into another language.
const MAX_RULES: usize = 1_000;
/// Paths of all rules of a field together: their indexes are 16 bits wide.
const MAX_PATHS: usize = 10_000;

const YES_NO: [(&str, bool); 4] = [("yes", true), ("no", false), ("true", true), ("false", false)];
/// The drafts write `y` and `n`.
const Y_N: [(&str, bool); 6] =
    [("yes", true), ("no", false), ("y", true), ("n", false), ("true", true), ("false", false)];

/// A site that says nothing.
pub fn nothing() -> SiteSignals {
    let emission = Defaulted::new(Emission::All);
    SiteSignals { content_signal: None, content_usage: Vec::new(), licenses: Vec::new(), emission }
}

/// The fields of `robots`.
pub fn site(fields: &mut Fields<'_>, decoder: &mut Decoder<'_>) -> SiteSignals {
    let emissions = [("all", Emission::All), ("headers_only", Emission::HeadersOnly)];
    let emission = fields.take("signals").and_then(|node| {
        let value = decoder.word(node, &emissions, "a place for signals")?;
        Some(Defaulted { value, span: Some(node.span) })
    });
    SiteSignals {
        content_signal: fields.take("content_signal").and_then(|node| content_signal(node, decoder)),
        content_usage: fields.take("content_usage").map(|node| content_usage(node, decoder)).unwrap_or_default(),
        licenses: fields.take("license").map(|node| licenses(node, decoder)).unwrap_or_default(),
        emission: emission.unwrap_or(Defaulted::new(Emission::All)),
    }
}

/// The fields of a group.
pub fn group(fields: &mut Fields<'_>, decoder: &mut Decoder<'_>) -> GroupSignals {
    GroupSignals {
        content_signal: fields.take("content_signal").and_then(|node| content_signal(node, decoder)),
        content_usage: fields.take("content_usage").map(|node| content_usage(node, decoder)).unwrap_or_default(),
        licenses: fields.take("license").map(|node| urls(node, decoder)).unwrap_or_default(),
    }
}

fn content_signal(node: &Node, decoder: &mut Decoder<'_>) -> Option<ContentSignal> {
    let mut fields = decoder.fields(node, "a map of categories, like `{ search: yes, ai-train: no }`")?;
    let empty = matches!(&node.value, Value::Mapping(entries) if entries.is_empty());
    let mut said = Vec::new();
    for category in SignalCategory::ALL {
        let Some(node) = fields.take(category.name()) else { continue };
        let Some(value) = decoder.word(node, &YES_NO, "yes or no") else { continue };
        said.push((category, Located { value, span: node.span }));
    }
    let words = USES.map(|word| (word, word));
    let extent = fields.take("use").and_then(|node| decoder.word(node, &words, "how far the content may be used"));
    fields.finish(decoder);
    if empty {
        decoder.error("empty-signal", node.span, "nothing is said here").help =
            Some("write `{ ai-train: no }`, say; a category that is absent is neither granted nor restricted".into());
    }
    (!said.is_empty() || extent.is_some()).then_some(ContentSignal { said, extent, span: node.span })
}

fn content_usage(node: &Node, decoder: &mut Decoder<'_>) -> Vec<ContentUsage> {
    let rules: Vec<ContentUsage> =
        maps(node, "a list of rules, like `{ train-ai: no }` or `{ paths: /open/, train-ai: yes }`", decoder)
            .iter()
            .filter_map(|item| usage_rule(item, decoder))
            .collect();
    let whole_site = rules.iter().filter(|rule| rule.paths.is_empty()).map(|rule| (rule.span, None));
    let paths = rules.iter().flat_map(|rule| rule.paths.iter().map(|path| (path.span, Some(path.value.as_str()))));
    one_rule_per_path(whole_site.chain(paths), decoder);
    rules
}

fn usage_rule(node: &Node, decoder: &mut Decoder<'_>) -> Option<ContentUsage> {
    let mut fields = decoder.fields(node, "a rule: paths, train-ai, ai-use, search")?;
    let paths = listed(&mut fields, "paths", patterns, decoder);
    for path in paths.iter().filter(|path| !path.value.starts_with('/')) {
        let message = format!("`{}` does not begin with `/`, as the path of a Content-Usage line must", path.value);
        decoder.error("bad-path", path.span, message).help = Some(format!("write `/{}`", path.value));
    }
    let mut said = Vec::new();
    for category in USAGE_CATEGORIES {
        let Some((key, node)) = fields.take_with_key(category) else { continue };
        let Some(value) = decoder.word(node, &Y_N, "yes or no") else { continue };
        said.push((Located { value: category.to_owned(), span: key.span }, value));
    }
    if let Some(entries) = fields
        .take("other")
        .and_then(|node| decoder.entries(node, "a map of categories that the vocabulary does not have (yet)"))
    {
        for (key, node) in entries {
            let Some(category) = decoder.located(key, "the name of a category") else { continue };
            let valid = category_is_valid(&category, &said, decoder);
            let Some(value) = decoder.word(node, &Y_N, "yes or no") else { continue };
            if valid {
                said.push((category, value));
            }
        }
    }
    let empty = matches!(&node.value, Value::Mapping(entries)
        if !entries.iter().any(|(key, _)| !matches!(&key.value, Value::Scalar { text, .. } if text == "paths")));
    fields.finish(decoder);
    if empty {
        decoder.error("empty-signal", node.span, "nothing is said here").help =
            Some("write `train-ai: no`, say; a category that is absent is unknown".into());
    }
    (!said.is_empty()).then_some(ContentUsage { paths, said, span: node.span })
}

/// A key of a structured field (RFC 9651 section 3.1.2), which a capital letter would spoil altogether.
fn category_is_valid(name: &Located<String>, said: &[(Located<String>, bool)], decoder: &mut Decoder<'_>) -> bool {
    let text = name.value.as_str();
    if !is_category(text) {
        decoder
            .error("bad-category", name.span, format!("`{}` is not the name of a category", text.escape_debug()))
            .help =
            Some("a name begins with a small letter and holds small letters, digits, `_`, `-`, `.` and `*`".into());
        return false;
    }
    if let Some((first, _)) = said.iter().find(|(other, _)| other.value == text) {
        let diagnostic = Diagnostic::error("duplicate-key", name.span, format!("`{text}` is written twice"))
            .related(first.span, "first here")
            .help("keep one of them; of two, readers take the last");
        decoder.diagnostics.push(diagnostic);
        return false;
    }
    true
}

/// Whether a text can be the name of a category.
pub fn is_category(text: &str) -> bool {
    let begins = text.starts_with(|sign: char| sign.is_ascii_lowercase());
    let rest = text.chars().all(|sign| sign.is_ascii_lowercase() || sign.is_ascii_digit() || "_-.*".contains(sign));
    begins && rest && text.len() <= MAX_CATEGORY
}

/// `https://...`, a list, or maps with `paths`.
fn licenses(node: &Node, decoder: &mut Decoder<'_>) -> Vec<LicensePolicy> {
    let items = match &node.value {
        Value::Sequence(items) => {
            nothing_said(node, items, decoder);
            items.as_slice()
        }
        _ => std::slice::from_ref(node),
    };
    items
        .iter()
        .filter_map(|item| {
            if !matches!(item.value, Value::Mapping(_)) {
                let url = decoder.located(item, "the URL of a licence")?;
                return url_is_valid(&url, decoder).then_some(LicensePolicy { url, paths: Vec::new() });
            }
            let mut fields = decoder.fields(item, "a licence: url, paths")?;
            let url = required_url(&mut fields, "url", "a licence", decoder);
            let paths = listed(&mut fields, "paths", patterns, decoder);
            fields.finish(decoder);
            Some(LicensePolicy { url: url?, paths })
        })
        .collect()
}

fn urls(node: &Node, decoder: &mut Decoder<'_>) -> Vec<Located<String>> {
    if let Value::Sequence(items) = &node.value {
        nothing_said(node, items, decoder);
    }
    let written = decoder.texts(node, "a list of URLs");
    written.into_iter().filter(|url| url_is_valid(url, decoder)).collect()
}

/// The section `tdm`.
pub fn tdm(node: &Node, decoder: &mut Decoder<'_>) -> Vec<TdmRule> {
    let rules: Vec<TdmRule> = maps(node, "a list of rules, like `{ reservation: yes }`", decoder)
        .iter()
        .filter_map(|item| {
            let mut fields = decoder.fields(item, "a rule: paths, reservation, policy")?;
            let paths = listed(&mut fields, "paths", patterns, decoder);
            let reserved = match fields.take("reservation") {
                Some(node) => decoder.word(node, &YES_NO, "yes or no"),
                None => {
                    decoder.error("missing-field", item.span, "this rule does not say `reservation`").help =
                        Some("write `reservation: yes` (reserved) or `no` (not reserved)".into());
                    None
                }
            };
            let policy = fields.take("policy").and_then(|node| {
                let url = decoder.located(node, "the URL of a policy")?;
                url_is_valid(&url, decoder).then_some(url)
            });
            fields.finish(decoder);
            Some(TdmRule { paths, reserved: reserved?, policy, span: item.span })
        })
        .collect();
    let whole_site = rules.iter().filter(|rule| rule.paths.is_empty()).map(|rule| (rule.span, None));
    let paths = rules.iter().flat_map(|rule| rule.paths.iter().map(|path| (path.span, Some(path.value.as_str()))));
    one_rule_per_path(whole_site.chain(paths), decoder);
    rules
}

/// `pass`, 401 or 402.
pub fn unlicensed(node: &Node, decoder: &mut Decoder<'_>) -> Option<Located<Unlicensed>> {
    let words = [("pass", Unlicensed::Pass), ("401", Unlicensed::Refuse(401)), ("402", Unlicensed::Refuse(402))];
    let value = decoder.word(node, &words, "an answer to a crawler without a licence")?;
    Some(Located { value, span: node.span })
}

/// A refusal for want of a licence must say which (RSL 1.0 section 6.3.3). Where the origin's file is read it may name
/// one: whether it does is for those who have it at hand.
pub fn whole_file(policy: &Policy, decoder: &mut Decoder<'_>) {
    let in_robots =
        |place: Span| policy.robots.span.is_some_and(|span| span.start <= place.start && place.end <= span.end);
    let is_mistake = |item: &Diagnostic| {
        matches!(item.id, "bad-url" | "missing-field" | "wrong-type") && item.span.is_some_and(in_robots)
    };
    // Of a licence that a group is told its crawlers are asked for.
    let told = policy.robots.signals.emission.value == Emission::All
        && policy.robots.groups.iter().any(|group| !group.signals.licenses.is_empty());
    // A licence that is written wrong is not one that is missing.
    if told
        || policy.robots.origin != OriginRobots::Replace
        || !policy.robots.signals.licenses.is_empty()
        || decoder.diagnostics.items.iter().any(is_mistake)
    {
        return;
    }
    for said in policy.asks_for_license() {
        decoder.error("unlicensed-without-license", said.span, "there is no licence to ask for").help = Some(
            "write where it is: for the site (`robots: { license: https://shop.example/license.xml }`) or in a group \
             (`groups: [{ agents: GPTBot, license: https://shop.example/license.xml }]`)"
                .into(),
        );
    }
}

/// An empty list reads like "nothing may be", and says nothing.
fn nothing_said(node: &Node, items: &[Node], decoder: &mut Decoder<'_>) {
    if items.is_empty() {
        decoder.error("empty-signal", node.span, "nothing is said here").help =
            Some("say something, or leave the field out".into());
    }
}

fn maps<'n>(node: &'n Node, wanted: &str, decoder: &mut Decoder<'_>) -> &'n [Node] {
    match &node.value {
        Value::Sequence(items) if items.len() > MAX_RULES => {
            decoder.error("bad-value", node.span, format!("more than {MAX_RULES} rules")).help =
                Some("use wider patterns".into());
            &[]
        }
        Value::Sequence(items) => {
            nothing_said(node, items, decoder);
            items
        }
        _ => decoder.one_or_many_maps(node, wanted),
    }
}

fn one_rule_per_path<'a>(rules: impl Iterator<Item = (Span, Option<&'a str>)>, decoder: &mut Decoder<'_>) {
    let mut seen: std::collections::HashMap<Pattern, Span> = std::collections::HashMap::new();
    for (count, (span, path)) in rules.enumerate() {
        if count == MAX_PATHS {
            decoder.error("bad-value", span, format!("more than {MAX_PATHS} paths")).help =
                Some("use wider patterns".into());
            return;
        }
        let Some(first) = seen.insert(Pattern::new(path.unwrap_or("/")), span) else { continue };
        let what = path.map_or("the whole site".to_owned(), |path| format!("`{path}`"));
        let diagnostic = Diagnostic::error("duplicate-path", span, format!("{what} is spoken of in two rules"))
            .related(first, "first here")
            .help("keep one of them; readers differ in which of two they follow");
        decoder.diagnostics.push(diagnostic);
    }
}

fn required_url(
    fields: &mut Fields<'_>,
    name: &'static str,
    what: &str,
    decoder: &mut Decoder<'_>,
) -> Option<Located<String>> {
    let Some(node) = fields.take(name) else {
        decoder.error("missing-field", fields.span(), format!("{what} needs a `{name}`"));
        return None;
    };
    let url = decoder.located(node, "an absolute URL")?;
    url_is_valid(&url, decoder).then_some(url)
}

/// An absolute URL in printable ASCII. It stands in lines of robots.txt, between `<` and `>` in a Link field, and by
/// itself in a header; nothing that could end one of them is let in, nor a fragment, which robots.txt takes for a
/// comment.
fn url_is_valid(url: &Located<String>, decoder: &mut Decoder<'_>) -> bool {
    let Some((message, help)) = url_mistake(&url.value) else { return true };
    decoder.error("bad-url", url.span, message).help = Some(help.into());
    false
}

/// What is wrong with a URL, and what to do.
pub fn url_mistake(text: &str) -> Option<(String, &'static str)> {
    let rest = ["https://", "http://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    let host = |rest: &str| !rest.is_empty() && !rest.starts_with(['/', '?', ':', '@']);
    let shown = text.chars().take(100).collect::<String>().escape_debug().to_string();
    if !rest.is_some_and(host) {
        return Some((
            format!("`{shown}` is not an absolute URL"),
            "write it whole: `https://shop.example/license.xml`",
        ));
    }
    if text.contains('#') {
        return Some((
            format!("`{shown}` has a fragment, which robots.txt takes for a comment"),
            "write the URL without `#...`",
        ));
    }
    if let Some(sign) = text.chars().find(|sign| !sign.is_ascii_graphic() || "<>\"\\^`{|}".contains(*sign)) {
        return Some((
            format!("`{}` cannot stand in a URL", sign.escape_debug()),
            "percent-encode it: a blank is `%20`, `é` is `%C3%A9`",
        ));
    }
    let too_long = text.len() > MAX_URL;
    too_long.then(|| ("this URL is longer than 2000 characters".to_owned(), "put the file at a shorter address"))
}
