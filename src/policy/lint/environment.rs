//! Lints of the policy field `environment` (production or staging). They report a value that does
//! not fit the site's host names. Such a mistake, often a copy of the wrong file, hides a
//! production site from search engines, or opens a test site to them.

use super::catalogue as lints;
use crate::policy::model::{Environment, HostPattern};
use crate::policy::site::Site;
use crate::yaml::Diagnostics;

/// Words in the host names of test sites.
const TEST_SITE_WORDS: [&str; 14] = [
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
/// Top-level domains that are not in public DNS (RFC 6761, RFC 8375).
const RESERVED_DOMAINS: [&str; 4] = ["test", "localhost", "invalid", "local"];

/// Reports staging policies for hosts of production sites, and the reverse.
pub fn lint(site: &Site, diagnostics: &mut Diagnostics) {
    let staging = site.policy.environment == Environment::Staging;
    for host in &site.policy.hosts {
        let name = host.to_string();
        if staging && looks_like_production(host) {
            diagnostics.push(
                lints::STAGING_LOOKS_LIKE_PRODUCTION
                    .finding(
                        host.span,
                        format!(
                            "\"{name}\" looks like the real site, and all of its pages say noindex"
                        ),
                    )
                    .label("search engines will drop the site")
                    .help(
                        "is this the policy of the test site? For the real site remove \
                           \"environment: staging\"",
                    ),
            );
        }
        if !staging && is_public(host) && is_test_site_name(host) {
            lints::PRODUCTION_LOOKS_LIKE_STAGING.report(
                diagnostics,
                host.span,
                format!("\"{name}\" looks like a test site, and search engines may index it"),
                "write a separate policy for it, with \"environment: staging\"",
            );
        }
    }
}

/// Whether a host can be a name in public DNS.
fn is_public(host: &HostPattern) -> bool {
    let last = host.name.rsplit('.').next().unwrap_or_default();
    host.name.contains('.')
        && !RESERVED_DOMAINS.contains(&last)
        && !last.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a label before the last two contains a word such as `staging`, `test2` or `shop-dev`.
fn is_test_site_name(host: &HostPattern) -> bool {
    host.name
        .rsplit('.')
        .skip(2)
        .flat_map(|label| label.split(['-', '_']))
        .any(|part| {
            let word = part.trim_end_matches(|sign: char| sign.is_ascii_digit());
            TEST_SITE_WORDS.contains(&word)
        })
}

/// Whether a public host has two labels or begins with `www.`, and is no test site by its name.
fn looks_like_production(host: &HostPattern) -> bool {
    let labels: Vec<&str> = host.name.split('.').collect();
    is_public(host)
        && !host.wildcard
        && !is_test_site_name(host)
        && !labels[0]
            .split('-')
            .any(|part| TEST_SITE_WORDS.contains(&part))
        && (labels.len() == 2 || labels[0] == "www")
}
