//! [`CompiledSignals`]: the header lines of a site about the use of its content (for example for AI
//! training), and the file `/.well-known/tdmrep.json`. The path of a request selects the lines of
//! its response ([`PathSignals`]).
//!
//! Sources: contentsignals.org and draft-romm-aipref-contentsignals-00 (`Content-Signal`),
//! draft-ietf-aipref-attach-05 and draft-ietf-aipref-vocab-08 (`Content-Usage`), RSL 1.0
//! (`License`, `Link`, `WWW-Authenticate`), TDMRep, W3C Community Group Final Report of 2024-05-10.

use crate::robots::{PathPattern, RequestTarget, RuleSet, without_query};
use std::sync::Arc;

const TDMREP_PATH: &[u8] = b"/.well-known/tdmrep.json";

/// A file that crawlgate serves itself.
#[derive(Debug)]
pub struct TdmRepFile {
    /// The bytes.
    pub body: Arc<[u8]>,
    /// The strong entity tag, with its quotes.
    pub etag: String,
    /// The Cache-Control value.
    pub cache_control: String,
}

/// The header lines of a site about the use of its content.
#[derive(Debug, Default)]
pub struct CompiledSignals {
    /// The value of Content-Signal, if it is not in robots.txt.
    pub content_signal: Option<String>,
    /// The values of Content-Usage, by the index of their pattern in `usage_paths`.
    pub usage: Vec<String>,
    /// The patterns of paths with a Content-Usage of their own.
    pub usage_paths: RuleSet,
    /// Content-Usage of all other paths.
    pub default_usage: Option<String>,
    /// The policy's licences, for the site or for paths.
    pub licenses: Vec<License>,
    /// The first licence of each group of robots.txt, by the group's index.
    pub group_licenses: Vec<Option<License>>,
    /// The origin's licence for the whole site.
    pub origin_license: Option<License>,
    /// The statements about text and data mining, in the order of the policy.
    pub tdm: Vec<TdmStatement>,
    /// These statements as `/.well-known/tdmrep.json`.
    pub tdmrep: Option<TdmRepFile>,
    /// Paths of licences and TDM policies. A crawler may always fetch what it is asked for.
    pub terms: Vec<Box<[u8]>>,
}

/// The lines that a path selects, as indexes into a [`CompiledSignals`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathSignals {
    usage: Option<usize>,
    license: Option<usize>,
    tdm: Option<usize>,
}

/// A header field with its values by path. Of several patterns that match a path the first counts;
/// `None` is every path.
#[derive(Debug)]
pub struct SignalField<'a> {
    /// The name of the field.
    pub name: &'static str,
    /// An empty value means that the field is absent.
    pub values: Vec<(Option<&'a PathPattern>, &'a str)>,
}

/// An RSL licence.
#[derive(Debug)]
pub struct License {
    /// The paths that it covers; empty for the whole site.
    pub paths: Vec<PathPattern>,
    /// Its URL.
    pub url: String,
    /// The value of the header `Link`.
    pub link: String,
}

/// A statement about text and data mining (TDMRep).
#[derive(Debug)]
pub struct TdmStatement {
    /// The paths that it covers; empty for the whole site.
    pub paths: Vec<PathPattern>,
    /// Whether the right is reserved.
    pub reserved: bool,
    /// The URL of the owner's policy.
    pub policy: Option<String>,
}

impl TdmStatement {
    fn reservation_value(&self) -> &'static str {
        if self.reserved { "1" } else { "0" }
    }
}

/// The lines that reserve a use of the content against AI training, with the value that does so.
const RESERVATIONS: [(&str, &str); 4] = [
    ("Content-Signal", "ai-train=no"),
    ("Content-Usage", "train-ai=n"),
    ("Content-Usage", "train-genai=n"),
    ("tdm-reservation", "1"),
];

/// Whether a line of a response or of robots.txt reserves the content against AI training.
pub fn reserves_training(name: &str, value: &str) -> bool {
    RESERVATIONS.iter().any(|(known, reserved)| {
        name.eq_ignore_ascii_case(known)
            && value
                .split(',')
                .any(|part| part.trim().eq_ignore_ascii_case(reserved))
    })
}

/// Whether one of the patterns matches; no patterns match everything.
fn paths_match(paths: &[PathPattern], path: &[u8]) -> bool {
    paths.is_empty() || paths.iter().any(|pattern| pattern.matches(path))
}

impl CompiledSignals {
    /// Selects the lines for a path, as most origins resolve it (`/open/../x` is `/x`). Does not
    /// allocate.
    pub fn for_path(&self, target: RequestTarget<'_>) -> PathSignals {
        let path = target.forms().last().unwrap_or(target.sent);
        // The longest path decides, as with Allow and Disallow (draft-ietf-aipref-attach-05
        // section 3.1).
        let usage = self.usage_paths.find(path);
        let mut licenses = self.licenses.iter();
        let license = licenses.position(|license| paths_match(&license.paths, path));
        // The first match is the one that counts in the file of the site (TDMRep section 5.2);
        // headers say the same.
        let tdm = self
            .tdm
            .iter()
            .position(|rule| paths_match(&rule.paths, path));
        PathSignals {
            usage,
            license,
            tdm,
        }
    }

    /// The header lines of a response, as names and values.
    pub fn fields(&self, selected: PathSignals) -> impl Iterator<Item = (&'static str, &str)> {
        let tdm = selected.tdm.and_then(|index| self.tdm.get(index));
        let usage = match selected.usage {
            Some(index) => self.usage.get(index),
            None => self.default_usage.as_ref(),
        };
        let license = selected.license.and_then(|index| self.licenses.get(index));
        [
            self.content_signal
                .as_deref()
                .map(|value| ("Content-Signal", value)),
            usage.map(|value| ("Content-Usage", value.as_str())),
            license.map(|license| ("Link", license.link.as_str())),
            tdm.map(|rule| ("tdm-reservation", rule.reservation_value())),
            tdm.and_then(|rule| rule.policy.as_deref())
                .map(|value| ("tdm-policy", value)),
        ]
        .into_iter()
        .flatten()
    }

    /// [`fields`](Self::fields) as `name: value`.
    pub fn lines(&self, selected: PathSignals) -> Vec<String> {
        self.fields(selected)
            .map(|(name, value)| format!("{name}: {value}"))
            .collect()
    }

    /// The header fields with their values by path, for servers that know only paths. Content-Usage
    /// has the longest paths first; the other fields keep the order of the policy.
    pub fn fields_by_path(&self) -> Vec<SignalField<'_>> {
        let mut usage: Vec<_> = self
            .usage_paths
            .rules()
            .iter()
            .zip(&self.usage)
            .map(|(rule, usage)| (Some(&rule.pattern), usage.as_str()))
            .collect();
        usage.sort_by_key(|(pattern, _)| {
            std::cmp::Reverse(pattern.map_or(0, |pattern| pattern.as_str().len()))
        });
        usage.extend(
            self.default_usage
                .iter()
                .map(|usage| (None, usage.as_str())),
        );
        let policies = self
            .tdm
            .iter()
            .flat_map(|rule| with_paths(&rule.paths, rule.policy.as_deref().unwrap_or_default()));
        let reservations = self
            .tdm
            .iter()
            .flat_map(|rule| with_paths(&rule.paths, rule.reservation_value()));
        let licenses = self
            .licenses
            .iter()
            .flat_map(|license| with_paths(&license.paths, &license.link));
        let signal = self.content_signal.iter();
        let signal = signal.map(|value| (None, value.as_str()));
        [
            ("Content-Signal", signal.collect()),
            ("Content-Usage", usage),
            ("Link", licenses.collect()),
            ("tdm-policy", policies.collect()),
            ("tdm-reservation", reservations.collect()),
        ]
        .into_iter()
        .map(|(name, values)| SignalField { name, values })
        .filter(|field| field.values.iter().any(|(_, value)| !value.is_empty()))
        .collect()
    }

    /// The licence that a crawler of a group of robots.txt is asked for: that of its group, else
    /// the policy's for the path, else the origin's.
    pub fn license(&self, selected: PathSignals, group: Option<usize>) -> Option<&License> {
        group
            .and_then(|group| self.group_licenses.get(group)?.as_ref())
            .or_else(|| self.licenses.get(selected.license?))
            .or(self.origin_license.as_ref())
    }

    pub fn has_license(&self) -> bool {
        !self.licenses.is_empty()
            || self.origin_license.is_some()
            || self.group_licenses.iter().any(Option::is_some)
    }

    /// Whether a request is for `/.well-known/tdmrep.json`, and the site has it.
    pub fn is_tdmrep(&self, target: RequestTarget<'_>) -> bool {
        self.is_tdmrep_path(without_query(target.sent))
    }

    /// Whether a path without query is that of the site's `/.well-known/tdmrep.json`.
    pub fn is_tdmrep_path(&self, path: &[u8]) -> bool {
        self.tdmrep.is_some() && path == TDMREP_PATH
    }

    /// Whether a request is for a licence or a TDM policy that the site names. Only paths are
    /// compared, not hosts.
    pub fn is_terms_page(&self, target: RequestTarget<'_>) -> bool {
        self.terms
            .iter()
            .any(|path| **path == *without_query(target.sent))
    }
}

/// The value for each of these paths, or for every path.
fn with_paths<'a>(
    paths: &'a [PathPattern],
    value: &'a str,
) -> Vec<(Option<&'a PathPattern>, &'a str)> {
    match paths {
        [] => vec![(None, value)],
        paths => paths.iter().map(|path| (Some(path), value)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::reserves_training;

    #[test]
    fn reservation_is_a_denied_use_for_training() {
        for (name, value, reserved) in [
            ("content-signal", "search=yes, AI-Train=no", true),
            ("Content-Signal", "ai-train=yes, search=no", false),
            ("Content-Usage", "search=y, train-ai=n", true),
            ("Content-Usage", "train-genai=n", true),
            ("Content-Usage", "/press/ train-ai=n", false),
            ("tdm-reservation", "1", true),
            ("tdm-reservation", "0", false),
            ("tdm-policy", "1", false),
        ] {
            assert_eq!(reserves_training(name, value), reserved, "{name}: {value}");
        }
    }
}
