//! [`CompiledSignals`]: the header lines of a site about the use of its content (for example for AI
//! training), and the file `/.well-known/tdmrep.json`. The path of a request selects the lines of
//! its response ([`PathSignals`]).
//!
//! Sources: contentsignals.org and draft-romm-aipref-contentsignals-00 (`Content-Signal`),
//! draft-ietf-aipref-attach-05 and draft-ietf-aipref-vocab-08 (`Content-Usage`), RSL 1.0
//! (`License`, `Link`, `WWW-Authenticate`), TDMRep, W3C Community Group Final Report of 2024-05-10.

use crate::policy::model::SignalCategory;
use crate::policy::signal_lines::ContentSignalPart::Category;
use crate::policy::signal_lines::{parse_content_signal, parse_content_usage, parse_usage_member};
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
    /// What each group of robots.txt says about AI training, by the group's index.
    pub group_training: Vec<TrainingStatements>,
    /// The origin's licence for the whole site.
    pub origin_license: Option<License>,
    /// The statements about text and data mining, in the order of the policy.
    pub tdm: Vec<TdmStatement>,
    /// These statements as `/.well-known/tdmrep.json`.
    pub tdmrep: Option<TdmRepFile>,
    /// Paths of licences and TDM policies. A crawler may always fetch what it is asked for.
    pub terms: Vec<Box<[u8]>>,
}

/// What lines of Content-Signal and Content-Usage say about AI training.
#[derive(Debug, Default)]
pub struct TrainingStatements {
    /// Whether Content-Signal grants it; `None` if it does not say so.
    signal: Option<bool>,
    /// The paths of Content-Usage, and whether their lines grant it.
    usage: Vec<(PathPattern, Option<bool>)>,
}

impl TrainingStatements {
    /// Reads lines, as names and values.
    pub fn new<'a, 'b>(lines: impl Iterator<Item = (&'a str, &'b str)>) -> TrainingStatements {
        let mut statements = TrainingStatements::default();
        for (name, value) in lines {
            if name.eq_ignore_ascii_case("Content-Signal") {
                let parts = parse_content_signal(value).filter_map(|(_, part)| match part {
                    Some(Category(SignalCategory::AiTrain, granted)) => Some(granted),
                    _ => None,
                });
                statements.signal = parts.min().or(statements.signal);
            }
            if name.eq_ignore_ascii_case("Content-Usage") {
                let (path, members) = parse_content_usage(value);
                let mut stated = members
                    .iter()
                    .flatten()
                    .flat_map(|member| parse_usage_member(member).0);
                // Of equal keys the last counts (RFC 9651 section 3.2).
                let granted = stated.rfind(|(key, _)| *key == "train-ai").map(|one| one.1);
                statements
                    .usage
                    .push((PathPattern::new(path.unwrap_or("/")), granted));
            }
        }
        statements
    }
}

/// The lines that a path selects, as indexes into a [`CompiledSignals`].
#[derive(Clone, Copy, Debug, Default)]
pub struct PathSignals {
    usage: Option<usize>,
    license: Option<usize>,
    tdm: Option<usize>,
}

/// A header field with its values by path. Of several patterns that match a path the first counts;
/// `None` is every path.
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

/// Whether one of the patterns matches; no patterns match everything.
pub(super) fn paths_match(paths: &[PathPattern], path: &[u8]) -> bool {
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
        let license = self
            .licenses
            .iter()
            .position(|license| paths_match(&license.paths, path));
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

    /// Whether a reservation of this path against AI training is published: by `tdm`, or, where `tdm`
    /// says nothing, by a header or this group of robots.txt. Content-Signal of the group replaces the
    /// header if it says something about training. Of several lines of Content-Usage the one with the
    /// longest path counts, and of equal paths the one that grants. Licences, TDM policies and
    /// `tdmrep.json` are not reserved.
    pub fn reserves_training(&self, target: RequestTarget<'_>, group: Option<usize>) -> bool {
        if self.is_terms_page(target) {
            return false;
        }
        let path = target.forms().last().unwrap_or(target.sent);
        let selected = self.for_path(target);
        if let Some(rule) = selected.tdm.and_then(|index| self.tdm.get(index)) {
            return rule.reserved;
        }
        let headers = TrainingStatements::new(self.fields(selected));
        let of_group = group.and_then(|group| self.group_training.get(group));
        let signal = of_group.and_then(|group| group.signal).or(headers.signal);
        let usage = of_group
            .into_iter()
            .chain([&headers])
            .flat_map(|statements| &statements.usage)
            .filter(|(pattern, _)| pattern.matches(path))
            .max_by_key(|(pattern, granted)| (pattern.priority(), *granted));
        signal == Some(false) || usage.is_some_and(|usage| usage.1 == Some(false))
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
        usage.sort_by_key(|(pattern, _)| std::cmp::Reverse(pattern.map(PathPattern::priority)));
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
        let signal = self
            .content_signal
            .iter()
            .map(|value| (None, value.as_str()));
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

    /// Whether a request is for `/.well-known/tdmrep.json`, or for a licence or a TDM policy that the
    /// site names. Only paths are compared, not hosts.
    pub fn is_terms_page(&self, target: RequestTarget<'_>) -> bool {
        let requested = without_query(target.sent);
        requested == TDMREP_PATH || self.terms.iter().any(|path| **path == *requested)
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
    use super::*;
    use crate::robots::TargetScratch;

    /// Whether `/press/1` is reserved by these headers and by these lines of a group.
    fn is_reserved(signals: &mut CompiledSignals, lines: &[&str]) -> bool {
        let lines = lines.iter();
        let lines = lines.map(|line| line.split_once(": ").expect("a line"));
        signals.group_training = vec![TrainingStatements::new(lines)];
        let mut scratch = TargetScratch::default();
        signals.reserves_training(scratch.normalise(b"/press/1"), Some(0))
    }

    #[test]
    fn reservation_is_a_denied_use_for_training() {
        for (lines, reserved) in [
            (&["content-signal: search=yes, AI-Train = no"][..], true),
            (&["Content-Signal: ai-train=yes, search=no"], false),
            (&["Content-Usage: search=y, train-ai=n;x=1"], true),
            (&["Content-Usage: train-ai=n, train-ai=y"], false),
            (&["Content-Usage: Train-AI=n"], false),
            (&["Content-Usage: train-ai=n, not a key"], false),
            (&["Content-Usage: /press/ train-ai=n"], true),
            (&["Content-Usage: /other/ train-ai=n"], false),
            (
                &[
                    "Content-Usage: /press/ train-ai=y",
                    "Content-Usage: train-ai=n",
                ],
                false,
            ),
            (
                &["Content-Usage: train-ai=n", "Content-Usage: search=y"],
                true,
            ),
            (
                &[
                    "Content-Usage: train-ai=n",
                    "Content-Usage: /press/ search=y",
                ],
                false,
            ),
        ] {
            let found = is_reserved(&mut CompiledSignals::default(), lines);
            assert_eq!(found, reserved, "{lines:?}");
        }
    }

    #[test]
    fn tdm_counts_before_the_group_and_the_group_before_headers() {
        let mut signals = CompiledSignals {
            content_signal: Some("ai-train=no".to_owned()),
            default_usage: Some("train-ai=n".to_owned()),
            ..CompiledSignals::default()
        };
        let granted = ["Content-Signal: ai-train=yes", "Content-Usage: train-ai=y"];
        assert!(is_reserved(&mut signals, &[]) && is_reserved(&mut signals, &granted[..1]));
        assert!(!is_reserved(&mut signals, &granted));
        // A line about another use leaves the header's reservation in force.
        let silent = ["Content-Signal: search=yes", "Content-Usage: train-ai=y"];
        assert!(is_reserved(&mut signals, &silent));
        signals.tdm.push(TdmStatement {
            paths: Vec::new(),
            reserved: true,
            policy: None,
        });
        assert!(is_reserved(&mut signals, &granted));
        signals.tdm[0].reserved = false;
        assert!(!is_reserved(&mut signals, &silent));
        signals.tdm[0].reserved = true;
        signals.terms.push(b"/press/1".as_slice().into());
        assert!(!is_reserved(&mut signals, &[]));
    }
}
