//! The publication log as facts of the state store, and back. [`remembered_log`] reads what an earlier process kept,
//! [`changes`] says which facts a new log adds to an older one. This file must not know when facts are written.

use crate::history::{Change, Gaps, Publication, PublicationLog, Published, Span, Tenure, VersionStore};
use crate::policy::Version;
use crate::policy::decode::parse_host;
use crate::state::{self, Fact, Facts, GapReason, HistoryGap, HostTenure, ServedAs};
use crate::time::Timestamp;
use std::collections::HashMap;
use std::hash::Hash;

/// The log of an earlier process. A record that cannot be understood is left out and counts as a lost log, because what
/// was published then is not known.
pub fn remembered_log(facts: &Facts, now: Timestamp) -> PublicationLog {
    let tenures: Vec<Tenure> = facts.host_tenures.iter().filter_map(|(_, record)| tenure_of(record)).collect();
    let publications: Vec<Publication> = facts.publications.iter().map(|(_, record)| publication_of(record)).collect();
    let at = |reason: GapReason| {
        let known = facts.history_gaps.iter().find(|(_, gap)| gap.reason == reason);
        known.map(|(_, gap)| gap.at)
    };
    let is_whole = tenures.len() == facts.host_tenures.len();
    let gaps = Gaps { cut_at: at(GapReason::Cut), lost_at: at(GapReason::Lost) };
    let mut log = PublicationLog::remembered(tenures, publications, gaps);
    if !is_whole {
        log.was_lost(now);
    }
    log
}

/// The bytes of the versions that an earlier process published. Bytes that are not those of their version are left out.
pub fn remembered_versions(facts: &Facts) -> VersionStore {
    let mut versions = VersionStore::default();
    for (_, record) in &facts.versions {
        let version = Version::of(&record.bytes);
        if Version::parse(&record.id) == Some(version) {
            versions.insert(version, record.bytes.clone());
        }
    }
    versions
}

/// The facts that are new or gone in `after`, compared with `before`.
pub fn changes(before: &PublicationLog, after: &PublicationLog, now: Timestamp) -> Vec<Fact> {
    let of_publication = |known: &Publication| Fact::set(now, publication_record(known));
    let of_tenure = |known: &Tenure| Fact::set(now, tenure_record(known));
    let key = |known: &Publication| (known.site.clone(), known.span.since.number);
    let mut facts = changed(before.publications(), after.publications(), key, of_publication, now);
    let key = |known: &Tenure| (known.pattern.clone(), known.span.since.number);
    facts.extend(changed(before.tenures(), after.tenures(), key, of_tenure, now));
    let gaps = |log: &PublicationLog| {
        let Gaps { cut_at, lost_at } = log.gaps();
        [(GapReason::Cut, cut_at), (GapReason::Lost, lost_at)]
    };
    for ((reason, known), (_, new)) in gaps(before).into_iter().zip(gaps(after)) {
        match new {
            Some(at) if Some(at) != known => facts.push(Fact::set(now, HistoryGap { reason, at })),
            None if known.is_some() => facts.push(Fact::removed(now, HistoryGap { reason, at: now })),
            _ => {}
        }
    }
    facts
}

fn changed<T: PartialEq, K: Eq + Hash>(
    before: &[T],
    after: &[T],
    key: impl Fn(&T) -> K,
    fact: impl Fn(&T) -> Fact,
    now: Timestamp,
) -> Vec<Fact> {
    let mut known: HashMap<K, &T> = before.iter().map(|one| (key(one), one)).collect();
    let mut facts = Vec::new();
    for one in after {
        if known.remove(&key(one)) != Some(one) {
            facts.push(fact(one));
        }
    }
    facts.extend(known.into_values().map(|gone| Fact { at: now, is_removal: true, ..fact(gone) }));
    facts
}

fn span_of(number: u64, since: Timestamp, until: Option<Timestamp>, ended_by: Option<u64>) -> Span {
    let end = until.zip(ended_by).map(|(at, number)| Change { number, at });
    Span { since: Change { number, at: since }, until: end }
}

fn tenure_of(record: &HostTenure) -> Option<Tenure> {
    let pattern = match record.hosts.as_str() {
        "" => None,
        written => Some(parse_host(written).ok()?),
    };
    let span = span_of(record.number, record.since, record.until, record.ended_by);
    Some(Tenure { pattern, site: record.site.clone(), span })
}

fn tenure_record(tenure: &Tenure) -> HostTenure {
    let Span { since, until } = tenure.span;
    HostTenure {
        hosts: tenure.pattern.as_ref().map(ToString::to_string).unwrap_or_default(),
        number: since.number,
        site: tenure.site.clone(),
        since: since.at,
        until: until.map(|until| until.at),
        ended_by: until.map(|until| until.number),
    }
}

fn publication_of(record: &state::Publication) -> Publication {
    let published = match &record.answered {
        ServedAs::Version(id) => Version::parse(id).map_or(Published::Unknown, Published::Version),
        ServedAs::Unavailable => Published::Unavailable,
        ServedAs::Forgotten => Published::Unknown,
    };
    Publication {
        site: record.site.clone(),
        published,
        // A digest that cannot be read equals no other: crawlers count as told apart anew.
        identities: u64::from_str_radix(&record.identities, 16).unwrap_or_default(),
        tells: record.tells,
        span: span_of(record.number, record.since, record.until, record.ended_by),
    }
}

fn publication_record(publication: &Publication) -> state::Publication {
    let Span { since, until } = publication.span;
    state::Publication {
        site: publication.site.clone(),
        number: since.number,
        answered: match publication.published {
            Published::Version(version) => ServedAs::Version(version.to_string()),
            Published::Unavailable => ServedAs::Unavailable,
            Published::Unknown => ServedAs::Forgotten,
        },
        identities: format!("{:016x}", publication.identities),
        tells: publication.tells,
        since: since.at,
        until: until.map(|until| until.at),
        ended_by: until.map(|until| until.number),
    }
}
