//! Compares, for `crawlgate diff`, the header lines that the old and the new rules add to the
//! response for a page: X-Robots-Tag, and lines that say how the content may be used. X-Robots-Tag
//! can depend on the content type and the status of the response. If an access log is given,
//! [`header_changes_of_response`] compares the lines for each response in the log. Otherwise
//! [`header_changes_of_kinds`] compares the lines for each type and status that a policy mentions
//! ([`ResponseKinds`]).

use super::HeaderChange;
use crate::heads::{example_extension, likely_content_type, media_type};
use crate::policy::Site;
use crate::policy::model::StatusCondition;
use crate::verdict::Decision;
use std::collections::BTreeSet;

/// The pairs of type and status that the conditions of two policies distinguish.
pub struct ResponseKinds(BTreeSet<(String, u16)>);

const PAGE_TYPE: &str = "text/html";

impl ResponseKinds {
    /// Combines the types of all conditions and `text/html` with the statuses of all conditions and
    /// 200. `image/*` gives one type as an example.
    pub fn from_sites(sites: [&Site; 2]) -> ResponseKinds {
        let mut types = BTreeSet::from([PAGE_TYPE.to_owned()]);
        let mut statuses = BTreeSet::from([200]);
        for rule in sites.into_iter().flat_map(|site| &site.policy.indexing) {
            for conditions in std::iter::once(&rule.when).chain(&rule.unless) {
                for kind in &conditions.types {
                    types.insert(match example_extension(kind) {
                        Some((_, media)) => media.to_owned(),
                        None => kind.replace('*', "x"),
                    });
                }
                for condition in &conditions.status {
                    statuses.insert(match condition.value {
                        StatusCondition::Code(code) => code,
                        StatusCondition::Class(4) => 404,
                        StatusCondition::Class(class) => u16::from(class) * 100,
                    });
                }
            }
        }
        ResponseKinds(
            types
                .iter()
                .flat_map(|kind| statuses.iter().map(move |status| (kind.clone(), *status)))
                .collect(),
        )
    }
}

/// A site and its decision.
pub type SiteDecision<'a> = (&'a Site, &'a Decision);

/// The lines that differ for one URL: for a page with status 200, and for each of `kinds` whose type
/// fits the extension of the URL. A type without an extension fits every URL. Equal differences are
/// reported once.
pub fn header_changes_of_kinds(
    sides: [SiteDecision<'_>; 2],
    kinds: &ResponseKinds,
    target: &[u8],
) -> Vec<HeaderChange> {
    let mut found = Vec::from_iter(signals_change(sides));
    let page = std::iter::once((PAGE_TYPE, 200));
    let others = kinds
        .0
        .iter()
        .map(|(kind, status)| (kind.as_str(), *status))
        .filter(|kind| *kind != (PAGE_TYPE, 200))
        .filter(|(kind, _)| {
            example_extension(kind).is_none_or(|(_, media)| media == likely_content_type(target))
        });
    for (kind, status) in page.chain(others) {
        let [old, new] = sides.map(|decided| tag_lines(decided, status, kind.as_bytes()));
        let is_known = found
            .iter()
            .any(|known| known.old == old && known.new == new);
        if old != new && !is_known {
            found.push(HeaderChange {
                field: "X-Robots-Tag",
                old,
                new,
                content_type: kind.to_owned(),
                status,
            });
        }
    }
    found
}

/// The lines that differ for a response of this status and type. Tags are reported for the most
/// general kind that differs in the same way: a page with status 200, this type with status 200, a
/// page with this status, this type and status.
pub fn header_changes_of_response(
    sides: [SiteDecision<'_>; 2],
    status: u16,
    media: &[u8],
) -> Vec<HeaderChange> {
    let mut found = Vec::from_iter(signals_change(sides));
    let lines = sides.map(|decided| tag_lines(decided, status, media));
    if lines[0] != lines[1] {
        let name = String::from_utf8_lossy(media_type(media)).to_ascii_lowercase();
        let (status, media) = [(200, PAGE_TYPE), (200, name.as_str()), (status, PAGE_TYPE)]
            .into_iter()
            .find(|(status, media)| {
                sides.map(|decided| tag_lines(decided, *status, media.as_bytes())) == lines
            })
            .unwrap_or((status, &name));
        let [old, new] = lines;
        found.push(HeaderChange {
            field: "X-Robots-Tag",
            old,
            new,
            content_type: media.to_owned(),
            status,
        });
    }
    found
}

/// The lines about the use of the content, if they differ. They depend on neither type nor status.
fn signals_change(sides: [SiteDecision<'_>; 2]) -> Option<HeaderChange> {
    let [old, new] = sides.map(|(site, decision)| site.signals.lines(decision.signals));
    (old != new).then(|| HeaderChange {
        field: "signals",
        old,
        new,
        content_type: PAGE_TYPE.to_owned(),
        status: 200,
    })
}

/// The lines of X-Robots-Tag that a site sends for a status and type.
fn tag_lines(decided: SiteDecision<'_>, status: u16, media: &[u8]) -> Vec<String> {
    let (site, decision) = decided;
    site.tags
        .tags(&decision.path_rules, status, Some(media))
        .map(|lines| lines.lines.clone())
        .unwrap_or_default()
}
