//! Conversion between the publication log (which site published which robots.txt when) and the
//! records of the state store. [`log_records`] makes the records of a log. [`remembered_log`] and
//! [`remembered_versions`] read the log and the versions of an earlier process.

use crate::policy::Version;
use crate::policy::decode::parse_host;
use crate::policy::host_history::ClockJump;
use crate::publications::{Change, Gaps, Publication, PublicationLog, Span, Tenure, VersionStore};
use crate::state::{
    self, AnyRecord, DeclaredVersion, GapReason, HistoryGap, HostTenure, StoredFacts,
};
use crate::time::Timestamp;
use std::time::Duration;

/// The log of an earlier process. A host tenure whose host cannot be read is left out, and then the
/// log counts as lost at `now`, because it is not known what was published there. A declared
/// version that cannot be read is left out without that.
pub fn remembered_log(facts: &StoredFacts, now: Timestamp) -> PublicationLog {
    let tenures: Vec<Tenure> = facts
        .host_tenures
        .iter()
        .filter_map(|(_, record)| tenure_of(record))
        .collect();
    let publications: Vec<Publication> = facts
        .publications
        .iter()
        .map(|(_, record)| publication_of(record))
        .collect();
    let is_whole = tenures.len() == facts.host_tenures.len();
    let mut gaps = Gaps::default();
    for (_, gap) in &facts.history_gaps {
        let place = match gap.reason {
            GapReason::Cut => &mut gaps.cut_at,
            GapReason::Lost => &mut gaps.lost_at,
            GapReason::Broken => &mut gaps.broken_at,
        };
        place.get_or_insert(gap.at);
    }
    let declared = facts.declared_versions.iter();
    let declared = declared
        .filter_map(|(_, record)| Some((record.site.clone(), Version::parse(&record.version)?)));
    let jumps = facts.clock_jumps.iter().map(|(_, jump)| ClockJump {
        at: jump.at,
        by: Duration::from_secs(jump.by),
    });
    let mut log = PublicationLog::remembered(
        tenures,
        publications,
        declared.collect(),
        gaps,
        jumps.collect(),
    );
    if !is_whole {
        log.set_lost(now);
    }
    log
}

/// The bytes of the versions that an earlier process published. Bytes that are not those of their
/// version are left out.
pub fn remembered_versions(facts: &StoredFacts) -> VersionStore {
    let mut versions = VersionStore::default();
    for (_, record) in &facts.versions {
        let version = Version::of(&record.bytes);
        if Version::parse(&record.id) == Some(version) {
            versions.insert(version, record.bytes.clone());
        }
    }
    versions
}

/// The records to store for a log: publications, clock jumps, tenures of hosts, declared versions,
/// and the gaps that there are.
pub fn log_records(log: &PublicationLog) -> impl Iterator<Item = AnyRecord> {
    let Gaps {
        cut_at,
        lost_at,
        broken_at,
    } = log.gaps;
    let gaps = [
        (GapReason::Cut, cut_at),
        (GapReason::Lost, lost_at),
        (GapReason::Broken, broken_at),
    ];
    let declared = log.declared.iter().map(|(site, version)| {
        DeclaredVersion {
            site: site.clone(),
            version: version.to_string(),
        }
        .into()
    });
    let jumps = log.jumps.iter().map(|jump| {
        state::ClockJump {
            at: jump.at,
            by: jump.by.as_secs(),
        }
        .into()
    });
    let publications = log
        .publications
        .iter()
        .map(|known| publication_record(known).into());
    publications
        .chain(jumps)
        .chain(log.tenures.iter().map(|known| tenure_record(known).into()))
        .chain(declared)
        .chain(
            gaps.into_iter()
                .filter_map(|(reason, at)| Some(HistoryGap { reason, at: at? }.into())),
        )
}

/// The span that begins at `since` with the log's change of this number. It is open unless both its
/// end and the number of the change that ended it are given.
fn span_of(number: u64, since: Timestamp, until: Option<Timestamp>, ended_by: Option<u64>) -> Span {
    let until = until
        .zip(ended_by)
        .map(|(at, number)| Change { number, at });
    Span {
        since: Change { number, at: since },
        until,
    }
}

/// The tenure of a stored record; empty `hosts` stand for every other host. `None` if the host
/// pattern cannot be read.
fn tenure_of(record: &HostTenure) -> Option<Tenure> {
    let pattern = match record.hosts.as_str() {
        "" => None,
        written => Some(parse_host(written).ok()?),
    };
    Some(Tenure {
        pattern,
        site: record.site.clone(),
        span: span_of(record.number, record.since, record.until, record.ended_by),
    })
}

fn tenure_record(tenure: &Tenure) -> HostTenure {
    let Span { since, until } = tenure.span;
    HostTenure {
        hosts: tenure
            .pattern
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        number: since.number,
        site: tenure.site.clone(),
        since: since.at,
        until: until.map(|until| until.at),
        ended_by: until.map(|until| until.number),
    }
}

/// The publication of a stored record. What a record does not have (`unreported_until`) is `None`.
fn publication_of(record: &state::Publication) -> Publication {
    Publication {
        site: record.site.clone(),
        published: record.answered,
        // A digest that cannot be read equals no other: crawlers count as told apart anew.
        identities: u64::from_str_radix(&record.identities, 16).unwrap_or_default(),
        tells: record.tells,
        span: span_of(record.number, record.since, record.until, record.ended_by),
        unreported_until: None,
    }
}

fn publication_record(publication: &Publication) -> state::Publication {
    let Span { since, until } = publication.span;
    state::Publication {
        site: publication.site.clone(),
        number: since.number,
        answered: publication.published,
        identities: format!("{:016x}", publication.identities),
        tells: publication.tells,
        since: since.at,
        until: until.map(|until| until.at),
        ended_by: until.map(|until| until.number),
    }
}
