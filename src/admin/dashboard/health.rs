//! The page of health: what needs a person, reloads of policies, origins, identity lists and the state directory.

use super::format::{minute, thousands};
use super::layout::{Layout, site_link};
use super::{Dashboard, PageError};
use crate::admin::instances::{StoreStatus, hindrance, stands};
use crate::admin::query::Query;
use crate::admin::status::Problem;
use crate::exchange::{ExchangeStatus, MemberStatus, Standing};
use crate::identity::{ListFailure, ListIndex};
use crate::ledger::{EVERY_SITE, ListHealth};
use crate::sites::SiteStatus;
use crate::telemetry::CertificateStatus;
use crate::time::Timestamp;
use crate::upstreams::{OriginStatus, QueueStatus};
use askama::Template;

#[derive(Template)]
#[template(path = "health.html")]
struct HealthPage {
    layout: Layout,
    facts: Vec<(&'static str, String)>,
    problems: Vec<Problem>,
    sites: Vec<SiteHealth>,
    origins: Vec<OriginHealth>,
    queues: Vec<QueueHealth>,
    certificates: Vec<CertificateHealth>,
    store: Option<StoreHealth>,
    lists: Vec<PublishedList>,
    proofs: Vec<ProofHealth>,
}

struct SiteHealth {
    href: String,
    site: String,
    is_good: bool,
    state: String,
    since: String,
    origin_robots: String,
    findings: usize,
}

struct OriginHealth {
    name: String,
    what_for: String,
    addresses: usize,
    requests: String,
    failures: u64,
    server_errors: u64,
    last: String,
    state: String,
    is_up: bool,
    in_flight: String,
}

struct QueueHealth {
    origin: String,
    waiting: String,
    crawlers: u64,
    people: u64,
}

struct CertificateHealth {
    names: String,
    file: String,
    until: String,
    renewed: String,
    problems: Vec<String>,
}

struct StoreHealth {
    url: String,
    state: String,
    is_up: bool,
    members: Vec<InstanceHealth>,
}

struct InstanceHealth {
    id: String,
    host: String,
    standing: String,
    is_good: bool,
    reported: String,
    policies: String,
    clock: String,
    version: String,
}

struct PublishedList {
    url: String,
    networks: String,
    checked: String,
    failure: String,
}

struct ProofHealth {
    site: String,
    crawler: String,
    verified: String,
    accused: String,
    state: &'static str,
}

impl Dashboard {
    pub(super) fn health(&self, query: &str) -> Result<String, PageError> {
        Query::read(query, &[])?;
        let status = self.operations.status();
        let traffic = &status.traffic;
        let facts = vec![
            ("Version", env!("CARGO_PKG_VERSION").to_owned()),
            ("Runs for", format!("{} s", thousands(self.operations.uptime().as_secs()))),
            ("Last reload", format!("{} UTC", minute(status.policies.last_reload))),
            ("Requests of the last five minutes", thousands(traffic.requests)),
            ("For hosts without a policy", thousands(traffic.unclaimed)),
            ("Through proxies that are not trusted", thousands(traffic.from_undeclared_proxies)),
        ];
        let page = HealthPage {
            layout: Layout::new("Health", "/health", status.problems.len()),
            facts,
            sites: status.policies.sites.iter().map(SiteHealth::new).collect(),
            origins: status.origins.iter().map(OriginHealth::new).collect(),
            queues: status.queues.iter().map(QueueHealth::new).collect(),
            certificates: status.certificates.iter().map(CertificateHealth::new).collect(),
            store: status.store.as_ref().map(StoreHealth::new),
            problems: status.problems,
            lists: self.lists(),
            proofs: self.proofs(),
        };
        Ok(page.render()?)
    }

    fn lists(&self) -> Vec<PublishedList> {
        let lists = &self.operations.instance.proofs.lists;
        let failures = lists.failures();
        let failure = |failure: &ListFailure| format!("fails since {} UTC: {}", minute(failure.since), failure.reason);
        let list = |(index, url): (ListIndex, &str)| {
            let known = lists.get(index);
            PublishedList {
                url: url.to_owned(),
                networks: known.as_ref().map_or("-".into(), |known| thousands(known.entries() as u64)),
                checked: known.map_or("not fetched".into(), |known| format!("{} UTC", minute(known.checked))),
                failure: failures.get(&index).map(failure).unwrap_or_default(),
            }
        };
        lists.all().map(list).collect()
    }

    fn proofs(&self) -> Vec<ProofHealth> {
        let moment = |moment: Option<Timestamp>| moment.map_or_else(|| "never".to_owned(), minute);
        let proof = |list: ListHealth| ProofHealth {
            site: if list.site == EVERY_SITE { "every site".to_owned() } else { list.site },
            crawler: list.crawler,
            verified: moment(list.verified),
            accused: moment(list.accused),
            state: if list.suspended { "suspended: verifies no visit" } else { "in use" },
        };
        self.operations.list_health().into_iter().map(proof).collect()
    }
}

impl SiteHealth {
    fn new(site: &SiteStatus) -> SiteHealth {
        let state = match (site.in_force, site.reload_ok, site.last_good_copy) {
            (false, ..) => "not in force",
            (true, _, true) => "in force from the last good copy; the file was rejected",
            (true, false, false) => "in force; a later change of the file was rejected",
            (true, true, false) => "in force",
        };
        let origin = site.origin_robots.as_ref().map(|origin| match &origin.problem {
            Some(problem) => format!("{}: {problem}", origin.state.name()),
            None => origin.state.name().to_owned(),
        });
        SiteHealth {
            href: site_link(&site.site),
            site: site.site.clone(),
            is_good: site.in_force && site.reload_ok,
            state: state.to_owned(),
            since: minute(site.since),
            origin_robots: origin.unwrap_or_else(|| "not used".to_owned()),
            findings: site.findings.len(),
        }
    }
}

impl OriginHealth {
    fn new(origin: &OriginStatus) -> OriginHealth {
        let last = origin.last_failure.as_ref();
        OriginHealth {
            name: origin.origin.clone(),
            what_for: origin.what_for(),
            addresses: origin.addresses,
            requests: thousands(origin.requests),
            failures: origin.failures,
            server_errors: origin.server_errors,
            state: match origin.out_of_use.first() {
                Some(out) => {
                    format!("{} gets no requests since {} UTC: {}", out.address, minute(out.since), out.why())
                }
                None if origin.addresses == 0 => "no address".to_owned(),
                None if origin.is_backup => "up, backup".to_owned(),
                None => "up".to_owned(),
            },
            is_up: origin.out_of_use.is_empty() && origin.addresses > 0,
            in_flight: thousands(origin.in_flight as u64),
            last: last.map_or_else(|| "none".to_owned(), |last| format!("{} UTC, {}", minute(last.at), last.reason)),
        }
    }
}

impl QueueHealth {
    fn new(queue: &QueueStatus) -> QueueHealth {
        QueueHealth {
            origin: queue.origin.clone(),
            waiting: thousands(queue.waiting as u64),
            crawlers: queue.crawlers_turned_away,
            people: queue.people_turned_away,
        }
    }
}

impl StoreHealth {
    fn new(StoreStatus { url, exchange }: &StoreStatus) -> StoreHealth {
        let state = match (&exchange.away, exchange.accuses_not) {
            (Some(away), _) => format!("away since {} UTC: {}", minute(away.since), away.error),
            (None, Some(why)) => format!("answers; no request is called a violation: {}", hindrance(why)),
            (None, None) => "answers".to_owned(),
        };
        let mut members: Vec<&MemberStatus> = exchange.members.iter().collect();
        members.sort_by_key(|found| (&found.member.host, &found.member.id));
        StoreHealth {
            url: url.clone(),
            is_up: exchange.away.is_none(),
            state,
            members: members.into_iter().map(|found| InstanceHealth::new(found, exchange)).collect(),
        }
    }
}

impl InstanceHealth {
    fn new(found: &MemberStatus, exchange: &ExchangeStatus) -> Self {
        let MemberStatus { member, standing, lag, same_policies, same_crawlers } = found;
        InstanceHealth {
            id: if member.id == exchange.id { format!("{} (this one)", member.id) } else { member.id.clone() },
            host: member.host.clone(),
            standing: stands(found, exchange),
            is_good: *standing != Standing::Silent
                && (*same_policies && *same_crawlers || *standing != Standing::Present),
            reported: format!("{lag:.1} s ago"),
            policies: format!("{}{}", member.policies, if *same_policies { "" } else { ", other ones than here" }),
            clock: format!("{} ms", member.clock_ahead_ms),
            version: member.version.clone(),
        }
    }
}

impl CertificateHealth {
    fn new(certificate: &CertificateStatus) -> CertificateHealth {
        let until = minute(certificate.not_after);
        CertificateHealth {
            names: if certificate.names.is_empty() { "no host".to_owned() } else { certificate.names.join(", ") },
            file: certificate.file.display().to_string(),
            until: match certificate.days_left {
                days @ 0.. => format!("{until} UTC, {} days", thousands(days.unsigned_abs())),
                _ => format!("expired on {until} UTC"),
            },
            renewed: certificate.renewed.map_or_else(|| "not since the start".to_owned(), minute),
            problems: certificate.problems.clone(),
        }
    }
}
