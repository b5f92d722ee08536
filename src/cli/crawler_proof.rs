//! The flags of the command `crawlers` that check identities, because a user agent alone proves
//! nothing. [`verify`] (`--verify`) checks whether an address belongs to a crawler, by the same
//! lists and DNS queries as the server, and shows each step. [`update`] (`--update`) makes the
//! running crawlgate fetch the lists that operators of crawlers publish.

use super::control::Socket;
use super::{Failure, Result, control, fine, now, server_flags, show};
use crate::admin::control::{Request, Response};
use crate::crawlers::{Claim, CrawlerIndex, Registry};
use crate::identity::refresh::{ListUpdate, UpdateResult, update as update_list};
use crate::identity::reverse_dns::{Confirmation, Step, confirm};
use crate::identity::{Claimed, Proofs, Uses};
use crate::settings::{IdentitySettings, ListSettings};
use crate::state::{StateStore, StoredFacts};
use crate::time::Timestamp;
use crate::verdict::{Identity, is_public};
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, Write};
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

impl ProofResult {
    fn sentence(self) -> &'static str {
        match self {
            ProofResult::Verified => "verified: the address is the crawler's",
            ProofResult::Impostor => "impostor: the address is not the crawler's",
            ProofResult::ImpostorIfRepeated => {
                "unverified: the address is not the crawler's if reverse DNS says the same again in ten minutes"
            }
            ProofResult::Unverified => "unverified: nothing proves or refutes it",
        }
    }
}

#[derive(Serialize)]
struct Verification<'a> {
    crawler: &'a str,
    address: IpAddr,
    outcome: ProofResult,
    proof: &'static str,
    steps: Vec<Step>,
}

/// Looks an address up as a crawler's. An address that is not verified is a finding.
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
    let crawler = registry.get(crawler);
    let verification = Verification {
        crawler: &crawler.id,
        address,
        outcome,
        proof: found.proof.name(),
        steps,
    };
    show(json, &verification, |out, verification| {
        print(out, &crawler.name, verification)
    })?;
    fine(outcome == ProofResult::Verified)
}

fn print(out: &mut impl Write, name: &str, verification: &Verification<'_>) -> io::Result<()> {
    writeln!(out, "{name} from {}", verification.address)?;
    if verification.steps.is_empty() {
        writeln!(
            out,
            "  its operator publishes neither networks nor host names that crawlgate can read"
        )?;
    }
    for Step {
        asked,
        said,
        milliseconds,
    } in &verification.steps
    {
        writeln!(out, "  {asked}: {said} ({milliseconds} ms)")?;
    }
    writeln!(out, "{}", verification.outcome.sentence())
}

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

fn cannot_ask_dns(error: impl Display) -> Failure {
    Failure::CouldNot(format!("cannot ask DNS: {error}"))
}

/// Has the running crawlgate fetch its lists, and shows what changed. Lists that could not be
/// fetched or are not believed are a finding.
pub fn update(socket: &Socket, json: bool) -> Result {
    let Response::ListsUpdated { lists } = socket.ask(&Request::UpdateLists)? else {
        return control::unexpected();
    };
    show(json, &lists, |out, lists| {
        let (absent, there): (Vec<_>, Vec<_>) = lists
            .iter()
            .partition(|list| list.result == UpdateResult::Absent);
        there
            .into_iter()
            .try_for_each(|list| writeln!(out, "{}", line(list)))?;
        match absent.len() {
            0 => Ok(()),
            absent => writeln!(
                out,
                "{absent} other lists have no copy where `identity.lists` points"
            ),
        }
    })?;
    fine(!lists.iter().any(|list| list.result.is_failure()))
}

fn line(list: &ListUpdate) -> String {
    let ListUpdate {
        url,
        networks,
        added,
        removed,
        ..
    } = list;
    let error = list.error.as_deref().unwrap_or_default();
    let former = match networks {
        0 => "there is no former one".to_owned(),
        _ => format!("the former one has {networks} entries"),
    };
    match list.result {
        UpdateResult::Changed => {
            format!(
                "changed      {url}: {networks} entries, {} networks added, {} removed",
                added.len(),
                removed.len()
            )
        }
        UpdateResult::Unchanged => format!("unchanged    {url}: {networks} entries"),
        UpdateResult::Unreachable => format!("not read     {url}: {error}; {former}"),
        UpdateResult::Refused => format!("not believed {url}: {error}; {former}"),
        UpdateResult::Absent => format!("absent       {url}"),
    }
}
