//! [`LogIndex`]: an index of the publication log (what sites published as robots.txt) by host
//! pattern. It finds the sites that had the hosts of a pattern, and what each site published while
//! it had these hosts. The result is a list of [`TimelineSpan`]s: spans of time in which one
//! publication counted for a host.

use super::TimelineSpan;
use crate::policy::model::HostPattern;
use crate::publications::{HostTenure, Publication, PublicationLog};
use std::collections::{BTreeSet, HashMap};

/// The tenures that may count for a host, by pattern, the closest pattern first. The tenures of one
/// pattern do not overlap.
pub(super) type TenureLevels<'a> = Vec<&'a [&'a HostTenure]>;

/// Identifies a tenure: its level, its site, and the numbers of its first and last change.
pub(super) type TenureKey<'a> = (usize, &'a str, u64, u64);

/// A log, by patterns (`None` stands for every other host) and by the names of sites.
#[derive(Default)]
pub(super) struct LogIndex<'a> {
    tenures: HashMap<Option<HostPattern>, Vec<&'a HostTenure>>,
    publications: HashMap<&'a str, Vec<&'a Publication>>,
}

impl<'a> LogIndex<'a> {
    pub(super) fn new(log: &'a PublicationLog) -> LogIndex<'a> {
        let mut index = LogIndex::default();
        for tenure in &log.tenures {
            let pattern = tenure.pattern.clone();
            index.tenures.entry(pattern).or_default().push(tenure);
        }
        for publication in &log.publications {
            index
                .publications
                .entry(&publication.site)
                .or_default()
                .push(publication);
        }
        index
    }

    /// The tenures of all patterns that cover the hosts of `pattern`, the closest pattern first: the
    /// name itself, wildcards above it from the longest to the shortest, and every other host. For
    /// each name the pattern with the port comes before the one for any port.
    pub(super) fn tenure_levels(&self, pattern: Option<&HostPattern>) -> TenureLevels<'_> {
        let mut levels = TenureLevels::new();
        if let Some(pattern) = pattern {
            self.add_levels(&mut levels, pattern.clone());
            let mut name = pattern.name.as_str();
            while let Some((_, parent)) = name.split_once('.') {
                let wider = HostPattern {
                    wildcard: true,
                    name: parent.to_owned(),
                    port: pattern.port,
                };
                self.add_levels(&mut levels, wider);
                name = parent;
            }
        }
        levels.extend(self.tenures.get(&None).map(Vec::as_slice));
        levels
    }

    /// Adds the tenures of a pattern: first those with its port, then those for any port.
    fn add_levels<'s>(&'s self, levels: &mut TenureLevels<'s>, pattern: HostPattern) {
        let any_port = HostPattern {
            port: None,
            ..pattern.clone()
        };
        let with_port = Some(pattern).filter(|pattern| pattern.port.is_some());
        for pattern in with_port.into_iter().chain([any_port]) {
            levels.extend(self.tenures.get(&Some(pattern)).map(Vec::as_slice));
        }
    }

    /// A key for these levels. Levels with the same key have the same spans, so their patterns can
    /// share a history.
    pub(super) fn levels_key(&self, levels: &TenureLevels<'a>) -> Vec<TenureKey<'a>> {
        let mut key = Vec::new();
        for (level, tenures) in levels.iter().enumerate() {
            for tenure in *tenures {
                let site = tenure.site.as_str();
                // The time before the first recorded publication makes no difference.
                let first = self.publications.get(site).and_then(|known| known.first());
                let first = first.map_or(0, |first| first.span.since.number);
                let since = tenure.span.since.number.max(first);
                key.push((level, site, since, tenure.span.end()));
            }
        }
        key
    }

    /// What was published for these levels, the oldest first, without overlaps. A tenure of a wider
    /// pattern counts only where none of a closer one does.
    pub(super) fn spans(&self, levels: &TenureLevels<'a>) -> Vec<TimelineSpan<'a>> {
        let mut spans: Vec<TimelineSpan<'a>> = Vec::new();
        for tenures in levels {
            let level = tenures.iter().flat_map(|tenure| {
                let known = self.publications.get(tenure.site.as_str());
                let known = known.into_iter().flatten();
                known.filter_map(|publication| overlapping_span(tenure, publication))
            });
            let mut gaps: Vec<TimelineSpan<'a>> = level
                .flat_map(|span| uncovered_parts(span, &spans))
                .collect();
            spans.append(&mut gaps);
            spans.sort_by_key(|span| span.since.number);
        }
        spans
    }
}

/// All patterns that need a history of their own: each name with each port, because a wider pattern
/// may name another port, and every other host (`None`).
pub(super) fn distinct_patterns(indexes: &[LogIndex<'_>]) -> Vec<Option<HostPattern>> {
    let mut ports: BTreeSet<Option<u16>> = BTreeSet::from([None]);
    let mut names: BTreeSet<(bool, &str)> = BTreeSet::new();
    for index in indexes {
        for pattern in index.tenures.keys().flatten() {
            ports.insert(pattern.port);
            names.insert((pattern.wildcard, &pattern.name));
        }
    }
    let mut patterns = Vec::new();
    for (wildcard, name) in names {
        for port in &ports {
            patterns.push(Some(HostPattern {
                wildcard,
                name: name.to_owned(),
                port: *port,
            }));
        }
    }
    patterns.push(None);
    patterns
}

/// The time in which a publication counted for the hosts of a tenure; `None` if they do not overlap.
fn overlapping_span<'a>(
    tenure: &HostTenure,
    publication: &'a Publication,
) -> Option<TimelineSpan<'a>> {
    let since = [tenure.span.since, publication.span.since]
        .into_iter()
        .max_by_key(|change| change.number)?;
    let until = tenure
        .span
        .until
        .into_iter()
        .chain(publication.span.until)
        .min_by_key(|change| change.number);
    let span = TimelineSpan {
        publication,
        since,
        until,
    };
    (since.number < span.end()).then_some(span)
}

/// The parts of a span that no other span covers. The others are sorted and do not overlap.
fn uncovered_parts<'a>(
    span: TimelineSpan<'a>,
    covered: &[TimelineSpan<'a>],
) -> Vec<TimelineSpan<'a>> {
    let mut parts = Vec::new();
    let mut since = Some(span.since);
    let first = covered.partition_point(|other| other.end() <= span.since.number);
    for other in &covered[first..] {
        let Some(begin) = since.filter(|_| other.since.number < span.end()) else {
            break;
        };
        if begin.number < other.since.number {
            parts.push(TimelineSpan {
                since: begin,
                until: Some(other.since),
                ..span
            });
        }
        since = other.until;
    }
    if let Some(begin) = since.filter(|begin| begin.number < span.end()) {
        parts.push(TimelineSpan {
            since: begin,
            ..span
        });
    }
    parts
}
