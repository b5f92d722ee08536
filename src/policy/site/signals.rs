//! [`SignalPlan`]: the header lines of a site about the use of its content (for example for AI
//! training), and `/.well-known/tdmrep.json`, ready to be sent. The path of a request decides which
//! lines its response gets ([`PathSignals`]).
//!
//! Sources: contentsignals.org and draft-romm-aipref-contentsignals-00 (`Content-Signal`),
//! draft-ietf-aipref-attach-05 and draft-ietf-aipref-vocab-08 (`Content-Usage`), RSL 1.0
//! (`License`, `Link`, `WWW-Authenticate`), TDMRep, W3C Community Group Final Report of 2024-05-10.

use crate::robots::{Pattern, RuleSet, Target, path_of};
use std::sync::Arc;

/// The path of the file with a site's rules of TDMRep.
const TDMREP: &[u8] = b"/.well-known/tdmrep.json";

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
    /// The value of Content-Signal, only where robots.txt does not say it.
    pub content_signal: Option<String>,
    /// The values of Content-Usage, by the index of their path in `usage_paths`.
    pub usage: Vec<String>,
    /// The paths that have a value of their own.
    pub usage_paths: RuleSet,
    /// The value for what no path matches.
    pub usage_of_all: Option<String>,
    /// The licences of the policy for the site or for paths.
    pub licenses: Vec<License>,
    /// The first licence in each group of the document, by the group's index.
    pub group_licenses: Vec<Option<License>>,
    /// The first licence before all groups that is not the policy's: the origin's, for the whole
    /// site.
    pub origin_license: Option<License>,
    /// The rules for text and data mining.
    pub tdm: Vec<Tdm>,
    /// The same as a file.
    pub tdmrep: Option<ServedFile>,
    /// Paths of licences and policies. They stay open: a crawler must be able to read what it is
    /// asked for.
    pub terms: Vec<Box<[u8]>>,
}

/// The lines that the path of a request selects: indexes into a [`SignalPlan`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathSignals {
    usage: Option<u16>,
    license: Option<u16>,
    tdm: Option<u16>,
}

/// A field of pages, with its values by path. Of several patterns that match a path the first
/// counts; `None` is every path.
#[derive(Debug)]
pub struct SignalField<'a> {
    /// Its name.
    pub name: &'static str,
    /// An empty value says that the field is missing.
    pub values: Vec<(Option<&'a Pattern>, &'a str)>,
}

/// An RSL licence, ready to be named.
#[derive(Debug)]
pub struct License {
    /// What it is for; empty for the whole site.
    pub paths: Vec<Pattern>,
    /// Its URL.
    pub url: String,
    /// The value of Link.
    pub link: String,
}

/// A rule of TDMRep.
#[derive(Debug)]
pub struct Tdm {
    /// What it is for; empty for the whole site.
    pub paths: Vec<Pattern>,
    /// Whether the right is reserved.
    pub reserved: bool,
    /// The URL of the owner's policy.
    pub policy: Option<String>,
}

impl Tdm {
    /// The value of `tdm-reservation`.
    fn reservation(&self) -> &'static str {
        if self.reserved { "1" } else { "0" }
    }
}

/// Whether a statement for these paths is for this one: without paths it is for all.
fn covers(paths: &[Pattern], path: &[u8]) -> bool {
    paths.is_empty() || paths.iter().any(|pattern| pattern.matches(path))
}

impl SignalPlan {
    /// The lines for a path, as most origins resolve it: `/open/../x` is answered with the page at
    /// `/x`. Does not allocate.
    pub fn for_path(&self, target: Target<'_>) -> PathSignals {
        let path = target.readings().last().unwrap_or(target.sent);
        // The longest path decides, as with Allow and Disallow (draft-ietf-aipref-attach-05
        // section 3.1).
        let usage = self.usage_paths.find(path);
        let mut licenses = self.licenses.iter();
        let license = licenses.position(|license| covers(&license.paths, path));
        // The first match is the one that counts in the file of the site (TDMRep section 5.2);
        // headers say the same.
        let tdm = self.tdm.iter().position(|rule| covers(&rule.paths, path));
        PathSignals {
            usage: usage.and_then(|index| u16::try_from(index).ok()),
            license: license.and_then(|index| u16::try_from(index).ok()),
            tdm: tdm.and_then(|index| u16::try_from(index).ok()),
        }
    }

    /// The header lines of a page: names as their drafts spell them, and values.
    pub fn fields(&self, said: PathSignals) -> impl Iterator<Item = (&'static str, &str)> {
        let tdm = said.tdm.and_then(|index| self.tdm.get(usize::from(index)));
        let usage = match said.usage {
            Some(index) => self.usage.get(usize::from(index)),
            None => self.usage_of_all.as_ref(),
        };
        let license = said
            .license
            .and_then(|index| self.licenses.get(usize::from(index)));
        [
            self.content_signal
                .as_deref()
                .map(|value| ("Content-Signal", value)),
            usage.map(|value| ("Content-Usage", value.as_str())),
            license.map(|license| ("Link", license.link.as_str())),
            tdm.map(|rule| ("tdm-reservation", rule.reservation())),
            tdm.and_then(|rule| rule.policy.as_deref())
                .map(|value| ("tdm-policy", value)),
        ]
        .into_iter()
        .flatten()
    }

    /// The fields of pages by path as it is sent, for servers that know paths alone. Content-Usage
    /// has the longest paths first, the other fields keep the order of the policy. Fields without
    /// values are left out.
    pub fn by_path(&self) -> Vec<SignalField<'_>> {
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
        usage.extend(self.usage_of_all.iter().map(|usage| (None, usage.as_str())));
        let signal = self
            .content_signal
            .iter()
            .map(|value| (None, value.as_str()))
            .collect();
        let license = self
            .licenses
            .iter()
            .flat_map(|license| each(&license.paths, &license.link))
            .collect();
        let tdm = self
            .tdm
            .iter()
            .flat_map(|rule| each(&rule.paths, rule.reservation()))
            .collect();
        let tdm_policy = if self.tdm.iter().any(|rule| rule.policy.is_some()) {
            self.tdm
                .iter()
                .flat_map(|rule| each(&rule.paths, rule.policy.as_deref().unwrap_or_default()))
                .collect()
        } else {
            Vec::new()
        };
        let fields = [
            SignalField {
                name: "Content-Signal",
                values: signal,
            },
            SignalField {
                name: "Content-Usage",
                values: usage,
            },
            SignalField {
                name: "Link",
                values: license,
            },
            SignalField {
                name: "tdm-policy",
                values: tdm_policy,
            },
            SignalField {
                name: "tdm-reservation",
                values: tdm,
            },
        ];
        fields
            .into_iter()
            .filter(|field| !field.values.is_empty())
            .collect()
    }

    /// The licence that a crawler of a group of the document is asked for: the first one in its
    /// group, whatever the path, else the policy's that covers the path, else the origin's for the
    /// whole site. An answer for one crawler need not be the same for all, as a page is.
    pub fn license(&self, said: PathSignals, group: Option<u16>) -> Option<&License> {
        let told = group
            .and_then(|group| self.group_licenses.get(usize::from(group)))
            .and_then(Option::as_ref);
        told.or_else(|| self.licenses.get(usize::from(said.license?)))
            .or(self.origin_license.as_ref())
    }

    /// Whether there is any licence that a crawler could be asked for.
    pub fn names_license(&self) -> bool {
        !self.licenses.is_empty()
            || self.origin_license.is_some()
            || self.group_licenses.iter().any(Option::is_some)
    }

    /// The file of TDMRep, where the policy speaks of it.
    pub fn tdmrep(&self) -> Option<&ServedFile> {
        self.tdmrep.as_ref()
    }

    /// Whether a request is for the file of TDMRep, with any query, and there is one.
    pub fn is_tdmrep(&self, target: Target<'_>) -> bool {
        self.has_at(path_of(target.sent))
    }

    /// Whether a path, as it came, is that of the file of TDMRep, and there is one.
    pub fn has_at(&self, path: &[u8]) -> bool {
        self.tdmrep.is_some() && path == TDMREP
    }

    /// Whether a request, with any query, is for a licence or a policy of TDM that the site names.
    /// Only paths are compared, not hosts. A crawler must be able to read what it is asked for.
    pub fn is_terms(&self, target: Target<'_>) -> bool {
        self.terms
            .iter()
            .any(|path| **path == *path_of(target.sent))
    }
}

/// A value for each of these paths, or for all.
fn each<'a>(paths: &'a [Pattern], value: &'a str) -> Vec<(Option<&'a Pattern>, &'a str)> {
    match paths {
        [] => vec![(None, value)],
        paths => paths.iter().map(|path| (Some(path), value)).collect(),
    }
}
