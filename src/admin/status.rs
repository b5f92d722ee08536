//! [`InstanceStatus`]: the state of the running crawlgate. The command `status`, the JSON API, the
//! dashboard's page of health and the metrics show this state. The module also finds each
//! [`Problem`] that needs the operator's attention.

use super::instances::StoreStatus;
use super::problem::{Problem, ProblemKind};
use crate::files::absolute_path;
use crate::finding::Finding;
use crate::identity::{ListFailure, PublishedLists};
use crate::numbers::{plural, plural_thousands, thousands};
use crate::policy::origin::OriginCopyState;
use crate::printable::{join, join_first};
use crate::settings::{Settings, decode_settings};
use crate::sites::policy_directory::{check_command, read_text_file};
use crate::sites::{SiteStatus, SitesStatus};
use crate::telemetry::{AcmeHostStatus, CertificateStatus, TrafficDiagnostics};
use crate::time::Timestamp;
use crate::upstreams::{OriginServerStatus, QueueStatus, UnroutedRequestsStatus};
use crate::yaml::SourceFile;
use rustix::process::{Resource, getrlimit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use ProblemKind::*;

/// More than one in so many requests without an origin is a problem, and each for a host of a policy.
const NO_ORIGIN_FRACTION: u64 = 20;

/// A list that fails for longer is a problem: it is fetched once a day.
const MAX_LIST_FAILURE: Duration = Duration::from_secs(86_400);

/// The state of the running crawlgate.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct InstanceStatus {
    /// The version of the running crawlgate.
    #[serde(default)]
    pub version: String,
    /// How long it has been running.
    #[serde(default)]
    pub uptime_seconds: u64,
    /// Whether it is ready, as `/readyz`: not during its start and its stop.
    #[serde(default)]
    pub ready: bool,
    /// Policies, sites and warnings.
    #[serde(flatten)]
    pub policies: SitesStatus,
    /// Says that the process of the last upgrade still answers requests, and until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predecessor: Option<Finding>,
    /// Says why this start began another first day, and until when no violation counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_day: Option<Finding>,
    /// The problems that need attention.
    pub problems: Vec<Problem>,
    /// The results of requests to each server of an origin in the last five minutes.
    pub origins: Vec<OriginServerStatus>,
    /// The queues of visitors at origins with a limit of concurrent requests.
    #[serde(default)]
    pub queues: Vec<QueueStatus>,
    /// Requests of the last five minutes for hosts without an origin.
    pub without_origin: UnroutedRequestsStatus,
    /// All requests of the last five minutes.
    pub traffic: TrafficDiagnostics,
    /// The certificates in use.
    pub certificates: Vec<CertificateStatus>,
    /// The orders for automatic certificates, by host.
    #[serde(default)]
    pub orders: Vec<AcmeHostStatus>,
    /// The shared store of several instances, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreStatus>,
}

impl InstanceStatus {
    /// Sets `problems` from all other parts of the status. `refused_files` has the origins whose
    /// changed TLS files cannot be used, with the reasons.
    pub(super) fn collect_problems(
        &mut self,
        refused_files: &[(String, String)],
        lists: &PublishedLists,
        now: Timestamp,
    ) {
        let mut problems = Vec::new();
        for warning in &self.policies.warnings {
            problems.push(Problem {
                finding: Some(warning.id.clone()),
                ..Problem::new(Warning, warning.to_string())
            });
        }
        for origin in &self.origins {
            // A server of several origins is one problem.
            let is_known = problems
                .iter()
                .any(|found: &Problem| found.subject.as_ref() == Some(&origin.origin));
            problems.extend(
                origin
                    .problem()
                    .filter(|_| !is_known)
                    .map(|message| Problem::about(OriginFailing, &origin.origin, message)),
            );
        }
        let unopened: u64 = self.origins.iter().map(|origin| origin.unopened).sum();
        let unaccepted = self.traffic.unaccepted;
        if unopened + unaccepted > 0 {
            problems.push(Problem::new(
                FileLimit,
                file_limit_message(unopened, unaccepted),
            ));
        }
        for queue in &self.queues {
            if let Some(message) = queue.problem() {
                problems.push(Problem::about(SearchTurnedAway, &queue.origin, message));
            }
        }
        let sites = &self.policies.sites;
        if self.without_origin.requests * NO_ORIGIN_FRACTION > self.traffic.requests
            || self
                .without_origin
                .hosts
                .iter()
                .any(|(host, _)| sites.iter().any(|site| site.hosts.contains(host)))
        {
            problems.push(Problem::new(
                NoOrigin,
                no_origin_message(&self.without_origin),
            ));
        }
        problems.extend(setup_problems(&self.traffic));
        if let Some(site) = &self.traffic.bypassed_file {
            let message = bypassed_file_message(site);
            problems.push(Problem::about(BypassedFile, site, message));
        }
        problems.extend(merged_site_problems(sites));
        problems.extend(failing_lists_problem(lists, now));
        problems.extend(self.certificate_problems(refused_files));
        if let Some(store) = &self.store {
            problems.extend(store.problems());
        }
        self.problems = problems;
    }

    /// The problems of certificates in use, of files for TLS to an origin, and of automatic
    /// certificates.
    fn certificate_problems(&self, refused_files: &[(String, String)]) -> Vec<Problem> {
        let mut problems = Vec::new();
        for certificate in &self.certificates {
            for problem in &certificate.problems {
                problems.push(Problem::about(
                    Certificate,
                    &certificate.file,
                    problem.message.clone(),
                ));
            }
        }
        for (origin, reason) in refused_files {
            let message = format!(
                "a changed file in \"tls\" of the origin {origin} cannot be used: {reason}. crawlgate still uses the \
                 old files, but would not start again. Fix the file: crawlgate then uses it at once"
            );
            problems.push(Problem::about(Certificate, origin, message));
        }
        for order in &self.orders {
            if let Some(message) = order.problem.clone() {
                problems.push(Problem::about(Certificate, &order.host, message));
            }
        }
        problems
    }
}

/// One problem for all published lists that have failed for too long.
fn failing_lists_problem(lists: &PublishedLists, now: Timestamp) -> Option<Problem> {
    let mut failing = lists.failures();
    failing.retain(|_, failure| now.since(failure.since) > MAX_LIST_FAILURE);
    let (list, ListFailure { since, reason }) =
        failing.iter().min_by_key(|(_, failure)| failure.since)?;
    let message = format!(
        "{} could not be fetched or used for more than a day. The first is {}, since {since}: {reason}. crawlgate \
         uses the last copies. By a list older than seven days it calls no client an impostor. Allow crawlgate to reach the \
         servers, or name copies in identity.lists of crawlgate.yaml. To try again, run \"crawlgate crawlers --update\"",
        plural(failing.len(), "published list"),
        lists.url(*list)
    );
    Some(Problem::new(IdentityLists, message))
}

fn file_limit_message(unopened: u64, unaccepted: u64) -> String {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    format!(
        "crawlgate may open no more than {}. In the last five minutes it could not accept a connection {}, and did \
         not send {} to an origin. Such a connection waits. Such a request gets 503, unless a second attempt succeeds. \
         Raise LimitNOFILE in the unit of systemd, or \"ulimit -n\", and restart crawlgate. Or lower \
         limits.connections in crawlgate.yaml",
        plural_thousands(limit, "file"),
        plural_thousands(unaccepted, "time"),
        plural_thousands(unopened, "request")
    )
}

/// The problem of the settings file: it cannot be read, has mistakes, or has another meaning than
/// the file that crawlgate was started with. `settings` are those of the start, with that file.
pub fn settings_problem(settings: &Settings) -> Option<Problem> {
    let file = settings.file.as_ref()?;
    let path = Path::new(&*file.name);
    let name = absolute_path(path).display().to_string();
    let message = match read_text_file(path) {
        Err(unreadable) => format!(
            "{unreadable}. crawlgate runs with the former settings, and would not start again. Restore the file"
        ),
        Ok(found) if found.text == file.text => return None,
        Ok(found) => match decode_completely(&found) {
            None => format!(
                "{name} was changed and has mistakes. crawlgate runs with the former settings, and would not start \
                 again. To see the mistakes, run \"crawlgate check --config {name}\""
            ),
            same if same == decode_completely(file) => return None,
            _ => format!(
                "{name} was changed after crawlgate had read it. The next start will use the changes. To use them now, \
                 run \"crawlgate upgrade\", or restart crawlgate"
            ),
        },
    };
    Some(Problem::new(ProblemKind::Settings, message))
}

/// The settings of a file; `None` if it has mistakes.
fn decode_completely(file: &SourceFile) -> Option<Settings> {
    let directory = Path::new(&*file.name).parent().unwrap_or(Path::new(""));
    let (settings, _) = decode_settings(file, directory, Settings::default());
    settings.map(Settings::without_places)
}

fn no_origin_message(without_origin: &UnroutedRequestsStatus) -> String {
    format!(
        "{} in the last five minutes had no origin ({}); crawlgate answered 502. Add these hosts to \"origins\" in \
         crawlgate.yaml, or add an origin without \"hosts\" for every other host",
        plural(thousands(without_origin.requests), "request"),
        join_counts(&without_origin.hosts)
    )
}

/// The problems of the setup that recent requests show: hosts without a policy, undeclared proxies,
/// and an unread field with the addresses of clients.
pub fn setup_problems(traffic: &TrafficDiagnostics) -> Vec<Problem> {
    let mut problems = Vec::new();
    if traffic.has_unclaimed_site() {
        problems.push(Problem::new(
            UnclaimedHosts,
            unclaimed_hosts_message(traffic),
        ));
    }
    if traffic.is_majority(traffic.from_undeclared_proxies) {
        problems.push(Problem::new(
            UndeclaredProxy,
            undeclared_proxy_message(traffic),
        ));
    }
    if !traffic.unread_fields.is_empty() {
        problems.push(Problem::new(ClientAddress, unread_field_message(traffic)));
    }
    problems
}

fn bypassed_file_message(site: &str) -> String {
    format!(
        "{site}: the proxy in front sends its origin's own robots.txt. So crawlers do not get the rules that crawlgate \
         applies to them. Make the proxy send /robots.txt to the decision service, and remove any other rule of the \
         proxy for this path. The problem ends with the next request for /robots.txt"
    )
}

fn unclaimed_hosts_message(traffic: &TrafficDiagnostics) -> String {
    format!(
        "{} of {} requests in the last five minutes were for hosts without a policy ({}). They pass \
         unchanged, and crawlgate watches no crawler there. Add these hosts to \"hosts\" of a policy. To leave a host alone, \
         write a policy for it with \"enforcement: {{ mode: off }}\"",
        thousands(traffic.unclaimed),
        thousands(traffic.requests),
        join_counts(&traffic.unclaimed_hosts)
    )
}

fn undeclared_proxy_message(traffic: &TrafficDiagnostics) -> String {
    // IPv6 needs quotes in a YAML list.
    let peers = traffic.undeclared_proxies.iter();
    let peers = peers.map(|(peer, _)| format!("\"{peer}\""));
    format!(
        "{} of {} requests in the last five minutes came through a proxy that crawlgate does not trust. crawlgate \
         drops the proxy's forwarding fields. So every client seems to have the address of the proxy, and the origin takes \
         every request for plain HTTP and may redirect forever. If the proxies are yours or your customers', write \
         \"trusted_proxies: [{}]\" in crawlgate.yaml and run \"crawlgate upgrade\", or restart crawlgate. Otherwise a client \
         sends such fields itself: do not trust it",
        thousands(traffic.from_undeclared_proxies),
        thousands(traffic.requests),
        join(peers, ", ")
    )
}

fn unread_field_message(traffic: &TrafficDiagnostics) -> String {
    let field = traffic.unread_fields.first().map_or("", |(field, _)| field);
    format!(
        "a trusted proxy names its clients in a field that crawlgate does not read. Requests of the last five minutes \
         by field: {}. crawlgate reads only the field of client_address (default x-forwarded-for). It does not know \
         these clients, so none of them is verified or called an impostor. If your proxy sets {field} itself, write \
         \"client_address: {field}\" in crawlgate.yaml and run \"crawlgate upgrade\", or restart crawlgate",
        join_counts(&traffic.unread_fields)
    )
}

/// `name: count, name: count`.
fn join_counts(hosts: &[(String, u64)]) -> String {
    join(
        hosts
            .iter()
            .map(|(host, requests)| format!("{host}: {}", thousands(requests))),
        ", ",
    )
}

/// The policy that a site uses while its policy file is rejected, in words.
pub fn active_policy_words(site: &SiteStatus) -> &'static str {
    if site.in_force {
        "the last good policy stays in force"
    } else {
        "no policy is in force"
    }
}

/// The problems of sites, one for all sites that have the same: an origin that is down would
/// otherwise be a problem of each.
fn merged_site_problems(sites: &[SiteStatus]) -> impl Iterator<Item = Problem> {
    let mut by_problem: BTreeMap<(ProblemKind, String), Vec<&str>> = BTreeMap::new();
    for site in sites {
        for problem in site_problems(site) {
            by_problem.entry(problem).or_default().push(&site.site);
        }
    }
    by_problem
        .into_iter()
        .map(|((kind, message), sites)| match sites[..] {
            [site] => Problem::about(kind, site, format!("{site}: {message}")),
            _ => {
                let count = plural(sites.len(), "site");
                let names = join_first(sites, 5);
                Problem::new(kind, format!("{count} ({names}): {message}"))
            }
        })
}

/// The problems of a site, without its name: its policy file, its origin's robots.txt, noindex on its
/// front page, and lists of networks that verify no request.
fn site_problems(site: &SiteStatus) -> Vec<(ProblemKind, String)> {
    let mut problems = Vec::new();
    // An unreadable directory is one warning, and not a problem of each site.
    if site.removed {
        let message = format!(
            "the policy file is gone; {}. Put the file back. To end a site, run \"crawlgate reload --remove SITE\"",
            active_policy_words(site)
        );
        problems.push((PolicyRemoved, message));
    } else if !site.reload_ok && !site.findings.is_empty() {
        let message = format!(
            "the policy file has errors; {}. To see them, run \"{}\"",
            active_policy_words(site),
            check_command(&site.file)
        );
        problems.push((PolicyRejected, message));
    }
    if let Some(until) = site.paused_until
        && site.paused_for.as_deref() == Some("everyone")
    {
        let message = format!(
            "visitors get 503 until {until}, because the pause is for everyone. To end it, run \"crawlgate resume --site \
             SITE\", or \"crawlgate resume --all\""
        );
        problems.push((PausedForEveryone, message));
    }
    let robots = site.origin_robots.as_ref();
    let unusable = robots.filter(|robots| {
        !matches!(
            robots.state,
            OriginCopyState::Current | OriginCopyState::Absent
        )
    });
    if let Some(robots) = unusable
        && let Some(problem) = &robots.problem
    {
        let message = format!(
            "crawlgate cannot use the origin's robots.txt, so {}. The reason: {problem}",
            robots.served.words()
        );
        problems.push((OriginRobots, message));
    }
    if !site.front_page_kept_from.is_empty() {
        let message = format!(
            "the origin sends the front page with noindex for {}, so it drops out of search there. crawlgate \
             passes that on. Remove noindex from the origin's X-Robots-Tag, or write \"origin_tags: strip\" in the \
             policy. If you want it so, write \"acknowledge: [site_noindex]\", and for a test site \"environment: \
             staging\"",
            site.front_page_kept_from.join(" and ")
        );
        problems.push((FrontPageNoindex, message));
    }
    if site.unproven.iter().any(|host| host.until.is_none()) {
        let message = "crawlers come through a proxy, and the policy does not say whether it is a cache. So no violation counts \
             until crawlgate sees that it is not. Write \"enforcement: { behind_cache: no }\" in the policy, or \"yes\" \
             if the proxy caches robots.txt";
        problems.push((BehindCache, message.to_owned()));
    }
    for crawler in &site.suspended {
        let message = format!(
            "in the last seven days no request of {crawler} came from its networks in the policy, but others used its \
             name. Until a request comes from there, crawlgate calls none of them an impostor. Compare the networks in the \
             policy with the operator's list"
        );
        problems.push((IdentitySuspended, message));
    }
    problems
}
