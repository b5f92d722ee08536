//! The command `audit`: reads the access logs of any web server, and reports which crawlers fetched
//! URLs that robots.txt disallows. [`load_networks`] loads the IP networks that operators publish
//! for their crawlers: from the source that the flag `--lists` names, or from a state directory of
//! crawlgate.

use super::check::sitemaps::read_sitemap;
use super::origin_copy::OriginFlags;
use super::report::{ReportFlags, period_bounds, unknown_crawler};
use super::{Failure, Result, default_paths, did_you_mean, file_failure, now, policies, tester};
use crate::audit::{
    self, AuditOptions, AuditProgress, AuditRules, DatedRobotsTxt, LogInput, PublishedNetworks,
    SitemapUrls,
};
use crate::crawlers::{Claim, Registry};
use crate::facts::StoredFacts;
use crate::files::read_argument;
use crate::identity::refresh::{ListUpdateReport, update_lists};
use crate::identity::{PublishedLists, RegistryProofMeans, is_directory};
use crate::logs::{KeyMap, KnownFormat, LineFormat, LogFormatString, UnreadableReason};
use crate::numbers::{plural, thousands};
use crate::policy::SiteEntry;
use crate::report::{EarlierReport, LogSummary, PeriodBound, Report};
use crate::settings::ListSource;
use crate::sitemap::SitemapLocation;
use crate::state::{StateError, StateStore};
use crate::time::Timestamp;
use ipnet::IpNet;
use serde::de::{DeserializeOwned, IgnoredAny};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Find in access logs which crawlers broke the rules of robots.txt
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  crawlgate audit --robots robots.txt access.log access.log.*.gz
  crawlgate audit --robots old.txt --robots robots.txt@2026-11-01 access.log --html report.html
  crawlgate audit --policies policies --fail-on violation access.log
  crawlgate audit --robots robots.txt --since 7d --crawler googlebot /var/log/nginx
  crawlgate audit --robots robots.txt --since 2026-11-01 --until 2026-12-01 /var/log/nginx
  crawlgate audit --robots robots.txt --sitemap https://shop.example/sitemap.xml access.log
  crawlgate audit --robots robots.txt --compare october.json --html november.html november.log
  crawlgate audit --robots robots.txt --map user_agent=ua,path=http.url app.jsonl
  zcat access.log.gz | crawlgate audit --robots https://shop.example - --json

Exit codes: 0 fine, 1 --fail-on found something, 2 wrong usage, 3 a file or too many lines cannot be read.")]
pub struct Arguments {
    /// Access logs or directories of them (plain, gzip or zstd) in any order, or - for standard input
    #[arg(value_name = "LOG", required = true)]
    log: Vec<PathBuf>,
    /// A robots.txt (a file or http(s) URL), and since when it was in force; may be repeated
    #[arg(long, value_name = "FILE[@TIME]", conflicts_with = "policies")]
    robots: Vec<String>,
    /// Judge by the policies in this directory, as if they had always been in force
    #[arg(long, value_name = "DIR")]
    policies: Option<PathBuf>,
    /// How long a crawler may use an older robots.txt
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = crate::yaml::parse_duration)]
    grace: Duration,
    /// Only this site, by host or policy name; lines without a host count as this site's
    #[arg(long, alias = "host")]
    site: Option<String>,
    /// Only this crawler, by id or token; "other" means all unknown bots; may be repeated
    #[arg(long)]
    crawler: Vec<String>,
    /// How many crawlers to list under traffic and URLs, how many URLs of each, and how many addresses
    /// of a pretender; at most 500 in text and pages [default: 5, or 20 with --crawler; in the text as
    /// many URLs as one line holds; all in a CSV]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    top: Option<u32>,
    /// How many directories of a path are its section: 2 for /de/shop/
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    section_depth: u8,
    /// Compare the requests of search crawlers with the URLs of this sitemap, or sitemap index; may be
    /// repeated
    #[arg(long = "sitemap", value_name = "URL|FILE")]
    sitemaps: Vec<String>,
    /// Compare each crawler with an earlier audit, from a file with the output of its --json
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
    #[command(flatten)]
    reading: LogFlags,
    /// Exit with 3 if more than this share of the lines cannot be read [default: 10%, or 0% with --fail-on]
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    max_unreadable: Option<f64>,
    /// Exit with 1 for a violation (certainly against the rules, and not by a pretender), or for
    /// any disallowed request
    #[arg(long, value_name = "KIND")]
    fail_on: Option<FailOn>,
    #[command(flatten)]
    origin: OriginFlags,
    /// Leave out the addresses of clients that pretend to be a crawler
    #[arg(long)]
    no_addresses: bool,
    #[command(flatten)]
    output: ReportFlags,
}

/// How to read the logs of LOG or `--log`, which period, and whom to take for a crawler.
#[derive(clap::Args)]
pub struct LogFlags {
    /// The beginning: 7d for the last seven days, a date, or a time in UTC like
    /// 2026-11-01T10:00:00Z [default: the whole log]
    #[arg(
        long,
        value_name = "TIME",
        requires = "log",
        allow_hyphen_values = true
    )]
    since: Option<PeriodBound>,
    /// The end, in the same form, not included [default: the end of the log]
    #[arg(
        long,
        value_name = "TIME",
        requires = "log",
        allow_hyphen_values = true
    )]
    until: Option<PeriodBound>,
    /// The format of the lines, by name or as in nginx's log_format [default: detected]
    #[arg(long, requires = "log")]
    log_format: Option<String>,
    /// The keys of JSON lines, like user_agent=ua,path=http.url
    #[arg(long, value_name = "FIELD=KEY,...", requires = "log", conflicts_with = "log_format", value_parser = KeyMap::parse)]
    map: Option<KeyMap>,
    /// The network of a proxy; its addresses in X-Forwarded-For are not clients; may be repeated
    #[arg(long, value_name = "CIDR", requires = "log", value_parser = super::run::parse_network)]
    trusted_proxy: Vec<IpNet>,
    /// The published networks of crawlers: yes (fetch them), a directory, or a URL [default: those in
    /// the state directory]
    #[arg(long, value_name = "FROM", requires = "log")]
    pub lists: Option<ListSource>,
}

impl LogFlags {
    /// The options of an audit, without the networks, which may have to be fetched.
    pub fn options(&self) -> Result<AuditOptions> {
        let [since, until] = period_bounds([self.since, self.until], now())?;
        let period = (since.is_some() || until.is_some())
            .then(|| since.unwrap_or(Timestamp(i64::MIN))..until.unwrap_or(Timestamp(i64::MAX)));
        Ok(AuditOptions {
            format: parse_log_format(self.log_format.as_deref(), self.map.as_ref())?,
            period,
            trusted_proxies: self.trusted_proxy.clone(),
            ..AuditOptions::default()
        })
    }
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum FailOn {
    Violation,
    Disallowed,
}

/// How many URLs of one crawler are listed.
const TOP_OF_ONE: u32 = 20;

/// Audits the logs and prints the report. Fails if too many lines are unreadable, or if `--fail-on`
/// finds something.
pub fn run(arguments: &Arguments) -> Result {
    let options = arguments.reading.options()?;
    let rules = load_rules(arguments)?;
    let has_no_rules = arguments.policies.is_none()
        && rules
            .site_entries()
            .all(|entry| entry.site.document.groups.is_empty());
    if let Some(site) = &arguments.site {
        check_site(site, &rules)?;
    }
    let sites = Vec::from_iter(rules.site_entries());
    let crawlers = crawler_labels(&arguments.crawler, &sites)?;
    let inputs = find_logs(&arguments.log)?;
    let all = arguments.output.csv.then_some(1_000_000);
    let list_length = arguments.top.or(all).unwrap_or_default();
    let of_one = (!crawlers.is_empty()).then_some(TOP_OF_ONE);
    let top = arguments.top.or(of_one);
    let earlier = arguments
        .compare
        .as_deref()
        .map(|path| read_earlier_report(path, &crawlers))
        .transpose()?;
    let options = AuditOptions {
        site: arguments.site.clone(),
        crawlers,
        networks: load_networks(
            arguments.reading.lists.as_ref(),
            arguments.origin.state.as_deref(),
        )?,
        sitemap: load_sitemaps(&arguments.sitemaps, arguments.site.as_deref())?,
        top: top.map(|top| top as usize),
        list_length: list_length as usize,
        section_depth: arguments.section_depth.into(),
        ..options
    };
    let mut progress = super::progress::ProgressLine::new();
    let report = audit::audit_logs(
        &inputs,
        &rules,
        Registry::builtin(),
        &options,
        &mut |read| progress.update(|seconds| progress_line(read, seconds)),
    );
    progress.write(|_| String::new());
    let mut report = report?;
    report.earlier = earlier;
    if let Some(log) = &mut report.log {
        log.has_no_rules = has_no_rules;
    }
    if arguments.no_addresses {
        for row in &mut report.crawlers {
            row.addresses.clear();
        }
    }
    super::ignore_closed_pipe(arguments.output.print(&mut report))?;
    report
        .log
        .as_ref()
        .map_or(Ok(()), |log| check_outcome(&report, log, arguments))
}

/// Fails if there are policies, and none has this name or host.
fn check_site(site: &str, rules: &AuditRules) -> Result {
    let is_host = rules.find_site(Some(site.as_bytes()), now()).is_some();
    if is_host || rules.site_index(site).is_some() {
        return Ok(());
    }
    let names = rules.site_entries().map(|entry| &*entry.site.name);
    let near = did_you_mean(site, names);
    fail!(
        Usage,
        "--site {site}: no policy has this name or host{near}"
    )
}

/// Reads a report of at most 64 MiB that `--json` printed, with the rows of these crawlers, or all.
fn read_earlier_report(path: &Path, crawlers: &[String]) -> Result<EarlierReport> {
    let read = read_argument(path, 64 << 20).and_then(|json| {
        // Rows that are only counted take no memory.
        let counted: EarlierReport<IgnoredAny> = parse_earlier_report(&json)?;
        if counted.crawlers.len() > 10_000 {
            return Err(io::Error::other("it has more than 10,000 crawlers"));
        }
        parse_earlier_report(&json)
    });
    let mut report: EarlierReport =
        read.map_err(file_failure("compare with the JSON of an audit in", path))?;
    report.crawlers.retain(|row| {
        crawlers.is_empty() || crawlers.iter().any(|one| one.eq_ignore_ascii_case(&row.id))
    });
    Ok(report)
}

fn parse_earlier_report<Row: DeserializeOwned>(json: &[u8]) -> io::Result<EarlierReport<Row>> {
    serde_json::from_slice(json).map_err(|error| {
        io::Error::other(format!(
            "it is not the output of crawlgate audit --json (line {}, column {})",
            error.line(),
            error.column()
        ))
    })
}

/// The URLs of these sitemaps; `None` without sitemaps. Lines without a host count as those of `site`.
/// Fails if the sitemaps have no URL.
fn load_sitemaps(sitemaps: &[String], site: Option<&str>) -> Result<Option<SitemapUrls>> {
    if sitemaps.is_empty() {
        return Ok(None);
    }
    let mut urls = SitemapUrls::default();
    for written in sitemaps {
        let files = read_sitemap(written, &mut |pages| {
            for listed in &pages.urls {
                urls.insert(&listed.url);
            }
            Vec::new()
        })?;
        let summary = &mut urls.summary;
        for file in files {
            summary.unread.extend(file.problems());
        }
        summary.names.push(SitemapLocation::new(written).name());
    }
    urls.set_main_host(site.unwrap_or_default());
    if urls.summary.urls == 0 {
        let problems = urls.summary.unread.join("; ");
        fail!(Runtime, "--sitemap: there is no absolute URL. {problems}");
    }
    Ok(Some(urls))
}

/// The logs of these files and directories by name, without those that are named twice.
pub fn find_logs(paths: &[PathBuf]) -> Result<Vec<LogInput>> {
    let mut inputs = Vec::new();
    for path in paths {
        inputs.extend(audit::logs_at(path).map_err(file_failure("open", path))?);
    }
    inputs.sort();
    inputs.dedup();
    Ok(inputs)
}

/// The labels of the crawlers with these ids, names or tokens. Fails if neither the registry nor the
/// sites know one.
pub fn crawler_labels(names: &[String], sites: &[&SiteEntry]) -> Result<Vec<String>> {
    let registry = Registry::builtin();
    let labels = names.iter().map(|name| {
        if let Some(crawler) = registry.find(name) {
            return Ok(registry.get(crawler).id.clone());
        }
        let mut claims = sites
            .iter()
            .map(|entry| entry.site.claim_of(name, registry));
        if ["other", "tool"].contains(&name.as_str())
            || claims.any(|claim| matches!(claim, Claim::PolicyToken(_)))
        {
            return Ok(name.clone());
        }
        Err(unknown_crawler(name))
    });
    labels.collect()
}

/// The default of --max-unreadable: rotation cuts a line here and there.
const MAX_UNREADABLE: f64 = 0.1;

/// Fails for a damaged log, for too many unreadable lines, and for a log without user agents. With
/// `--fail-on`, also fails for what it names, and for lines that may have hidden it.
fn check_outcome(report: &Report, log: &LogSummary, arguments: &Arguments) -> Result {
    if let Some(damaged) = log.damaged.first() {
        fail!(
            Runtime,
            "{} The report lacks what comes after; unpack the log again",
            damaged.message()
        );
    }
    if log.unreadable > 0 && log.unreadable >= log.counts.lines - log.counts.server_messages {
        if log
            .unreadable_reasons
            .contains_key(UnreadableReason::Utf16.id())
        {
            fail!(
                Runtime,
                "the log is in UTF-16; convert it first: iconv -f UTF-16 -t UTF-8 LOG"
            );
        }
        return no_readable_line_failure();
    }
    check_readable(
        log,
        log.unreadable,
        arguments.max_unreadable.unwrap_or(MAX_UNREADABLE),
    )?;
    if let Some(name) = log.without_user_agents.first() {
        fail!(
            Runtime,
            "no request in {name} has a user agent, so crawlers cannot be told apart. If its lines have user agents, show where \
             with $http_user_agent in --log-format; if not, omit the log"
        );
    }
    if let Some(fail_on) = arguments.fail_on {
        check_fail_on(report, log, fail_on)?;
        // A check that found nothing passes only if nothing was lost.
        check_readable(
            log,
            log.unreadable + log.counts.no_user_agent + log.counts.no_host,
            arguments.max_unreadable.unwrap_or(0.0),
        )?;
    }
    check_judged(report, log, arguments)
}

/// Fails if more than a share (`max`, from 0 to 1) of all lines but messages of servers are `lost`.
fn check_readable(log: &LogSummary, lost: u64, max: f64) -> Result {
    let lines = log.counts.lines - log.counts.server_messages;
    if lost as f64 <= max * lines as f64 {
        return Ok(());
    }
    fail!(
        Runtime,
        "{} of {} could not be read or judged. The report lacks them. Describe the lines with --log-format, or allow \
         more of them with --max-unreadable (now {} %)",
        thousands(lost),
        plural(thousands(lines), "line"),
        max * 100.0
    )
}

/// Fails if no request was judged, with `--fail-on`, or because the log has only hosts other than
/// that of `--site`.
fn check_judged(report: &Report, log: &LogSummary, arguments: &Arguments) -> Result {
    let counts = &log.counts;
    let has_only_other_hosts = counts.other_hosts + counts.outside_period > 0
        && [report.from, log.outside_span[0]] == [None; 2];
    let must_judge =
        arguments.fail_on.is_some() || arguments.site.is_some() && has_only_other_hosts;
    let mut rows = report.crawlers.iter();
    if must_judge && report.visitors == 0 && rows.all(|row| row.counts.requests() == 0) {
        fail!(
            Runtime,
            "no request was judged. A line does not count if it is for another host or crawler, outside \
             --since and --until, or a message of the server. Is this the access log, and are its hosts those of --site or of the policies?"
        );
    }
    Ok(())
}

/// Fails with exit code 1 if the report has requests that `fail_on` names.
fn check_fail_on(report: &Report, log: &LogSummary, fail_on: FailOn) -> Result {
    let against_rules = report.totals.against_rules;
    Err(Failure::FindingsMessage(match fail_on {
        FailOn::Violation if against_rules > 0 => format!(
            "{} against the rules, and --fail-on violation is set",
            plural(thousands(against_rules), "request")
        ),
        FailOn::Disallowed if log.counts.disallowed > 0 => format!(
            "{} disallowed, and --fail-on disallowed is set",
            plural(thousands(log.counts.disallowed), "request")
        ),
        _ => return Ok(()),
    }))
}

/// The failure if no line of the logs could be read.
pub fn no_readable_line_failure() -> Result {
    fail!(
        Runtime,
        "none of the lines could be read; describe them with --log-format, or with --map if they are JSON. Compare the keys of --map with a line of the log"
    )
}

/// The format of `--map` or `--log-format`. Without the flags it is detected.
fn parse_log_format(format: Option<&str>, map: Option<&KeyMap>) -> Result<LineFormat> {
    if let Some(map) = map {
        return Ok(LineFormat::Mapped(map.clone()));
    }
    let Some(format) = format else {
        return Ok(LineFormat::Detect);
    };
    if let Some(known) = KnownFormat::find(format) {
        return Ok(LineFormat::Known(known));
    }
    if !format.contains('$') {
        fail!(
            Usage,
            "--log-format: there is no format \"{format}\"; the formats are {}, or write one as in nginx's log_format",
            KnownFormat::names()
        );
    }
    let pattern = LogFormatString::parse(format)
        .map_err(|error| Failure::Usage(format!("--log-format: {error}")))?;
    Ok(LineFormat::FormatString(pattern))
}

/// The rules of the policies, else of the robots.txt files. Fails without both.
fn load_rules(arguments: &Arguments) -> Result<AuditRules> {
    if let Some(directory) = &arguments.policies {
        return load_policy_rules(directory, &arguments.origin);
    }
    if arguments.robots.is_empty() {
        fail!(
            Usage,
            "the rules are missing: give the site's robots.txt with --robots FILE (or its URL), or policies with \
                        --policies DIR. If robots.txt changed meanwhile, give each version with its first day: --robots \
                        FILE@2026-11-01"
        );
    }
    let files = arguments
        .robots
        .iter()
        .map(|value| read_dated_robots_txt(value))
        .collect::<Result<_>>()?;
    AuditRules::from_files(files, arguments.grace, Registry::builtin())
        .map_err(|error| Failure::Usage(format!("--robots: {error}")))
}

/// The rules of a policy directory, without pauses. Prints the findings, and fails if a policy has
/// errors.
fn load_policy_rules(directory: &Path, origin: &OriginFlags) -> Result<AuditRules> {
    let origins = origin.read()?;
    let loaded = policies::load_policies(&[directory.to_owned()], &origins)?;
    policies::print_errors(&loaded);
    if loaded.iter().any(|file| file.site.is_none()) {
        return Err(Failure::Findings);
    }
    origins.print_assumptions(policies::valid_sites(&loaded));
    Ok(AuditRules::from_policies(
        policies::snapshot_without_pauses(loaded),
    ))
}

/// Reads a file or URL of `--robots`, with the time after its last `@`. An `@` without a time is
/// part of a URL, or of the name of an existing file.
fn read_dated_robots_txt(value: &str) -> Result<DatedRobotsTxt> {
    let (source, since) = match value.rsplit_once('@') {
        Some((source, time)) => match Timestamp::parse(time) {
            Some(since) => (source, Some(since)),
            None if Path::new(value).exists() || value.contains("://") => (value, None),
            None => {
                fail!(
                    Usage,
                    "--robots {value}: \"{time}\" is not a time; write it like 2026-11-01 or 2026-11-01T12:00:00Z"
                );
            }
        },
        None => (value, None),
    };
    if source == "-" {
        fail!(
            Usage,
            "--robots takes a file or a URL; standard input is for logs"
        );
    }
    Ok(DatedRobotsTxt {
        since,
        ..tester::read_rules(source, "judge by")?
    })
}

/// The line of progress: lines and rate, and, if the size is known, how much is done and the time
/// left.
fn progress_line(progress: AuditProgress, seconds: f64) -> String {
    let rate = (progress.lines as f64 / seconds) as u64;
    let lines = format!(
        "{} lines, {} a second",
        thousands(progress.lines),
        thousands(rate)
    );
    let Some(size) = progress.total_bytes.filter(|size| *size > 0) else {
        return lines;
    };
    let part = (progress.bytes_read as f64 / size as f64).clamp(0.001, 1.0);
    let left = (seconds / part - seconds) as u64;
    format!("{:.0} %, {lines}, {left} s left", part * 100.0)
}

/// A percentage like `10%`, `10` or `0.5%`, as a share from 0 to 1.
fn parse_percent(written: &str) -> Result<f64, &'static str> {
    let number = written.strip_suffix('%').unwrap_or(written).trim_end();
    number
        .parse()
        .ok()
        .filter(|number| (0.0..=100.0).contains(number))
        .map(|number: f64| number / 100.0)
        .ok_or("write a percentage from 0% to 100%")
}

/// The networks from the source of `--lists`, else from the state directory. `None` if there are
/// none. Without both flags, an unreadable default state directory only gives a message.
pub fn load_networks(
    lists: Option<&ListSource>,
    state: Option<&Path>,
) -> Result<Option<PublishedNetworks>> {
    match (lists, state) {
        (Some(ListSource::Off), _) => Ok(None),
        (Some(from), _) => fetch_networks(from).map(Some),
        (None, Some(directory)) => Ok(stored_networks(directory)?),
        (None, None) => Ok(default_paths::state_directory().and_then(|directory| {
            stored_networks(&directory).unwrap_or_else(|error| {
                print_message!("note: {error}; crawlers are not verified");
                None
            })
        })),
    }
}

/// The networks that a crawlgate stored in its state directory; `None` if it stored none.
fn stored_networks(directory: &Path) -> Result<Option<PublishedNetworks>, StateError> {
    let (means, lists) = lists_from_facts(&StateStore::read(directory, now())?);
    Ok(PublishedNetworks::new(means, lists, now()))
}

/// The means of proof of the registry, and the published lists as stored in these facts.
fn lists_from_facts(facts: &StoredFacts) -> (RegistryProofMeans, PublishedLists) {
    let means = RegistryProofMeans::from_registry(Registry::builtin());
    let lists = PublishedLists::new(&means, &facts.network_lists, StateStore::in_memory_only().0);
    (means, lists)
}

/// Fetches all lists from their operators, a mirror or a directory, and prints how many failed.
/// Fails if no list could be fetched.
fn fetch_networks(from: &ListSource) -> Result<PublishedNetworks> {
    let (means, lists) = lists_from_facts(&StoredFacts::default());
    let wanted: Vec<_> = lists
        .all()
        .filter(|(_, url)| !is_directory(url))
        .map(|(list, _)| list)
        .collect();
    let updates: Vec<_> = update_lists(&lists, &wanted, from, now())
        .into_iter()
        .filter_map(|(_, update)| update)
        .collect();
    let failed: Vec<&ListUpdateReport> = updates
        .iter()
        .filter(|update| update.result.is_failure())
        .collect();
    if let Some(ListUpdateReport { url, error, .. }) = failed.first() {
        print_message!(
            "crawlgate: {} of {} lists of networks could not be read, the first is {url}: {}. Their crawlers are not verified",
            failed.len(),
            updates.len(),
            error.as_deref().unwrap_or_default()
        );
    }
    PublishedNetworks::new(means, lists, now()).ok_or_else(|| {
        Failure::Runtime("--lists: none of the published lists could be read. In a directory, the name of a file is the URL \
                       of its list without https://, like DIR/openai.com/gptbot.json. \"crawlgate crawlers Googlebot\" \
                       shows the URL for Googlebot under \"addresses\"".into())
    })
}
