//! What a site says about the use of its content, ready to be sent: lines of robots.txt, header lines, and
//! `/.well-known/tdmrep.json`. Which headers a response gets is decided by the path when the request comes.
//!
//! Sources: contentsignals.org and draft-romm-aipref-contentsignals-00 (`Content-Signal`), draft-ietf-aipref-attach-05 and
//! draft-ietf-aipref-vocab-08 (`Content-Usage`), RSL 1.0 (`License`, `Link`, `WWW-Authenticate`), TDMRep, W3C Community
//! Group Final Report of 2024-05-10.

use crate::policy::compiled::Version;
use crate::policy::model::{
    ContentSignal, ContentUsage, Emission, GroupPolicy, GroupSignals, LicensePolicy, Policy, TdmRule,
};
use crate::robots::{Extension, Pattern, Rule, RuleSet, Target, TargetScratch};
use crate::yaml::{Located, Span};
use std::sync::Arc;

/// Where TDMRep looks for a site's rules.
const TDMREP: &[u8] = b"/.well-known/tdmrep.json";

// ---- lines of robots.txt

/// Keys of lines about the use of the content.
pub const KEYS: [&str; 3] = ["Content-Signal", "Content-Usage", "License"];

/// Those of them that the policy speaks of for the whole site, in the file or in headers.
pub fn said_keys(policy: &Policy) -> Vec<&'static str> {
    let site = &policy.robots.signals;
    said(site.content_signal.is_some(), !site.content_usage.is_empty(), !site.licenses.is_empty())
}

/// Those that a group of the policy speaks of, itself or by a group that it extends.
pub fn group_keys(policy: &Policy, index: usize) -> Vec<&'static str> {
    let chain = chain(policy, index);
    let any = |says: fn(&GroupSignals) -> bool| chain.iter().any(|group| says(&group.signals));
    said(
        any(|group| group.content_signal.is_some()),
        any(|group| !group.content_usage.is_empty()),
        any(|group| !group.licenses.is_empty()),
    )
}

fn said(signal: bool, usage: bool, license: bool) -> Vec<&'static str> {
    KEYS.into_iter().zip([signal, usage, license]).filter_map(|(key, said)| said.then_some(key)).collect()
}

/// Lines that belong to no group.
pub fn site_lines(policy: &Policy) -> Vec<Extension> {
    let lines = policy.robots.signals.licenses.iter().map(|license| line("License", license.url.value.clone()));
    written(policy, lines.collect())
}

/// Lines of a group of the policy: its own, then those of the group that it extends, then the site's. Checking has made
/// sure that no group extends itself.
pub fn group_lines(policy: &Policy, index: usize) -> Vec<Extension> {
    let chain = chain(policy, index);
    let signal = chain.iter().find_map(|group| group.signals.content_signal.as_ref());
    let usage: Vec<&[ContentUsage]> = chain.iter().map(|group| group.signals.content_usage.as_slice()).collect();
    let licenses = chain.iter().map(|group| &group.signals.licenses).find(|licenses| !licenses.is_empty());
    lines(policy, signal, &usage, licenses.map_or(&[], Vec::as_slice))
}

/// A group, then the one that it extends, and so on.
fn chain(policy: &Policy, index: usize) -> Vec<&GroupPolicy> {
    let groups = &policy.robots.groups;
    let mut chain = vec![&groups[index]];
    while let Some(extends) = chain.last().and_then(|group| group.extends.as_ref()) {
        let named = |group: &&_| is_for(group, &extends.value);
        match groups.iter().find(named) {
            Some(group) if chain.len() <= groups.len() => chain.push(group),
            _ => break,
        }
    }
    chain
}

fn is_for(group: &GroupPolicy, token: &str) -> bool {
    group.agents.iter().any(|agent| agent.value.eq_ignore_ascii_case(token))
}

/// Lines of a group that the policy does not write itself.
pub fn group_lines_of_site(policy: &Policy) -> Vec<Extension> {
    lines(policy, None, &[], &[])
}

/// Where the site says something to every crawler and no group is for `*`: the lines need one to stand in.
pub fn star_without_group(policy: &Policy) -> Option<Span> {
    let signals = &policy.robots.signals;
    let span = match (&signals.content_signal, signals.content_usage.first()) {
        (Some(signal), _) => signal.span,
        (None, Some(usage)) => usage.span,
        (None, None) => return None,
    };
    let star = policy.robots.groups.iter().any(|group| is_for(group, "*"));
    (!star && signals.emission.value == Emission::All).then_some(span)
}

fn lines(
    policy: &Policy,
    signal: Option<&ContentSignal>,
    usage: &[&[ContentUsage]],
    licenses: &[Located<String>],
) -> Vec<Extension> {
    let site = &policy.robots.signals;
    let mut lines = Vec::new();
    if let Some(signal) = signal.or(site.content_signal.as_ref()) {
        lines.push(line("Content-Signal", signal_value(signal)));
    }
    let mut said: Vec<Option<Pattern>> = Vec::new();
    for rule in usage.iter().copied().chain([site.content_usage.as_slice()]).flatten() {
        for path in patterns_or_whole(&rule.paths) {
            if said.contains(&path) {
                continue;
            }
            let value = usage_value(rule);
            lines.push(line(
                "Content-Usage",
                path.as_ref().map_or(value.clone(), |path| format!("{} {value}", path.as_str())),
            ));
            said.push(path);
        }
    }
    lines.extend(licenses.iter().map(|url| line("License", url.value.clone())));
    written(policy, lines)
}

/// Nothing, where only headers are to speak.
fn written(policy: &Policy, lines: Vec<Extension>) -> Vec<Extension> {
    if policy.robots.signals.emission.value == Emission::All { lines } else { Vec::new() }
}

fn line(key: &str, value: String) -> Extension {
    Extension { key: key.to_owned(), value }
}

/// `search=yes, ai-train=no`.
fn signal_value(signal: &ContentSignal) -> String {
    let said = signal
        .said
        .iter()
        .map(|(category, said)| format!("{}={}", category.name(), if said.value { "yes" } else { "no" }));
    let extent = signal.extent.iter().map(|word| format!("use={word}"));
    said.chain(extent).collect::<Vec<_>>().join(", ")
}

/// A dictionary of RFC 9651: `train-ai=n, search=y`.
fn usage_value(rule: &ContentUsage) -> String {
    let said = rule.said.iter().map(|(category, said)| format!("{}={}", category.value, if *said { "y" } else { "n" }));
    said.collect::<Vec<_>>().join(", ")
}

fn patterns_or_whole(paths: &[Located<String>]) -> Vec<Option<Pattern>> {
    if paths.is_empty() {
        return vec![None];
    }
    paths.iter().map(|path| Some(Pattern::new(&path.value))).collect()
}

// ---- headers, and the file of TDMRep

/// A file that is served from the policy.
#[derive(Debug)]
pub struct ServedFile {
    /// The bytes.
    pub body: Arc<[u8]>,
    /// The strong entity tag, with its quotes.
    pub etag: String,
    /// The Cache-Control value.
    pub cache_control: String,
}

/// The header lines of a site, ready to be sent.
#[derive(Debug, Default)]
pub struct SignalPlan {
    /// Only where robots.txt does not say it.
    content_signal: Option<String>,
    /// The values of Content-Usage, by the index of their path in `usage_paths`.
    usage: Vec<String>,
    usage_paths: RuleSet,
    /// The value for what no path matches.
    usage_of_all: Option<String>,
    licenses: Vec<License>,
    tdm: Vec<Tdm>,
    tdmrep: Option<ServedFile>,
    /// Paths of licences and policies: without them nobody would know what to ask for.
    terms: Vec<Box<[u8]>>,
}

#[derive(Debug)]
struct License {
    paths: Vec<Pattern>,
    url: String,
    /// The value of Link.
    link: String,
}

#[derive(Debug)]
struct Tdm {
    paths: Vec<Pattern>,
    reserved: bool,
    policy: Option<String>,
}

/// What the path of a request decides: indexes into a [`SignalPlan`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathSignals {
    usage: Option<u16>,
    license: Option<u16>,
    tdm: Option<u16>,
}

impl SignalPlan {
    /// Compiles what a policy says.
    pub fn new(policy: &Policy) -> SignalPlan {
        let signals = &policy.robots.signals;
        let headers_only = signals.emission.value == Emission::HeadersOnly;
        let of_all = signals.content_usage.iter().find(|rule| rule.paths.is_empty());
        let by_path = signals.content_usage.iter().flat_map(|rule| rule.paths.iter().map(move |path| (path, rule)));
        let (usage_paths, usage) = by_path
            .map(|(path, rule)| (Rule { allow: true, pattern: Pattern::new(&path.value) }, usage_value(rule)))
            .unzip();
        let mut scratch = TargetScratch::default();
        let urls = signals.licenses.iter().map(|license| &license.url);
        let urls = urls.chain(policy.robots.groups.iter().flat_map(|group| &group.signals.licenses));
        let urls = urls.chain(policy.tdm.iter().filter_map(|rule| rule.policy.as_ref()));
        let terms = urls.map(|url| path_of(scratch.normalise(url.value.as_bytes()).sent).into()).collect();
        SignalPlan {
            content_signal: signals.content_signal.as_ref().filter(|_| headers_only).map(signal_value),
            usage,
            usage_paths: RuleSet::new(usage_paths),
            usage_of_all: of_all.map(usage_value),
            licenses: signals.licenses.iter().map(License::new).collect(),
            tdm: policy.tdm.iter().map(Tdm::new).collect(),
            tdmrep: (!policy.tdm.is_empty()).then(|| tdmrep(policy)),
            terms,
        }
    }

    /// What is said about a path. Does not allocate.
    pub fn for_path(&self, target: Target<'_>) -> PathSignals {
        let matches = |paths: &[Pattern]| paths.is_empty() || paths.iter().any(|path| path.matches(target.sent));
        let place = |index: usize| u16::try_from(index).ok();
        PathSignals {
            // The longest path decides, as with Allow and Disallow (draft-ietf-aipref-attach-05 section 3.1).
            usage: self.usage_paths.find(target.sent).and_then(place),
            license: self.licenses.iter().position(|license| matches(&license.paths)).and_then(place),
            // The first match is the one that counts in the file of the site (TDMRep section 5.2); headers say the same.
            tdm: self.tdm.iter().position(|rule| matches(&rule.paths)).and_then(place),
        }
    }

    /// The header lines of a page: names as their drafts spell them, and values.
    pub fn fields(&self, said: PathSignals) -> impl Iterator<Item = (&'static str, &str)> {
        let tdm = said.tdm.and_then(|index| self.tdm.get(usize::from(index)));
        let usage = match said.usage {
            Some(index) => self.usage.get(usize::from(index)),
            None => self.usage_of_all.as_ref(),
        };
        [
            self.content_signal.as_deref().map(|value| ("Content-Signal", value)),
            usage.map(|value| ("Content-Usage", value.as_str())),
            self.link(said).map(|value| ("Link", value)),
            tdm.map(|rule| ("tdm-reservation", if rule.reserved { "1" } else { "0" })),
            tdm.and_then(|rule| rule.policy.as_deref()).map(|value| ("tdm-policy", value)),
        ]
        .into_iter()
        .flatten()
    }

    /// The value of Link where a licence covers the path.
    pub fn link(&self, said: PathSignals) -> Option<&str> {
        Some(&self.licenses.get(usize::from(said.license?))?.link)
    }

    /// Where the licence is that covers the path.
    pub fn license(&self, said: PathSignals) -> Option<&str> {
        Some(&self.licenses.get(usize::from(said.license?))?.url)
    }

    /// The file of TDMRep, where the policy speaks of it.
    pub fn tdmrep(&self) -> Option<&ServedFile> {
        self.tdmrep.as_ref()
    }

    /// Whether a request is for the file of TDMRep, with any query, and there is one.
    pub fn is_tdmrep(&self, target: Target<'_>) -> bool {
        self.has_at(path_of(target.sent))
    }

    /// The same of a path as it came.
    pub fn has_at(&self, path: &[u8]) -> bool {
        self.tdmrep.is_some() && path == TDMREP
    }

    /// Whether a request is for the terms themselves.
    pub fn is_terms(&self, target: Target<'_>) -> bool {
        self.terms.iter().any(|path| **path == *path_of(target.sent))
    }
}

impl License {
    fn new(policy: &LicensePolicy) -> License {
        License {
            paths: policy.paths.iter().map(|path| Pattern::new(&path.value)).collect(),
            url: policy.url.value.clone(),
            link: format!("<{}>; rel=\"license\"; type=\"application/rsl+xml\"", policy.url.value),
        }
    }
}

impl Tdm {
    fn new(rule: &TdmRule) -> Tdm {
        Tdm {
            paths: rule.paths.iter().map(|path| Pattern::new(&path.value)).collect(),
            reserved: rule.reserved,
            policy: rule.policy.as_ref().map(|url| url.value.clone()),
        }
    }
}

/// A normalised target without its query.
fn path_of(target: &[u8]) -> &[u8] {
    target.split(|octet| *octet == b'?').next().unwrap_or(target)
}

/// One object per path, in the order of the policy.
fn tdmrep(policy: &Policy) -> ServedFile {
    let mut objects = Vec::new();
    for rule in &policy.tdm {
        for path in patterns_or_whole(&rule.paths) {
            let location = path.as_ref().map_or("/", Pattern::as_str);
            let mut object = serde_json::json!({ "location": location, "tdm-reservation": u8::from(rule.reserved) });
            if let Some(url) = &rule.policy {
                object["tdm-policy"] = url.value.as_str().into();
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
