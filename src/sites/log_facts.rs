//! The publication log (which site published which robots.txt when) as facts, and back.

use crate::facts::{AnyFact, DeclaredVersion, GapReason, HistoryGap, StoredFacts};
use crate::policy::Version;
use crate::publications::{Gaps, PublicationLog, VersionStore};
use crate::time::Timestamp;

/// The log of an earlier process.
pub fn remembered_log(facts: &StoredFacts) -> PublicationLog {
    let mut gaps = Gaps::default();
    for (_, gap) in &facts.history_gaps {
        gap_of(&mut gaps, gap.reason).get_or_insert(gap.at);
    }
    let declared = facts.declared_versions.iter();
    PublicationLog::remembered(
        without_times(&facts.host_tenures),
        without_times(&facts.publications),
        declared
            .map(|(_, declared)| (declared.site.clone(), declared.version))
            .collect(),
        gaps,
        without_times(&facts.clock_jumps),
    )
}

fn without_times<T: Clone>(facts: &[(Timestamp, T)]) -> Vec<T> {
    facts.iter().map(|(_, fact)| fact.clone()).collect()
}

/// The moment of a gap in the log, by its reason.
fn gap_of(gaps: &mut Gaps, reason: GapReason) -> &mut Option<Timestamp> {
    match reason {
        GapReason::Cut => &mut gaps.cut_at,
        GapReason::Lost => &mut gaps.lost_at,
        GapReason::Broken => &mut gaps.broken_at,
    }
}

/// The bytes of the versions that an earlier process published. Bytes that are not those of their
/// version are left out.
pub fn remembered_versions(facts: &StoredFacts) -> VersionStore {
    let mut versions = VersionStore::default();
    for (_, file) in &facts.versions {
        if Version::of(&file.bytes) == file.id {
            versions.insert(file.id, file.bytes.clone());
        }
    }
    versions
}

/// The facts of a log: publications, clock jumps, tenures of hosts, declared versions, and the gaps
/// that there are.
pub fn log_facts(log: &PublicationLog) -> Vec<AnyFact> {
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
    for reason in [GapReason::Cut, GapReason::Lost, GapReason::Broken] {
        if let Some(at) = *gap_of(&mut gaps, reason) {
            facts.push(HistoryGap { reason, at }.into());
        }
    }
    facts
}
