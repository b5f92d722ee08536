//! Converts the publication log to rows (facts) of the state database, and back. The log records
//! what each host published as robots.txt. [`log_to_facts`] makes the facts. After a restart,
//! [`log_from_facts`] makes the log from them again, and [`versions_from_facts`] the robots.txt
//! files.

use crate::facts::{AnyFact, DeclaredVersion, GapReason, HistoryGap, StoredFacts};
use crate::policy::RobotsVersionId;
use crate::publications::{LogGaps, PublicationLog, VersionStore};
use crate::time::Timestamp;

use GapReason::*;

/// The log of an earlier process.
pub fn log_from_facts(facts: &StoredFacts) -> PublicationLog {
    let mut gaps = LogGaps::default();
    for (_, gap) in &facts.history_gaps {
        gap_mut(&mut gaps, gap.reason).get_or_insert(gap.at);
    }
    let declared = facts.declared_versions.iter();
    PublicationLog::from_stored(
        drop_times(&facts.host_tenures),
        drop_times(&facts.publications),
        declared
            .map(|(_, declared)| (declared.site.clone(), declared.version))
            .collect(),
        gaps,
        drop_times(&facts.clock_jumps),
    )
}

fn drop_times<T: Clone>(facts: &[(Timestamp, T)]) -> Vec<T> {
    facts.iter().map(|(_, fact)| fact.clone()).collect()
}

/// The end of the gap in the log for this reason.
fn gap_mut(gaps: &mut LogGaps, reason: GapReason) -> &mut Option<Timestamp> {
    match reason {
        Cut => &mut gaps.cut_at,
        Lost => &mut gaps.lost_at,
        Broken => &mut gaps.broken_at,
    }
}

/// The bytes of the versions that an earlier process published. Bytes that do not match their
/// version are left out.
pub fn versions_from_facts(facts: &StoredFacts) -> VersionStore {
    let mut versions = VersionStore::default();
    for (_, file) in &facts.versions {
        if RobotsVersionId::from_body(&file.bytes) == file.id {
            versions.insert(file.id, file.bytes.clone());
        }
    }
    versions
}

/// The facts of a log: publications, clock jumps, tenures of hosts, declared versions, and gaps.
pub fn log_to_facts(log: &PublicationLog) -> Vec<AnyFact> {
    let mut facts: Vec<AnyFact> = Vec::new();
    facts.extend(log.publications.iter().cloned().map(AnyFact::from));
    facts.extend(log.jumps.iter().copied().map(AnyFact::from));
    facts.extend(log.tenures.iter().cloned().map(AnyFact::from));
    for (site, version) in &log.declared {
        let declared = DeclaredVersion {
            site: site.clone(),
            version: *version,
        };
        facts.push(declared.into());
    }
    let mut gaps = log.gaps;
    for reason in [GapReason::Cut, Lost, GapReason::Broken] {
        if let Some(at) = *gap_mut(&mut gaps, reason) {
            facts.push(HistoryGap { reason, at }.into());
        }
    }
    facts
}
