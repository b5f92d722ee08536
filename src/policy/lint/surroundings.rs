//! Lints of a policy's environment against its hosts: a copy of the wrong file closes a site, or opens a test site to
//! search.

use super::catalogue as lints;
use crate::policy::model::{Environment, HostPattern};
use crate::policy::site::Site;
use crate::yaml::Diagnostics;

/// Parts of host names by which people tell a test site from the site itself.
const OF_TEST_SITES: [&str; 14] = [
    "staging",
    "stage",
    "stg",
    "test",
    "testing",
    "dev",
    "develop",
    "development",
    "preview",
    "preprod",
    "qa",
    "uat",
    "sandbox",
    "beta",
];
/// Top-level domains that are not in public DNS (RFC 6761, RFC 8375): visitors cannot find such a site.
const NOT_PUBLIC: [&str; 4] = ["test", "localhost", "invalid", "local"];

pub fn lint(site: &Site, diagnostics: &mut Diagnostics) {
    let staging = site.policy.environment == Environment::Staging;
    for host in &site.policy.hosts {
        let name = host.value.to_string();
        if staging && looks_like_production(&host.value) {
            diagnostics.push(
                lints::STAGING_LOOKS_LIKE_PRODUCTION
                    .at(host.span, format!("`{name}` looks like the site itself, and every page of it says noindex"))
                    .label("a site like this drops out of search")
                    .help("is this the policy of the test site? For the site itself remove `environment: staging`"),
            );
        }
        if !staging && is_public(&host.value) && names_a_test_site(&host.value) {
            diagnostics.push(
                lints::PRODUCTION_LOOKS_LIKE_STAGING
                    .at(host.span, format!("`{name}` looks like a test site, and search engines may index it"))
                    .help("write `environment: staging` in a policy of its own for it"),
            );
        }
    }
}

fn is_public(host: &HostPattern) -> bool {
    let last = host.name.rsplit('.').next().unwrap_or_default();
    host.name.contains('.') && !NOT_PUBLIC.contains(&last) && !last.bytes().all(|byte| byte.is_ascii_digit())
}

fn names_a_test_site(host: &HostPattern) -> bool {
    // The last label is a domain of the world, the one before it the name of its owner.
    let labels = host.name.rsplit('.').skip(2);
    labels.flat_map(|label| label.split(['-', '_'])).any(|part| {
        let word = part.trim_end_matches(|sign: char| sign.is_ascii_digit());
        OF_TEST_SITES.contains(&word)
    })
}

/// `shop.example` and `www.shop.example`; a name in between may be anything.
fn looks_like_production(host: &HostPattern) -> bool {
    let labels: Vec<&str> = host.name.split('.').collect();
    is_public(host)
        && !host.wildcard
        && !names_a_test_site(host)
        && !labels[0].split('-').any(|part| OF_TEST_SITES.contains(&part))
        && (labels.len() == 2 || labels[0] == "www")
}
