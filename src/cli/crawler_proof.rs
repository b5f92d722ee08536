//! Two flags of the command `crawlers`, about the verification of crawlers. [`verify_address`]
//! (`--verify`) checks whether an IP address belongs to a crawler, with the same network lists and
//! DNS queries as the server, and shows the result of each list and query. [`update_lists`]
//! (`--update`) makes the running crawlgate fetch the lists of networks that operators publish for
//! their crawlers.

use super::control::{ConfigFlag, ControlFlag};
use super::{Failure, Result, control, findings_failure_unless, now, print_result};
use crate::admin::control::{ControlRequest, ControlResponse};
use crate::crawlers::{Claim, Crawler, CrawlerIndex, Registry};
use crate::facts::StoredFacts;
use crate::identity::refresh::{ListUpdateReport, ListUpdateResult, update_list};
use crate::identity::reverse_dns::{DnsConfirmation, DnsQueryStep, confirm_address};
use crate::identity::{IdentityClaim, IdentityVerifier, ProofMethods};
use crate::settings::{IdentitySettings, ListSource};
use crate::state::StateStore;
use crate::time::Timestamp;
use crate::verdict::{Identity, is_public_address};
use ProofResult::*;
use askama::Template;
use serde::Serialize;
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// After this time a second result of reverse DNS decides.
const CONFIRMATION_DELAY: Duration = Duration::from_secs(600);

/// `identity` of the settings file. Without a file, outgoing requests are allowed, because the
/// operator typed the command.
pub fn identity_settings(config: &ConfigFlag) -> Result<IdentitySettings> {
    Ok(match config.settings()? {
        Some(settings) => settings.identity,
        None => IdentitySettings {
            outgoing: true,
            ..IdentitySettings::default()
        },
    })
}

/// The result of lists and reverse DNS for an address.
#[derive(Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum ProofResult {
    Verified,
    Impostor,
    /// An impostor, if reverse DNS gives the same result ten minutes later.
    ImpostorIfRepeated,
    Unverified,
}

#[derive(Serialize, Template)]
#[template(path = "crawler_proof.txt")]
struct AddressVerification<'a> {
    #[serde(skip)]
    name: &'a str,
    crawler: &'a str,
    address: IpAddr,
    outcome: ProofResult,
    proof: &'static str,
    steps: Vec<DnsQueryStep>,
}

/// Looks an address up in the lists of the crawler's operator and by reverse DNS, and prints each
/// step. Fails unless the address is verified.
pub fn verify_address(
    registry: &Registry,
    crawler: CrawlerIndex,
    address: IpAddr,
    identity: &IdentitySettings,
    json: bool,
) -> Result {
    let store = StateStore::in_memory_only().0;
    let proofs = IdentityVerifier::new(
        registry,
        &StoredFacts::default(),
        &store,
        ProofMethods {
            lists: true,
            signatures: false,
        },
        Some(Box::new(|_| true)),
    );
    let now = now();
    let later = now.plus(CONFIRMATION_DELAY);
    let mut steps = check_address_in_lists(&proofs, crawler, address, identity, now);
    let has_hosts = proofs
        .means
        .get(crawler)
        .is_some_and(|means| !means.hosts.is_empty());
    let mut confirmation = None;
    if has_hosts && is_public_address(address) {
        if identity.outgoing {
            confirmation = Some(ask_dns(&proofs, address, &identity.resolvers, &mut steps)?);
        } else {
            steps.push(skipped_step(format!("reverse DNS of {address}")));
        }
    }
    let claimed = IdentityClaim {
        claim: Claim::Known(crawler),
        address: Some(address),
        may_accuse: true,
        by_policy: Identity::Unverified,
        signed: None,
    };
    // As the server finds it if reverse DNS says the same again.
    let [found, repeated] = [now, later].map(|at| {
        if let Some(Ok((names, ttl))) = &confirmation {
            proofs.names.record_answer(address, names.clone(), *ttl, at);
        }
        proofs.evaluate(&claimed, at).0
    });
    let outcome = match found.identity {
        Identity::Verified => Verified,
        Identity::Impostor => Impostor,
        _ if repeated.identity == Identity::Impostor => ImpostorIfRepeated,
        _ => Unverified,
    };
    let Crawler { id, name, .. } = registry.get(crawler);
    let verification = AddressVerification {
        name,
        crawler: id,
        address,
        outcome,
        proof: found.proof.name(),
        steps,
    };
    print_result(json, &verification, &verification)?;
    findings_failure_unless(outcome == Verified)
}

/// Reads each list of the crawler's operator, and returns a step for each: whether it has the
/// address. No steps if the lists are off; skipped steps if outgoing requests are not allowed.
fn check_address_in_lists(
    proofs: &IdentityVerifier,
    crawler: CrawlerIndex,
    address: IpAddr,
    identity: &IdentitySettings,
    now: Timestamp,
) -> Vec<DnsQueryStep> {
    let from = &identity.lists;
    let mut steps = Vec::new();
    if *from == ListSource::Off {
        return steps;
    }
    let means = proofs.means.get(crawler);
    for list in means.iter().flat_map(|means| &means.lists) {
        if !identity.outgoing && !matches!(from, ListSource::Directory(_)) {
            steps.push(skipped_step(proofs.lists.url(*list).to_owned()));
            continue;
        }
        let began = Instant::now();
        let update = update_list(&proofs.lists, *list, from, now);
        let outcome = match (update.error, proofs.lists.get(*list)) {
            (Some(error), _) => format!("not read: {error}"),
            (None, Some(known)) => match known.table.network_of(address) {
                Some(network) => format!("{} networks, inside {network}", update.networks),
                None if known.table.has_family(address) => {
                    format!("{} networks, outside", update.networks)
                }
                None => format!("{} networks, none of this kind of address", update.networks),
            },
            (None, None) => "the directory of identity.lists has no file for it".to_owned(),
        };
        steps.push(DnsQueryStep::new(update.url, outcome, began));
    }
    steps
}

/// A step that the settings do not allow.
fn skipped_step(asked: String) -> DnsQueryStep {
    DnsQueryStep {
        asked,
        said: "not asked: identity.outgoing is no in the settings".to_owned(),
        milliseconds: 0,
    }
}

/// Asks reverse DNS for the address, and adds a step for each question.
fn ask_dns(
    proofs: &IdentityVerifier,
    address: IpAddr,
    resolvers: &[SocketAddr],
    steps: &mut Vec<DnsQueryStep>,
) -> Result<DnsConfirmation> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(dns_failure)?;
    runtime.block_on(async {
        let dns = crate::dns::DnsResolver::new(resolvers).map_err(dns_failure)?;
        Ok(confirm_address(&dns, address, &proofs.means, &mut |step| steps.push(step)).await)
    })
}

/// The failure if the resolver cannot be used.
fn dns_failure(error: impl Display) -> Failure {
    Failure::Runtime(format!("cannot ask DNS: {error}"))
}

/// Makes the running crawlgate fetch its lists, and prints the changes. Fails if a list could not be
/// fetched or was rejected.
pub fn update_lists(socket: &ControlFlag, json: bool) -> Result {
    let ControlResponse::ListsUpdated { lists } = socket.send(&ControlRequest::UpdateLists)? else {
        return control::unexpected_response();
    };
    print_result(json, &lists, ListUpdatesText { lists: &lists })?;
    findings_failure_unless(!lists.iter().any(|list| list.result.is_failure()))
}

/// The updates of lists as text.
#[derive(Template)]
#[template(path = "crawler_lists.txt")]
struct ListUpdatesText<'a> {
    lists: &'a [ListUpdateReport],
}

impl ListUpdatesText<'_> {
    /// How many lists are missing in the directory or mirror, and were never fetched.
    fn count_absent(&self) -> usize {
        self.lists
            .iter()
            .filter(|list| list.result == ListUpdateResult::Absent)
            .count()
    }
}
