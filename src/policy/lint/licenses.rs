//! Lints of licences: [`unreachable`] finds those that no page names, [`of_nobody`] crawlers that are asked for a
//! licence that does not exist.

use super::catalogue as lints;
use crate::crawlers::Registry;
use crate::policy::compile::signals::covers_all;
use crate::policy::model::{OriginRobots, Unlicensed};
use crate::policy::site::{PathSignals, Site};
use crate::yaml::Diagnostics;

/// Reports licences behind one for the whole site. robots.txt names all licences; pages and refusals name the first
/// that covers the path.
pub fn unreachable(site: &Site, diagnostics: &mut Diagnostics) {
    let licenses = &site.policy.robots.signals.licenses;
    let Some(first) = licenses.iter().position(|license| covers_all(&license.paths)) else { return };
    for license in &licenses[first + 1..] {
        diagnostics.push(
            lints::UNREACHABLE_LICENSE
                .at(license.url.span, "no page ever names this licence: one before it is for the whole site")
                .related(licenses[first].url.span, "the first that covers a path counts")
                .help("say what it covers (`url` and `paths`), and write the licence for the whole site last"),
        );
    }
}

/// The help: the two places of a licence.
const HELP: &str =
    "write one for the site (`robots: { license: ... }`) or in its group (`groups: [{ agents: ..., license: ... }]`)";

/// Reports demands for a licence where none covers the crawler: it passes as if nothing was demanded.
pub fn of_nobody(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    // The licences of the origin's file are not known here.
    let is_unknown = site.policy.robots.origin != OriginRobots::Replace && site.origin.is_none();
    if is_unknown || !site.policy.robots.signals.licenses.is_empty() {
        return;
    }
    if site.origin.is_some() && !site.signals.names_license() {
        for said in site.policy.asks_for_license() {
            diagnostics.push(
                lints::LICENSE_OF_NOBODY
                    .at(
                        said.span,
                        "neither the policy nor the origin's robots.txt names a licence: no crawler is asked for one",
                    )
                    .help(HELP),
            );
        }
        return;
    }
    for (agent, fields) in &site.policy.enforcement.agents {
        let Some(said) = fields.unlicensed.as_ref().filter(|said| said.value != Unlicensed::Pass) else { continue };
        let group = site.crawler_rules(site.claim_of(&agent.value, registry)).binding.group();
        if site.signals.license(PathSignals::default(), group).is_none() {
            diagnostics.push(
                lints::LICENSE_OF_NOBODY
                    .at(said.span, format!("`{}` is told of no licence, so it is not asked for one", agent.value))
                    .help(HELP),
            );
        }
    }
}
