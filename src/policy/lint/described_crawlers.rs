//! Lints of `crawlers`: markers and networks by which one crawler would be taken for another.

use super::catalogue as lints;
use crate::crawlers::{Claim, Crawler, Purpose, Registry};
use crate::policy::model::DescribedCrawler;
use crate::policy::site::Site;
use crate::yaml::{Diagnostics, Located};
use ipnet::IpNet;

/// The first address of the IPv6 block that addresses are given out of.
const GIVEN_OUT: std::net::Ipv6Addr = std::net::Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0);

pub fn lint(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    let policy = &site.policy;
    for described in &policy.crawlers {
        let known = registry.find(&described.token.value).map(|index| registry.get(index));
        markers(described, known, registry, &policy.crawlers, diagnostics);
        if let Some(network) = described.networks.iter().find(|network| is_of_everybody(network)) {
            diagnostics.push(
                lints::NETWORK_OF_EVERYBODY
                    .at(described.token.span, format!("`{network}` holds half of all addresses in use, or more"))
                    .label("every client of this name is verified")
                    .help("write the networks that its operator publishes; leave `networks` out if there are none"),
            );
        }
    }
}

/// A marker that is another crawler's: its requests would be taken for this one's.
fn markers(
    described: &DescribedCrawler,
    known: Option<&Crawler>,
    registry: &Registry,
    all: &[DescribedCrawler],
    diagnostics: &mut Diagnostics,
) {
    for marker in &described.user_agent {
        let named = |index| {
            let crawler: &Crawler = registry.get(index);
            let is = |text: &String| text.trim_start_matches(['=', '^']).eq_ignore_ascii_case(&marker.value);
            let other = known.is_none_or(|known| known.id != crawler.id);
            // A library may well be what the owner's described crawler is made of.
            (other && crawler.purpose != Purpose::Tool && crawler.markers.iter().chain(&crawler.tokens).any(is))
                .then_some(crawler.name.as_str())
        };
        let of_registry = match registry.identify(marker.value.as_bytes()) {
            Claim::Known(index) => named(index),
            _ => None,
        };
        let has = |other: &&DescribedCrawler| {
            let is = |other: &Located<String>| other.value.eq_ignore_ascii_case(&marker.value);
            other.token.span != described.token.span
                && (other.user_agent.iter().any(is) || other.user_agent.is_empty() && is(&other.token))
        };
        let of_owner = all.iter().find(has).map(|other| other.token.value.as_str());
        if let Some(other) = of_registry.or(of_owner) {
            diagnostics.push(
                lints::MARK_OF_ANOTHER
                    .at(marker.span, format!("`{}` is what {other} is known by", marker.value))
                    .label("one of the two would be taken for the other")
                    .help(format!("write what stands in the user agent of {} only", described.token.value)),
            );
        }
    }
}

/// Whether a network holds all addresses in use, or nearly all. All IPv6 addresses that were ever given out stand in
/// the lower half of 2000::/3 (IANA, IPv6 Global Unicast Address Assignments), but for a block of examples.
fn is_of_everybody(network: &IpNet) -> bool {
    match network {
        IpNet::V4(network) => network.prefix_len() <= 1,
        IpNet::V6(network) => network.prefix_len() <= 4 && network.contains(&GIVEN_OUT),
    }
}
