//! The lint of `crawlers`: networks that prove everybody.

use super::catalogue as lints;
use crate::policy::site::Site;
use crate::yaml::Diagnostics;
use ipnet::IpNet;

pub fn lint(site: &Site, diagnostics: &mut Diagnostics) {
    for described in &site.policy.crawlers {
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

/// Whether a network holds half of all addresses in use. All IPv6 addresses that were ever given out stand in the lower half
/// of 2000::/3 (IANA, IPv6 Global Unicast Address Assignments), but for a block of examples.
fn is_of_everybody(network: &IpNet) -> bool {
    network.prefix_len() <= if network.addr().is_ipv4() { 1 } else { 4 }
}
