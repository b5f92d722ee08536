//! Compiles what a policy says about the use of the site's content (for example for AI training)
//! into what crawlgate sends. [`signal_plan`] makes header lines and `/.well-known/tdmrep.json`;
//! [`site_lines`] and [`group_lines`] make lines of robots.txt.
//!
//! Sources: contentsignals.org and draft-romm-aipref-contentsignals-00 (`Content-Signal`),
//! draft-ietf-aipref-attach-05 and draft-ietf-aipref-vocab-08 (`Content-Usage`), RSL 1.0
//! (`License`, `Link`, `WWW-Authenticate`), TDMRep, W3C Community Group Final Report of 2024-05-10.

use crate::policy::decode::url_mistake;
use crate::policy::model::{ContentSignal, ContentUsage, Emission, GroupPolicy, Policy, patterns};
use crate::policy::site::{License, ServedFile, SignalPlan, Tdm, Version};
use crate::printable::join;
use crate::robots::{Document, Extension, Pattern, Rule, RuleSet, TargetScratch, path_of};
use crate::yaml::{Located, Span};

/// Keys of lines about the use of the content.
pub const KEYS: [&str; 3] = ["Content-Signal", "Content-Usage", "License"];

/// The keys of the statements that the policy has for the whole site, in the file or in headers. A
/// licence for some paths does not count: for the others the origin's stays.
pub fn said_keys(policy: &Policy) -> Vec<&'static str> {
    let site = &policy.robots.signals;
    let license = site
        .licenses
        .iter()
        .any(|license| covers_all(&license.paths));
    said(
        site.content_signal.is_some(),
        !site.content_usage.is_empty(),
        license,
    )
}

/// Whether paths are the whole site.
pub fn covers_all(paths: &[Located<String>]) -> bool {
    paths.is_empty()
        || paths
            .iter()
            .any(|path| matches!(path.as_str(), "/" | "*" | "/*"))
}

/// The keys of the statements of a group of the policy, its own or those of a group that it
/// extends.
pub fn group_keys(policy: &Policy, index: usize) -> Vec<&'static str> {
    let chain = chain(policy, index);
    let signals = chain.iter().map(|group| &group.signals);
    said(
        signals
            .clone()
            .any(|signals| signals.content_signal.is_some()),
        signals
            .clone()
            .any(|signals| !signals.content_usage.is_empty()),
        signals.clone().any(|signals| !signals.licenses.is_empty()),
    )
}

/// Those of `KEYS` whose argument is true.
fn said(signal: bool, usage: bool, license: bool) -> Vec<&'static str> {
    KEYS.into_iter()
        .zip([signal, usage, license])
        .filter_map(|(key, said)| said.then_some(key))
        .collect()
}

/// Lines of robots.txt that belong to no group: one `License` for each licence of the site. None
/// where signals go into headers only.
pub fn site_lines(policy: &Policy) -> Vec<Extension> {
    let lines = policy
        .robots
        .signals
        .licenses
        .iter()
        .map(|license| line("License", license.url.value.clone()));
    written(policy, lines.collect())
}

/// Lines about the use of content for a group of the policy. Content-Signal is the first of the
/// group, of the groups that it extends, and of the site. So is Content-Usage, for each path by
/// itself. `License` is of the first group that names licences, never the site's. None where
/// signals go into headers only.
pub fn group_lines(policy: &Policy, index: usize) -> Vec<Extension> {
    let chain = chain(policy, index);
    let signals = chain.iter().map(|group| &group.signals);
    let signal = signals
        .clone()
        .find_map(|signals| signals.content_signal.as_ref());
    let usage = signals.clone().flat_map(|signals| &signals.content_usage);
    let licenses = signals
        .clone()
        .map(|signals| &signals.licenses)
        .find(|licenses| !licenses.is_empty());
    lines(policy, signal, usage, licenses.map_or(&[], Vec::as_slice))
}

/// The group with this index, then the one that it extends, and so on. Checking has made sure that
/// there is no circle; even in a circle the chain would end.
pub fn chain(policy: &Policy, index: usize) -> Vec<&GroupPolicy> {
    let groups = &policy.robots.groups;
    let mut chain = vec![&groups[index]];
    while let Some(extends) = chain.last().and_then(|group| group.extends.as_ref()) {
        match groups.iter().find(|group| group.is_for(extends)) {
            Some(group) if chain.len() <= groups.len() => chain.push(group),
            _ => break,
        }
    }
    chain
}

/// The site's Content-Signal and Content-Usage, for a group that the policy does not write itself,
/// such as the origin's. None where signals go into headers only.
pub fn group_lines_of_site(policy: &Policy) -> Vec<Extension> {
    lines(policy, None, std::iter::empty(), &[])
}

/// Where the policy states a Content-Signal or Content-Usage for every crawler although it has no
/// group for `*`: the lines need such a group. `None` without such a statement, with a group for
/// `*`, and where signals go into headers only.
pub fn star_without_group(policy: &Policy) -> Option<Span> {
    let signals = &policy.robots.signals;
    let span = match (&signals.content_signal, signals.content_usage.first()) {
        (Some(signal), _) => signal.span,
        (None, Some(usage)) => usage.span,
        (None, None) => return None,
    };
    let star = policy.robots.groups.iter().any(|group| group.is_for("*"));
    (!star && signals.emission.value == Emission::All).then_some(span)
}

/// Lines of one group: `signal`, else the site's; then `usage` and the site's, of which the first
/// for a path counts; then `licenses`. None where signals go into headers only.
fn lines<'p>(
    policy: &'p Policy,
    signal: Option<&ContentSignal>,
    usage: impl Iterator<Item = &'p ContentUsage>,
    licenses: &[Located<String>],
) -> Vec<Extension> {
    let site = &policy.robots.signals;
    let mut lines = Vec::new();
    if let Some(signal) = signal.or(site.content_signal.as_ref()) {
        lines.push(line("Content-Signal", signal_value(signal)));
    }
    let mut said: Vec<Option<Pattern>> = Vec::new();
    for rule in usage.chain(&site.content_usage) {
        for path in patterns_or_whole(&rule.paths) {
            if !said.contains(&path) {
                let place = path
                    .as_ref()
                    .map(|path| format!("{} ", path.as_str()))
                    .unwrap_or_default();
                lines.push(line("Content-Usage", place + &usage_value(rule)));
                said.push(path);
            }
        }
    }
    lines.extend(
        licenses
            .iter()
            .map(|url| line("License", url.value.clone())),
    );
    written(policy, lines)
}

/// The lines; none where signals go into headers only.
fn written(policy: &Policy, lines: Vec<Extension>) -> Vec<Extension> {
    if policy.robots.signals.emission.value == Emission::All {
        lines
    } else {
        Vec::new()
    }
}

fn line(key: &str, value: String) -> Extension {
    Extension {
        key: key.to_owned(),
        value,
    }
}

/// The URLs of the licences of the site and of its groups.
pub fn license_urls(policy: &Policy) -> impl Iterator<Item = &Located<String>> {
    let of_groups = policy
        .robots
        .groups
        .iter()
        .flat_map(|group| &group.signals.licenses);
    policy
        .robots
        .signals
        .licenses
        .iter()
        .map(|license| &license.url)
        .chain(of_groups)
}

/// `search=yes, ai-train=no`.
fn signal_value(signal: &ContentSignal) -> String {
    let said = signal.said.iter();
    let said = said.map(|(category, said)| {
        format!(
            "{}={}",
            category.name(),
            if said.value { "yes" } else { "no" }
        )
    });
    let extent = signal.extent.iter().map(|word| format!("use={word}"));
    join(said.chain(extent), ", ")
}

/// A dictionary of RFC 9651: `train-ai=n, search=y`.
fn usage_value(rule: &ContentUsage) -> String {
    let said = rule
        .said
        .iter()
        .map(|(category, said)| format!("{}={}", category.value, if *said { "y" } else { "n" }));
    join(said, ", ")
}

/// The patterns of a rule; one `None`, which is the whole site, where it has no paths.
fn patterns_or_whole(paths: &[Located<String>]) -> Vec<Option<Pattern>> {
    if paths.is_empty() {
        vec![None]
    } else {
        patterns(paths).into_iter().map(Some).collect()
    }
}

/// Compiles the statements of a policy into headers and tdmrep.json, with the licences that the
/// groups of the served document name. Content-Signal becomes a header only where signals go into
/// headers only. `terms` are the paths of all licences and TDM policies, for they must stay
/// reachable.
pub fn signal_plan(policy: &Policy, document: &Document) -> SignalPlan {
    let signals = &policy.robots.signals;
    let headers_only = signals.emission.value == Emission::HeadersOnly;
    let of_all = signals
        .content_usage
        .iter()
        .find(|rule| rule.paths.is_empty());
    let by_path = signals
        .content_usage
        .iter()
        .flat_map(|rule| rule.paths.iter().map(move |path| (path, rule)));
    let (usage_paths, usage) = by_path
        .map(|(path, rule)| {
            (
                Rule {
                    allow: true,
                    pattern: Pattern::new(path),
                },
                usage_value(rule),
            )
        })
        .unzip();
    let mut scratch = TargetScratch::default();
    let urls = license_urls(policy)
        .chain(policy.tdm.iter().filter_map(|rule| rule.policy.as_ref()))
        .map(|url| url.as_str());
    // The first licence that the lines of a group name.
    let groups = document.groups.iter();
    let group_licenses: Vec<_> = groups
        .map(|group| told_licenses(&group.extensions).next())
        .map(|url| url.map(|url| License::new(url, Vec::new())))
        .collect();
    let own = &signals.licenses;
    let origin_license = told_licenses(&document.extensions)
        .find(|url| own.iter().all(|license| license.url.value != *url))
        .map(|url| License::new(url, Vec::new()));
    let told = group_licenses
        .iter()
        .flatten()
        .chain(&origin_license)
        .map(|license| license.url.as_str());
    let terms = urls
        .chain(told)
        .map(|url| path_of(scratch.normalise(url.as_bytes()).sent).into())
        .collect();
    let licenses = signals
        .licenses
        .iter()
        .map(|license| License::new(&license.url, patterns(&license.paths)));
    let tdm = policy.tdm.iter().map(|rule| Tdm {
        paths: patterns(&rule.paths),
        reserved: rule.reserved,
        policy: rule.policy.as_ref().map(|url| url.value.clone()),
    });
    SignalPlan {
        content_signal: signals
            .content_signal
            .as_ref()
            .filter(|_| headers_only)
            .map(signal_value),
        usage,
        usage_paths: RuleSet::new(usage_paths),
        usage_of_all: of_all.map(usage_value),
        licenses: licenses.collect(),
        group_licenses,
        origin_license,
        tdm: tdm.collect(),
        tdmrep: (!policy.tdm.is_empty()).then(|| tdmrep(policy)),
        terms,
    }
}

impl License {
    fn new(url: &str, paths: Vec<Pattern>) -> License {
        let link = format!("<{url}>; rel=\"license\"; type=\"application/rsl+xml\"");
        License {
            paths,
            url: url.to_owned(),
            link,
        }
    }
}

/// The licences that lines name. The lines may be the origin's, which are not checked: a URL that
/// could not stand in a policy is passed over.
fn told_licenses(lines: &[Extension]) -> impl Iterator<Item = &str> {
    let lines = lines
        .iter()
        .filter(|line| line.key.eq_ignore_ascii_case("License"));
    lines
        .map(|line| line.value.trim())
        .filter(|url| url_mistake(url).is_none())
}

/// The file `/.well-known/tdmrep.json`: one object per path, in the order of the policy. A rule
/// without paths is for `/`.
fn tdmrep(policy: &Policy) -> ServedFile {
    let mut objects = Vec::new();
    for rule in &policy.tdm {
        for path in patterns_or_whole(&rule.paths) {
            let location = path.as_ref().map_or("/", Pattern::as_str);
            let mut object = serde_json::json!({ "location": location, "tdm-reservation": u8::from(rule.reserved) });
            if let Some(url) = &rule.policy {
                object["tdm-policy"] = url.as_str().into();
            }
            objects.push(format!("  {object}"));
        }
    }
    let body = format!("[\n{}\n]\n", objects.join(",\n"));
    ServedFile {
        etag: format!("\"{}\"", Version::of(body.as_bytes())),
        body: body.into_bytes().into(),
        cache_control: format!("public, max-age={}", policy.robots.max_age.value.as_secs()),
    }
}

#[cfg(test)]
mod tests;
