//! `status`: shows the problems, sites, instances, origins and certificates of the running
//! crawlgate.

use super::{Result, control, fine, instances, show};
use crate::admin::control::{Request, Response};
use crate::admin::{self, InstanceStatus, Problem};
use crate::numbers::plural;
use crate::policy::origin::OriginCopyState;
use crate::printable::join;
use crate::sites::{OriginRobotsStatus, Served, SiteStatus};
use crate::telemetry::{CertificateStatus, OrderStatus};
use crate::time::Timestamp;
use crate::upstreams::{OriginStatus, OutOfUse, QueueStatus};
use crate::verdict::{LINE_FOR_ALL, PERHAPS_CACHED, UnprovenHost};
use std::io::{self, Write};
use std::path::Path;

/// Hosts without violations that are shown of a site: anybody can make up hosts of a pattern.
const MAX_UNPROVEN: usize = 5;

/// Show the sites, origins and problems of the running crawlgate
#[derive(clap::Args)]
#[command(after_help = "Exit codes: 0 fine, 1 something needs a person, 3 no crawlgate answers.")]
pub struct Arguments {
    /// Only whether crawlgate answers: exit with 0 whatever its problems, for health checks
    #[arg(long)]
    alive: bool,
    #[command(flatten)]
    output: control::Output,
}

pub fn run(arguments: &Arguments) -> Result {
    let Response::Status(status) = arguments.output.control.ask(&Request::Status)? else {
        return control::unexpected();
    };
    let asked = arguments.output.control.path()?;
    show(arguments.output.json, &*status, |out, status| {
        print(out, &asked, status)
    })?;
    fine(status.problems.is_empty() || arguments.alive)
}

fn print(out: &mut impl Write, asked: &Path, status: &InstanceStatus) -> io::Result<()> {
    writeln!(
        out,
        "crawlgate at {}\npolicies last read {} (generation {})",
        asked.display(),
        status.policies.last_reload,
        status.policies.generation
    )?;
    for Problem {
        problem, message, ..
    } in &status.problems
    {
        writeln!(out, "\nproblem ({}): {message}", problem.name())?;
    }
    print_sites(out, &status.policies.sites)?;
    if let Some(store) = &status.store {
        writeln!(out)?;
        instances::print(out, store)?;
    }
    writeln!(out, "\norigins, in the last five minutes")?;
    for origin in &status.origins {
        print_origin(out, origin)?;
    }
    for queue in &status.queues {
        print_queue(out, queue)?;
    }
    for (host, requests) in &status.without_origin.hosts {
        writeln!(out, "  no origin for {host}\n    requests: {requests}")?;
    }
    if !status.certificates.is_empty() {
        writeln!(out, "\ncertificates")?;
    }
    for certificate in &status.certificates {
        print_certificate(out, certificate)?;
    }
    if !status.orders.is_empty() {
        writeln!(out, "\ncertificates that crawlgate gets by itself")?;
    }
    for order in &status.orders {
        print_order(out, order)?;
    }
    Ok(())
}

/// Prints a host for which crawlgate gets certificates: the time of renewal, and the last failure.
fn print_order(out: &mut impl Write, order: &OrderStatus) -> io::Result<()> {
    let renewal = or_else(order.renewal, "there is no certificate yet");
    writeln!(out, "  {}\n    renewal:     {renewal}", order.host)?;
    if let Some(failed) = &order.failed {
        writeln!(
            out,
            "    failed:      at {}: {}\n    next:        {}",
            failed.at, failed.reason, failed.next
        )?;
    }
    Ok(())
}

/// A moment, or what is said in place of it.
fn or_else(moment: Option<Timestamp>, absent: &str) -> String {
    moment.map_or_else(|| absent.to_owned(), |moment| moment.to_string())
}

/// Prints a certificate: its hosts, its file, until when it is valid, and its last renewal.
fn print_certificate(out: &mut impl Write, certificate: &CertificateStatus) -> io::Result<()> {
    let CertificateStatus {
        names,
        file,
        not_after,
        days_left,
        renewed,
        refused,
        ..
    } = certificate;
    let names = if names.is_empty() {
        "no host".into()
    } else {
        names.join(", ")
    };
    let validity = match days_left {
        0.. => format!("valid until: {not_after} ({days_left} days)"),
        _ => format!("expired:     {not_after}"),
    };
    let file = file.display();
    let renewed = or_else(*renewed, "not since the start");
    writeln!(
        out,
        "  {names}\n    file:        {file}\n    {validity}\n    renewed:     {renewed}"
    )?;
    if let Some(refused) = refused {
        writeln!(
            out,
            "    refused:     a renewal at {}: {}",
            refused.at, refused.reason
        )?;
    }
    Ok(())
}

fn print_sites(out: &mut impl Write, sites: &[SiteStatus]) -> io::Result<()> {
    for site in sites {
        writeln!(out, "\n{}", site.site)?;
        let mut runs_on = String::new();
        if site.in_force {
            print_policy(out, site)?;
            runs_on = format!("; {}", admin::runs_on(site));
        } else {
            writeln!(out, "  no policy is in force")?;
        }
        if site.removed {
            writeln!(out, "  removed     the policy file is gone{runs_on}")?;
        } else if !site.reload_ok {
            writeln!(out, "  rejected    the policy file has errors{runs_on}")?;
        }
        for finding in &site.findings {
            writeln!(out, "  {finding}")?;
        }
    }
    Ok(())
}

/// The results of requests to a server of an origin.
fn print_origin(out: &mut impl Write, origin: &OriginStatus) -> io::Result<()> {
    let OriginStatus {
        origin: server,
        requests,
        failures,
        server_errors,
        ..
    } = origin;
    writeln!(out, "  {server} for {}", origin.what_for())?;
    if origin.addresses == 0 {
        writeln!(out, "    its name cannot be resolved")?;
    }
    writeln!(
        out,
        "    requests: {requests}, without an answer: {failures}, answered with 5xx: {server_errors}"
    )?;
    for out_of_use in &origin.out_of_use {
        let OutOfUse { address, since, .. } = out_of_use;
        writeln!(
            out,
            "    gets no requests: {address} since {since} ({})",
            out_of_use.why()
        )?;
    }
    if let Some(last) = &origin.last_failure {
        writeln!(
            out,
            "    last without an answer: {} {}{} ({})",
            last.at, last.host, last.target, last.reason
        )?;
    }
    Ok(())
}

/// How many people wait for a place at an origin, and how many requests were turned away.
fn print_queue(out: &mut impl Write, queue: &QueueStatus) -> io::Result<()> {
    let QueueStatus {
        origin,
        waiting,
        crawlers_turned_away: crawlers,
        people_turned_away: people,
        ..
    } = queue;
    writeln!(
        out,
        "  places of {origin}\n    waiting: {waiting}, turned away: {crawlers} crawlers, {people} people"
    )
}

/// The policy in force.
fn print_policy(out: &mut impl Write, site: &SiteStatus) -> io::Result<()> {
    let hosts = if site.hosts.is_empty() {
        "every other host".into()
    } else {
        site.hosts.join(", ")
    };
    writeln!(out, "  hosts       {hosts}\n  mode        {}", site.mode)?;
    for other in &site.modes {
        let name = if other.name == "other" {
            "bots that no list knows"
        } else {
            &other.name
        };
        writeln!(out, "              {} for {name}", other.mode)?;
        if other.name == "other" && other.mode == "observe" {
            writeln!(
                out,
                "              (to refuse these as well, write `{LINE_FOR_ALL}`)"
            )?;
        }
    }
    if !site.exempt.is_empty() {
        writeln!(
            out,
            "              never refused: {}",
            site.exempt.join(", ")
        )?;
    }
    writeln!(
        out,
        "  robots.txt  version {}, in force since {}",
        site.version, site.since
    )?;
    if site.held_versions > 0 {
        let versions = plural(site.held_versions, "superseded version");
        let until = match site.held_until {
            Some(until) => format!("may still be cached, until {until}"),
            None => "may be cached by crawlers that keep it for longer than `grace`".to_owned(),
        };
        writeln!(out, "  cached      {versions} {until}")?;
    }
    writeln!(out, "  search      {}", front_page(site))?;
    for crawler in &site.suspended {
        writeln!(
            out,
            "  identity    no visit from the networks of {crawler} within seven days;\n              \
             they prove no impostors until one comes; check the list"
        )?;
    }
    print_unproven(out, &site.unproven)?;
    for retired in &site.retire {
        writeln!(out, "  retire      {retired}")?;
    }
    if site.asks_for_no_license {
        writeln!(
            out,
            "  licence     no crawler is asked for one; neither the policy nor the origin names a licence"
        )?;
    }
    if let Some(robots) = &site.origin_robots {
        print_origin_robots(out, robots)?;
    }
    if let Some(until) = site.paused_until {
        writeln!(
            out,
            "  paused      for {} until {until}",
            site.paused_for.as_deref().unwrap_or("crawlers")
        )?;
    }
    Ok(())
}

/// The origin's own robots.txt, and what is served meanwhile.
fn print_origin_robots(out: &mut impl Write, robots: &OriginRobotsStatus) -> io::Result<()> {
    let since = robots
        .last_success
        .map(|moment| format!(", last known good at {moment}"))
        .unwrap_or_default();
    writeln!(
        out,
        "  origin's    robots.txt {}{}{since}",
        meaning(robots),
        meanwhile(robots)
    )?;
    if let Some(problem) = &robots.problem {
        writeln!(out, "              {problem}")?;
    }
    let lines = &robots.unpublished_lines;
    if !lines.is_empty() {
        writeln!(
            out,
            "              not published, because crawlers cannot reach the host: {} {}",
            if lines.len() == 1 { "line" } else { "lines" },
            join(lines, ", ")
        )?;
    }
    Ok(())
}

/// The hosts on which no violation counts, and until when.
fn print_unproven(out: &mut impl Write, hosts: &[UnprovenHost]) -> io::Result<()> {
    for UnprovenHost { host, until, .. } in hosts.iter().take(MAX_UNPROVEN) {
        let until = until.map_or_else(
            || PERHAPS_CACHED.to_owned(),
            |until| {
                format!(
                    "{until}, because crawlers may use\n              \
                     a robots.txt that they fetched before crawlgate observed the host"
                )
            },
        );
        writeln!(
            out,
            "  unproven    {host}: no violation counts until {until}"
        )?;
    }
    if let more @ 1.. = hosts.len().saturating_sub(MAX_UNPROVEN) {
        let more = plural(more, "more host");
        writeln!(out, "              and {more}")?;
    }
    Ok(())
}

/// Whether search engines may have the front page, and how crawlgate knows.
fn front_page(site: &SiteStatus) -> String {
    let may = if site.indexable {
        "may crawl and index /"
    } else {
        "may not crawl or index /"
    };
    let is_unavailable = site
        .origin_robots
        .as_ref()
        .is_some_and(|robots| robots.unavailable_until.is_some());
    match site.front_page_seen {
        _ if is_unavailable => {
            format!("Googlebot {may}: robots.txt answers 503, so everything is disallowed")
        }
        Some(seen) => format!("Googlebot {may}, by the answer sent at {seen}"),
        None => format!("Googlebot {may}, by the policy; no request for / yet"),
    }
}

/// The states of docs/origin-robots.md in words.
fn meaning(robots: &OriginRobotsStatus) -> String {
    match robots.state {
        OriginCopyState::Awaited => "is awaited".into(),
        OriginCopyState::Current => "is read".into(),
        OriginCopyState::Absent => "does not exist".into(),
        OriginCopyState::Kept => match robots.believed_at {
            Some(moment) => format!("has no rules any more; crawlgate believes that from {moment}"),
            None if robots.is_unasked => "is being fetched".into(),
            None => "cannot be read".into(),
        },
        OriginCopyState::HeldBack => "is held back".into(),
        OriginCopyState::Missing => "cannot be read, and there is no copy".into(),
    }
}

/// What crawlgate serves while it is not the origin's current file.
fn meanwhile(robots: &OriginRobotsStatus) -> String {
    match (robots.served, robots.unavailable_until) {
        (Served::Unavailable, Some(until)) => format!(": crawlgate answers 503 until {until}"),
        (Served::Unavailable, None) => ": crawlgate answers 503".into(),
        (Served::WithoutOrigin, _) => ": crawlgate serves the policy alone".into(),
        (Served::WithOrigin, _) => match robots.state {
            OriginCopyState::Current | OriginCopyState::Absent => String::new(),
            _ => ": the last good copy is in use".into(),
        },
    }
}
