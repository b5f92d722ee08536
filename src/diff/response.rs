//! [`differences`] compares the header lines that two sites add to the same page: X-Robots-Tag, and
//! the lines that say how the content may be used. A policy can make tags depend on the type and
//! status of a response, so each type and status that either policy mentions is compared.

use super::HeaderChange;
use crate::heads::{example_of, likely_type};
use crate::policy::Site;
use crate::policy::model::{Conditions, StatusCondition};
use crate::verdict::Decision;
use std::collections::BTreeSet;

/// The types and statuses that the conditions of two policies tell apart.
pub struct Kinds(BTreeSet<(String, u16)>);

/// The type of a page, unless a condition asks for another.
const PAGE: &str = "text/html";

impl Kinds {
    /// Each type that a condition on responses names, and `text/html`, with each status that one
    /// names, and 200. `image/*` gives one type as an example.
    pub fn of(sites: [&Site; 2]) -> Kinds {
        let mut types = BTreeSet::from([PAGE.to_owned()]);
        let mut statuses = BTreeSet::from([200]);
        for rule in sites.into_iter().flat_map(|site| &site.policy.indexing) {
            for conditions in std::iter::once(&rule.when).chain(&rule.unless) {
                types.extend(types_of(conditions));
                statuses.extend(statuses_of(conditions));
            }
        }
        Kinds(
            types
                .iter()
                .flat_map(|kind| statuses.iter().map(move |status| (kind.clone(), *status)))
                .collect(),
        )
    }
}

fn types_of(conditions: &Conditions) -> impl Iterator<Item = String> {
    conditions.types.iter().map(|kind| match example_of(kind) {
        Some((_, media)) => media.to_owned(),
        None => kind.replace('*', "x"),
    })
}

fn statuses_of(conditions: &Conditions) -> impl Iterator<Item = u16> {
    conditions
        .status
        .iter()
        .map(|condition| match condition.value {
            StatusCondition::Code(code) => code,
            StatusCondition::Class(class) => u16::from(class) * 100 + 4 * u16::from(class == 4),
        })
}

/// A site and its decision.
pub type Decided<'a> = (&'a Site, &'a Decision);

/// The lines that differ for one URL, for each of these kinds of responses: a page with status 200,
/// and each of `kinds` whose type fits the ending of the URL (a type that no ending stands for fits
/// every URL). The same difference is reported once, for the page if that has it.
pub fn differences(sides: [Decided<'_>; 2], kinds: &Kinds, target: &[u8]) -> Vec<HeaderChange> {
    let mut found: Vec<HeaderChange> = signals(sides).into_iter().collect();
    let page = std::iter::once((PAGE, 200));
    let others = kinds
        .0
        .iter()
        .map(|(kind, status)| (kind.as_str(), *status))
        .filter(|kind| *kind != (PAGE, 200));
    let others = others
        .filter(|(kind, _)| example_of(kind).is_none_or(|(_, media)| media == likely_type(target)));
    for (kind, status) in page.chain(others) {
        let [one, other] = sides.map(|decided| tags(decided, status, kind.as_bytes()));
        let is_known = found
            .iter()
            .any(|known| known.old == one && known.new == other);
        if one != other && !is_known {
            found.push(change("X-Robots-Tag", one, other, kind, status));
        }
    }
    found
}

/// The lines that differ for a response of this status and type. Tags that differ in the same way
/// for a page (`text/html`) with status 200 are reported as those, else for this type with status
/// 200, else for a page with this status, else for this type and status.
pub fn differences_of(sides: [Decided<'_>; 2], status: u16, media: &[u8]) -> Vec<HeaderChange> {
    let mut found: Vec<HeaderChange> = signals(sides).into_iter().collect();
    let said = sides.map(|decided| tags(decided, status, media));
    if said[0] != said[1] {
        let end = media
            .iter()
            .position(|octet| *octet == b';')
            .unwrap_or(media.len());
        let name = String::from_utf8_lossy(media[..end].trim_ascii()).to_ascii_lowercase();
        let general = [(200, PAGE), (200, name.as_str()), (status, PAGE)];
        let (status, media) = general
            .into_iter()
            .find(|(status, media)| {
                sides.map(|decided| tags(decided, *status, media.as_bytes())) == said
            })
            .unwrap_or((status, &name));
        let [one, other] = said;
        found.push(change("X-Robots-Tag", one, other, media, status));
    }
    found
}

/// The lines about the use of the content, if they differ. They do not depend on type and status.
fn signals(sides: [Decided<'_>; 2]) -> Option<HeaderChange> {
    let [one, other] = sides.map(|(site, decision)| {
        let fields = site.signals.fields(decision.signals);
        fields
            .map(|(name, value)| format!("{name}: {value}"))
            .collect::<Vec<_>>()
    });
    (one != other).then(|| change("signals", one, other, PAGE, 200))
}

/// The lines of X-Robots-Tag that a site sends for a status and type; none if it sends none.
fn tags(decided: Decided<'_>, status: u16, media: &[u8]) -> Vec<String> {
    let (site, decision) = decided;
    let lines = site.tags.tags(&decision.path_rules, status, Some(media));
    lines.map(|lines| lines.lines.clone()).unwrap_or_default()
}

fn change(
    field: &'static str,
    old: Vec<String>,
    new: Vec<String>,
    media: &str,
    status: u16,
) -> HeaderChange {
    HeaderChange {
        field,
        old,
        new,
        content_type: media.to_owned(),
        status,
    }
}
