//! Compiles what a policy says about the use of the site's content, for example for AI training.
//! [`signal_plan`] makes header lines and the file `/.well-known/tdmrep.json`.
//! [`site_license_lines`] and [`signal_lines`] make lines of robots.txt. A policy with
//! `signals: headers_only` adds no such lines to robots.txt.
//!
//! Sources: contentsignals.org and draft-romm-aipref-contentsignals-00 (`Content-Signal`),
//! draft-ietf-aipref-attach-05 and draft-ietf-aipref-vocab-08 (`Content-Usage`), RSL 1.0
//! (`License`, `Link`, `WWW-Authenticate`), TDMRep, W3C Community Group Final Report of 2024-05-10.

use crate::policy::decode::url_mistake;
use crate::policy::model::{
    ContentSignal, ContentUsageRule, GroupPolicy, Policy, SignalPlacement, patterns,
};
use crate::policy::signal_lines::yes_or_no;
use crate::policy::site::{
    CompiledSignals, License, RobotsVersionId, TdmRepFile, TdmStatement, TrainingStatements,
};
use crate::printable::join;
use crate::robots::{
    ExtensionLine, PathPattern, RobotsDocument, Rule, RuleSet, TargetScratch, without_query,
};
use crate::yaml::{Located, SourceSpan};
use SignalPlacement::*;

/// Keys of lines about the use of the content.
pub const KEYS: [&str; 3] = ["Content-Signal", "Content-Usage", "License"];

/// The keys of the policy's statements for the whole site, in robots.txt or in headers. A licence
/// for some paths does not count: for the others the origin's stays.
pub fn site_signal_keys(policy: &Policy) -> Vec<&'static str> {
    let site = &policy.robots.signals;
    let license = site
        .licenses
        .iter()
        .any(|license| covers_whole_site(&license.paths));
    present_keys(
        site.content_signal.is_some(),
        !site.content_usage.is_empty(),
        license,
    )
}

/// Whether paths cover the whole site.
pub fn covers_whole_site(paths: &[Located<String>]) -> bool {
    paths.is_empty()
        || paths
            .iter()
            .any(|path| matches!(path.as_str(), "/" | "*" | "/*"))
}

/// The keys of the statements of a group of the policy, or of a group that it extends.
pub fn group_signal_keys(chain: &[&GroupPolicy]) -> Vec<&'static str> {
    let mut signals = chain.iter().map(|group| &group.signals);
    present_keys(
        signals
            .clone()
            .any(|signals| signals.content_signal.is_some()),
        signals
            .clone()
            .any(|signals| !signals.content_usage.is_empty()),
        signals.any(|signals| !signals.licenses.is_empty()),
    )
}

/// The keys of [`KEYS`] whose argument is true.
fn present_keys(signal: bool, usage: bool, license: bool) -> Vec<&'static str> {
    KEYS.into_iter()
        .zip([signal, usage, license])
        .filter_map(|(key, is_present)| is_present.then_some(key))
        .collect()
}

/// Lines of robots.txt for the whole file: one `License` for each licence of the site.
pub fn site_license_lines(policy: &Policy) -> Vec<ExtensionLine> {
    let signals = &policy.robots.signals;
    signals
        .licenses
        .iter()
        .filter(|_| signals.placement == All)
        .map(|license| new_line("License", license.url.value.clone()))
        .collect()
}

/// Lines about the use of content for a group, by its [`extends_chain`], which is empty for a group
/// that the policy does not write. Content-Signal is the group's, else that of a group that it
/// extends, else the site's; Content-Usage likewise, for each path by itself. `License` is never the
/// site's.
pub fn signal_lines(policy: &Policy, chain: &[&GroupPolicy]) -> Vec<ExtensionLine> {
    let site = &policy.robots.signals;
    let mut lines = Vec::new();
    if site.placement == HeadersOnly {
        return lines;
    }
    let signals = chain.iter().map(|group| &group.signals);
    let signal = signals
        .clone()
        .find_map(|signals| signals.content_signal.as_ref())
        .or(site.content_signal.as_ref());
    lines.extend(signal.map(|signal| new_line("Content-Signal", signal_value(signal))));
    let usage = signals.clone().flat_map(|signals| &signals.content_usage);
    let mut written: Vec<Option<PathPattern>> = Vec::new();
    for rule in usage.chain(&site.content_usage) {
        for path in patterns_or_whole(&rule.paths) {
            if !written.contains(&path) {
                let place = path
                    .as_ref()
                    .map(|path| format!("{} ", path.as_str()))
                    .unwrap_or_default();
                lines.push(new_line("Content-Usage", place + &usage_value(rule)));
                written.push(path);
            }
        }
    }
    let licenses = signals
        .map(|signals| &signals.licenses)
        .find(|licenses| !licenses.is_empty());
    lines.extend(
        licenses
            .into_iter()
            .flatten()
            .map(|url| new_line("License", url.value.clone())),
    );
    lines
}

/// The group with this index, then the one that it extends, and so on. Decoding rejects circles;
/// even in a circle the chain would end.
pub fn extends_chain(policy: &Policy, index: usize) -> Vec<&GroupPolicy> {
    let groups = &policy.robots.groups;
    let mut chain = vec![&groups[index]];
    while let Some(extends) = chain.last().and_then(|group| group.extends.as_ref()) {
        match groups.iter().find(|group| group.names_agent(extends)) {
            Some(group) if chain.len() <= groups.len() => chain.push(group),
            _ => break,
        }
    }
    chain
}

/// The place of a Content-Signal or Content-Usage of the site that needs a group for `*`, if the
/// policy has no such group.
pub fn missing_star_group(policy: &Policy) -> Option<SourceSpan> {
    let signals = &policy.robots.signals;
    let signal = signals.content_signal.as_ref().map(|signal| signal.span);
    let span = signal.or_else(|| Some(signals.content_usage.first()?.span));
    let star = policy
        .robots
        .groups
        .iter()
        .any(|group| group.names_agent("*"));
    span.filter(|_| !star && signals.placement == All)
}

fn new_line(key: &str, value: String) -> ExtensionLine {
    ExtensionLine {
        key: key.to_owned(),
        value,
    }
}

/// The URLs of the licences of the site and of its groups.
pub fn license_urls(policy: &Policy) -> impl Iterator<Item = &Located<String>> {
    let robots = &policy.robots;
    let of_groups = robots
        .groups
        .iter()
        .flat_map(|group| &group.signals.licenses);
    robots
        .signals
        .licenses
        .iter()
        .map(|license| &license.url)
        .chain(of_groups)
}

/// `search=yes, ai-train=no`.
fn signal_value(signal: &ContentSignal) -> String {
    let values = signal
        .values
        .iter()
        .map(|(category, value)| format!("{}={}", category.name(), yes_or_no(value.value)));
    let extent = signal.extent.iter().map(|word| format!("use={word}"));
    join(values.chain(extent), ", ")
}

/// A dictionary of RFC 9651: `train-ai=n, search=y`.
fn usage_value(rule: &ContentUsageRule) -> String {
    let values = rule
        .values
        .iter()
        .map(|(category, value)| format!("{}={}", category.value, if *value { "y" } else { "n" }));
    join(values, ", ")
}

/// The patterns of a rule. A rule without paths has `None`, the whole site.
fn patterns_or_whole(paths: &[Located<String>]) -> Vec<Option<PathPattern>> {
    if paths.is_empty() {
        vec![None]
    } else {
        patterns(paths).into_iter().map(Some).collect()
    }
}

/// Compiles the statements of a policy into headers and tdmrep.json. `document` is the served
/// robots.txt, whose groups may name licences. Content-Signal is a header only if it is not in
/// robots.txt.
pub fn signal_plan(policy: &Policy, document: &RobotsDocument) -> CompiledSignals {
    let signals = &policy.robots.signals;
    let (usage_paths, usage) = signals
        .content_usage
        .iter()
        .flat_map(|rule| {
            rule.paths
                .iter()
                .map(|path| (Rule::new(true, path), usage_value(rule)))
        })
        .unzip();
    let mut scratch = TargetScratch::default();
    let urls = license_urls(policy)
        .chain(policy.tdm.iter().filter_map(|rule| rule.policy.as_ref()))
        .map(|url| url.as_str());
    let group_licenses: Vec<_> = document
        .groups
        .iter()
        .map(|group| named_licenses(&group.extensions).next())
        .collect();
    let group_training = document.groups.iter().map(|group| {
        let lines = group.extensions.iter();
        TrainingStatements::new(lines.map(|line| (&*line.key, &*line.value)))
    });
    let own = &signals.licenses;
    let origin_license = named_licenses(&document.extensions)
        .find(|license| own.iter().all(|own| own.url.value != license.url));
    let other_urls = group_licenses
        .iter()
        .flatten()
        .chain(&origin_license)
        .map(|license| license.url.as_str());
    let terms = urls
        .chain(other_urls)
        .map(|url| without_query(scratch.normalise(url.as_bytes()).sent).into())
        .collect();
    let licenses = signals
        .licenses
        .iter()
        .map(|license| License::new(&license.url, patterns(&license.paths)));
    let tdm = policy.tdm.iter().map(|rule| TdmStatement {
        paths: patterns(&rule.paths),
        reserved: rule.reserved,
        policy: rule.policy.as_ref().map(|url| url.value.clone()),
    });
    CompiledSignals {
        content_signal: signals
            .content_signal
            .as_ref()
            .filter(|_| signals.placement == HeadersOnly)
            .map(signal_value),
        usage,
        usage_paths: RuleSet::new(usage_paths),
        default_usage: signals
            .content_usage
            .iter()
            .find(|rule| rule.paths.is_empty())
            .map(usage_value),
        licenses: licenses.collect(),
        group_licenses,
        group_training: group_training.collect(),
        origin_license,
        tdm: tdm.collect(),
        tdmrep: (!policy.tdm.is_empty()).then(|| tdmrep_file(policy)),
        terms,
    }
}

impl License {
    fn new(url: &str, paths: Vec<PathPattern>) -> License {
        let link = format!("<{url}>; rel=\"license\"; type=\"application/rsl+xml\"");
        License {
            paths,
            url: url.to_owned(),
            link,
        }
    }
}

/// The licences that lines name. Lines of the origin are not checked, so invalid URLs are skipped.
fn named_licenses(lines: &[ExtensionLine]) -> impl Iterator<Item = License> {
    lines
        .iter()
        .filter(|line| line.key.eq_ignore_ascii_case("License"))
        .map(|line| line.value.trim())
        .filter(|url| url_mistake(url).is_none())
        .map(|url| License::new(url, Vec::new()))
}

/// The file `/.well-known/tdmrep.json`: one object for each path, in the order of the policy.
fn tdmrep_file(policy: &Policy) -> TdmRepFile {
    let mut objects = Vec::new();
    for rule in &policy.tdm {
        for path in patterns_or_whole(&rule.paths) {
            let location = path.as_ref().map_or("/", PathPattern::as_str);
            let mut object = serde_json::json!({ "location": location, "tdm-reservation": u8::from(rule.reserved) });
            if let Some(url) = &rule.policy {
                object["tdm-policy"] = url.as_str().into();
            }
            objects.push(format!("  {object}"));
        }
    }
    let body = format!("[\n{}\n]\n", objects.join(",\n"));
    TdmRepFile {
        etag: format!("\"{}\"", RobotsVersionId::from_body(body.as_bytes())),
        body: body.into_bytes().into(),
        cache_control: format!("public, max-age={}", policy.robots.max_age.value.as_secs()),
    }
}

#[cfg(test)]
mod tests;
