//! The flags of the command `crawlers` that check identities, because a user agent alone proves
//! nothing. [`verify`] (`--verify`) checks whether an address belongs to a crawler, by the same
//! lists and DNS queries as the server, and shows each step. [`update`] (`--update`) makes the
//! running crawlgate fetch the lists that operators of crawlers publish.

use super::control::Socket;
use super::{Failure, Result, control, fine, now, server_flags, show};
use crate::admin::control::{Request, Response};
use crate::crawlers::{Claim, Crawler, CrawlerIndex, Registry};
use crate::facts::StoredFacts;
use crate::identity::refresh::{ListUpdate, UpdateResult, update as update_list};
use crate::identity::reverse_dns::{Confirmation, Step, confirm};
use crate::identity::{Claimed, Proofs, Uses};
use crate::settings::{IdentitySettings, ListSettings};
use crate::state::StateStore;
use crate::time::Timestamp;
use crate::verdict::{Identity, is_public};
use askama::Template;
use serde::Serialize;
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

/// When the second answer of reverse DNS may decide.
const LATER: Duration = Duration::from_secs(600);

/// The settings of proof. Without a settings file they name the published lists and DNS: an
/// operator who types the command allows the requests.
pub fn settings(file: Option<&Path>) -> Result<IdentitySettings> {
    match file.map(server_flags::settings_file).transpose()? {
        Some(file) => Ok(file.identity),
        None => Ok(IdentitySettings {
            outgoing: true,
            ..IdentitySettings::default()
        }),
    }
}

/// What the lists and reverse DNS say of an address.
#[derive(Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum ProofResult {
    Verified,
    Impostor,
    /// Reverse DNS has to say the same again, ten minutes later.
    ImpostorIfRepeated,
    Unverified,
}

#[derive(Serialize)]
struct Verification<'a> {
    crawler: &'a str,
    address: IpAddr,
    outcome: ProofResult,
    proof: &'static str,
    steps: Vec<Step>,
}

/// Looks an address up as a crawler's, in the lists of its operator and by reverse DNS, and prints
/// each step. Any result but "verified" fails the command.
pub fn verify(
    registry: &Registry,
    crawler: CrawlerIndex,
    address: IpAddr,
    identity: &IdentitySettings,
    json: bool,
) -> Result {
    let store = StateStore::in_memory_only().0;
    let proofs = Proofs::new(
        registry,
        &StoredFacts::default(),
        &store,
        Uses {
            lists: true,
            signatures: false,
        },
        Some(Box::new(|_| true)),
    );
    let now = now();
    let later = now.plus(LATER);
    let mut steps = ask_lists(&proofs, crawler, address, identity, now);
    let has_hosts = proofs
        .means
        .get(crawler)
        .is_some_and(|means| !means.hosts.is_empty());
    let mut confirmation = None;
    if has_hosts && is_public(address) {
        if identity.outgoing {
            confirmation = Some(ask_dns(&proofs, address, &identity.resolvers, &mut steps)?);
        } else {
            steps.push(not_asked(format!("reverse DNS of {address}")));
        }
    }
    let claimed = Claimed {
        claim: Claim::Known(crawler),
        address: Some(address),
        may_accuse: true,
        by_policy: Identity::Unverified,
        signed: None,
    };
    // As the server finds it if reverse DNS says the same again.
    let [found, repeated] = [now, later].map(|at| {
        if let Some(Confirmation::Definite(names, ttl)) = &confirmation {
            proofs.names.answered(address, names.clone(), *ttl, at);
        }
        proofs.look(&claimed, at).0
    });
    let outcome = match found.identity {
        Identity::Verified => ProofResult::Verified,
        Identity::Impostor => ProofResult::Impostor,
        _ if repeated.identity == Identity::Impostor => ProofResult::ImpostorIfRepeated,
        _ => ProofResult::Unverified,
    };
    let Crawler { id, name, .. } = registry.get(crawler);
    let verification = Verification {
        crawler: id,
        address,
        outcome,
        proof: found.proof.name(),
        steps,
    };
    let verification = &verification;
    show(json, verification, ProofText { name, verification })?;
    fine(outcome == ProofResult::Verified)
}

/// The steps and the result as text.
#[derive(Template)]
#[template(path = "crawler_proof.txt")]
struct ProofText<'a> {
    /// The name of the crawler.
    name: &'a str,
    verification: &'a Verification<'a>,
}

/// Reads each list of the crawler's operator from where the settings say, and returns a step about
/// each: whether it has the address. Empty if the lists are off; "not asked" where outgoing
/// requests are not allowed.
fn ask_lists(
    proofs: &Proofs,
    crawler: CrawlerIndex,
    address: IpAddr,
    identity: &IdentitySettings,
    now: Timestamp,
) -> Vec<Step> {
    let from = &identity.lists;
    let lists = proofs
        .means
        .get(crawler)
        .map(|means| means.lists.as_slice())
        .unwrap_or_default();
    let mut steps = Vec::new();
    if *from == ListSettings::Off {
        return steps;
    }
    for list in lists {
        if !identity.outgoing && !matches!(from, ListSettings::Directory(_)) {
            steps.push(not_asked(proofs.lists.url(*list).to_owned()));
            continue;
        }
        let began = Instant::now();
        let update = update_list(&proofs.lists, *list, from, now);
        let said = match (update.error, proofs.lists.get(*list)) {
            (Some(error), _) => format!("not read: {error}"),
            (None, Some(known)) => match known.table.network_of(address) {
                Some(network) => format!("{} networks, inside {network}", update.networks),
                None if known.table.covers_kind_of(address) => {
                    format!("{} networks, outside", update.networks)
                }
                None => format!("{} networks, none of this kind of address", update.networks),
            },
            (None, None) => "the directory of `identity.lists` has no file for it".to_owned(),
        };
        steps.push(Step::new(update.url, said, began));
    }
    steps
}

/// A step that the settings do not allow.
fn not_asked(asked: String) -> Step {
    Step {
        asked,
        said: "not asked: `identity.outgoing` of the settings is no".to_owned(),
        milliseconds: 0,
    }
}

/// Asks reverse DNS for the address, and adds a step for each question.
fn ask_dns(
    proofs: &Proofs,
    address: IpAddr,
    resolvers: &[SocketAddr],
    steps: &mut Vec<Step>,
) -> Result<Confirmation> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(cannot_ask_dns)?;
    runtime.block_on(async {
        let dns = crate::dns::Dns::new(resolvers).map_err(cannot_ask_dns)?;
        Ok(confirm(&dns, address, &proofs.means, &mut |step| steps.push(step)).await)
    })
}

/// The failure of the command where the resolver cannot be used at all.
fn cannot_ask_dns(error: impl Display) -> Failure {
    Failure::CouldNot(format!("cannot ask DNS: {error}"))
}

/// Has the running crawlgate fetch its lists, and shows what changed. Lists that could not be
/// fetched or are not believed are a finding.
pub fn update(socket: &Socket, json: bool) -> Result {
    let Response::ListsUpdated { lists } = socket.ask(&Request::UpdateLists)? else {
        return control::unexpected();
    };
    show(json, &lists, ListsText { lists: &lists })?;
    fine(!lists.iter().any(|list| list.result.is_failure()))
}

/// The updates of lists as text.
#[derive(Template)]
#[template(path = "crawler_lists.txt")]
struct ListsText<'a> {
    lists: &'a [ListUpdate],
}

impl ListsText<'_> {
    /// How many lists have no copy: the directory or mirror has none, and there was none before.
    fn absent(&self) -> usize {
        let results = self.lists.iter().map(|list| list.result);
        results
            .filter(|result| *result == UpdateResult::Absent)
            .count()
    }
}
