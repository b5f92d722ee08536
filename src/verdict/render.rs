//! [`Explanation::to_text`] writes the explanation of a decision as text for people (`crawlgate
//! explain`): lines with names and values, then the line of the policy that decided.

use super::challenge::is_challenge;
use super::decision::{ActionKind, RobotsReadings};
use super::explanation::{ActionReport, Explanation};
use super::identity::{Identity, IdentityDoubt};
use super::unenforced_reason::{ENFORCE_ALL_LINE, UnenforcedReason};
use super::{CachedVersionsBasis, Kind, Verdict};
use crate::policy::{Site, Snapshot};
use crate::yaml::Diagnostic;
use std::fmt::Display;

use ActionKind::*;
use RobotsReadings::*;

/// The sentence that says how the doubt about a cache in front of crawlgate ends.
pub const PERHAPS_CACHED_END: &str = "The proxy in front may be a cache that answers crawlers with an \
                                      older robots.txt. crawlgate sees that it is not when two crawlers fetch \
                                      robots.txt through it within one \"max_age\". To end this now, write \
                                      \"enforcement: { behind_cache: no }\" in the policy, or \
                                      \"yes\" if it is a cache";

/// The most requested hosts that are shown: clients can make up any number of hosts of a pattern.
const MAX_HOSTS: usize = 20;

/// Lines of a name and a value, with the values one below the other.
#[derive(Default)]
struct TextLines(String);

impl TextLines {
    /// Adds a line. The name is padded to ten characters.
    fn add(&mut self, name: &str, value: impl Display) {
        self.0 += &format!("{name:<10} {value}\n");
    }
}

impl Explanation {
    /// The text. `snapshot` is the one that the request was judged with. Where it has no site for
    /// the host, the text says that the request is forwarded. `colour` is for the line of the
    /// policy at the end, which is missing if no line of the policy decided.
    pub(crate) fn to_text(&self, snapshot: &Snapshot, colour: bool) -> String {
        let mut lines = TextLines::default();
        lines.add("request", format!("{}{}", self.host, self.target));
        lines.add("crawler", self.crawler_line());
        if self
            .crawler
            .as_ref()
            .is_some_and(|crawler| crawler.makes_no_requests)
        {
            lines.add(
                "requests",
                "none: this name is only for robots.txt. Other crawlers of its operator do the \
                 fetching",
            );
        }
        let entry = self
            .site
            .as_deref()
            .and_then(|name| snapshot.entry_by_name(name));
        let Some(site) = entry.map(|entry| &*entry.site) else {
            lines.add(
                "site",
                "no policy has this host: crawlgate forwards the request unchanged",
            );
            return lines.0;
        };
        self.add_site(&mut lines, site);
        self.add_decision(&mut lines);
        self.add_tags(&mut lines);
        for signal in &self.signals {
            lines.add("signal", signal);
        }
        let mut text = lines.0;
        if let Some(span) = self.rule.as_ref().and_then(|rule| rule.span) {
            let note =
                Diagnostic::warning("rule", span, "this line decided").label(self.verdict.name());
            // The renderer speaks of warnings; the heading is ours.
            let shown = note.render(&site.policy.source, colour);
            let snippet: Vec<&str> = shown.lines().skip(1).collect();
            text += &format!("\n{}\n", snippet.join("\n"));
        }
        text
    }

    /// The crawler that the user agent claims to be, in words; also that it claims none, or that
    /// the request is a challenge of a certificate authority.
    fn crawler_line(&self) -> String {
        match &self.crawler {
            None if is_challenge(b"GET", self.target.as_bytes()) => {
                "none: this is a request of a certificate authority, which always passes".to_owned()
            }
            None => "none (a visitor)".to_owned(),
            Some(crawler) => match &crawler.operator {
                Some(_) if crawler.purpose == "tool" => format!("{} (a tool)", crawler.name),
                Some(operator) => format!("{} ({operator}, {})", crawler.name, crawler.purpose),
                None => crawler.name.clone(),
            },
        }
    }

    /// Adds the lines about the site, the hosts that crawlers requested instead (at most 20), and
    /// the identity.
    fn add_site(&self, lines: &mut TextLines, site: &Site) {
        let file = &site.policy.source.name;
        let version = site.robots_txt.version;
        lines.add(
            "site",
            format!("{} ({file}), robots.txt version {version}", site.name),
        );
        if let Some(until) = self.robots_txt_unavailable_until {
            let line = format!(
                "answered with 503 until {until}, because crawlgate has no copy of the origin's \
                 own. A crawler that fetches it now treats everything as disallowed. crawlgate \
                 judges requests by the policy alone"
            );
            lines.add("robots.txt", line);
        }
        if let Some(hosts) = &self.requested_hosts {
            lines.add(
                "host",
                format!("no crawler has requested {} yet", self.host),
            );
            for host in hosts.iter().take(MAX_HOSTS) {
                lines.add(
                    "requested",
                    format!("{host}, which is another host: use --host {host}"),
                );
            }
        }
        let unknown = (!self.has_address).then_some(IdentityDoubt::ClientUnknown);
        let identity = match (self.identity, self.doubt.or(unknown)) {
            (Identity::Verified, _) => {
                "verified: it comes from an address of this crawler".to_owned()
            }
            (Identity::Impostor, _) => {
                "only pretends to be this crawler: the address is not the crawler's".to_owned()
            }
            (_, Some(doubt)) => format!("not verified: {}", doubt.description()),
            (_, None) => "not verified: the policy does not list this address for it".to_owned(),
        };
        if self.crawler.is_some() {
            lines.add("identity", identity);
        }
        for evidence in &self.evidence {
            lines.add("evidence", &evidence.message);
        }
    }

    /// Adds the lines from the group to the action, and the lines for a policy that blocks the bot.
    fn add_decision(&self, lines: &mut TextLines) {
        if let Some(group) = &self.group {
            lines.add("group", format!("User-agent: {}", group.agents.join(", ")));
        }
        if let Some(rule) = &self.rule {
            let field = if rule.kind == "allow" {
                "Allow"
            } else {
                "Disallow"
            };
            lines.add(
                "rule",
                format!("{field}: {}   ({})", rule.pattern, rule.source),
            );
        }
        lines.add(
            "verdict",
            format!("{} — {}", self.verdict.name(), self.reason()),
        );
        if let Some(readings) = self.readings() {
            lines.add("readings", readings);
        }
        let mark = if self.never_fetched {
            ", marked never_fetched"
        } else {
            ""
        };
        lines.add("kind", format!("{}{mark}", self.kind.name()));
        if self.history == Some(CachedVersionsBasis::PerhapsCached) {
            lines.add("until", format!("no date is known. {PERHAPS_CACHED_END}"));
        }
        if let Some(until) = self.older_until {
            lines.add(
                "until",
                format!("{until} at the latest: until then it may use an older robots.txt. Later requests count"),
            );
        }
        lines.add("action", self.action.to_sentence_with_reason(self.observed));
        if let Some(delay) = &self.crawl_delay {
            lines.add(
                "delay",
                format!("Crawl-delay: {}   ({})", delay.seconds, delay.source),
            );
            let condition = if delay.only_after_fetch {
                ", from a crawler that has fetched this robots.txt"
            } else {
                ""
            };
            let action = delay.action.to_sentence_with_reason(delay.observed);
            lines.add(
                "sooner",
                format!("a request before that{condition}: {action}"),
            );
        }
        for (place, line) in self.to_enforce.iter().enumerate() {
            let label = match (line == ENFORCE_ALL_LINE, place) {
                (false, _) => "to block",
                (true, 0) => "block all",
                (true, _) => "or all",
            };
            lines.add(label, line);
        }
    }

    /// Adds the lines of X-Robots-Tag that are sent and those that are taken away, and the
    /// directives for each bot, or once if they are the same. Adds nothing if there are no such lines.
    fn add_tags(&self, lines: &mut TextLines) {
        let mut pairs = self.effective.windows(2);
        let is_same = pairs.all(|pair| pair[0].directives == pair[1].directives);
        for tag in &self.x_robots_tag {
            lines.add("response", format!("X-Robots-Tag: {tag}"));
        }
        for tag in &self.taken_away {
            lines.add(
                "taken away",
                format!(
                    "X-Robots-Tag: {tag} (the origin's, by {})",
                    self.removal_reason
                ),
            );
        }
        for bot in self
            .effective
            .iter()
            .filter(|bot| !is_same || bot.bot == "*")
            .filter(|_| !(self.x_robots_tag.is_empty() && self.taken_away.is_empty()))
        {
            let name = match &*bot.bot {
                "*" if is_same => "every crawler",
                "*" => "every other crawler",
                name => name,
            };
            let directives = if bot.directives.is_empty() {
                "no directive".into()
            } else {
                bot.directives.join(", ")
            };
            lines.add("X-Robots-Tag", format!("for {name}: {directives}"));
        }
        if self.verdict == Verdict::Disallowed && !self.x_robots_tag.is_empty() {
            lines.add(
                "note",
                "a crawler that obeys does not fetch the page, so it never sees X-Robots-Tag",
            );
        }
    }

    /// The results of both readings, for a crawler of Google. `None` for other crawlers, which have
    /// one reading.
    fn readings(&self) -> Option<&'static str> {
        match self.readings {
            Rfc9309 => None,
            Both => Some("Google's parser and RFC 9309 agree"),
            OnlyRfc9309 => Some("Google's parser allows it; RFC 9309 disallows it"),
            OnlyGoogle => {
                Some("Google's parser disallows it; RFC 9309 allows it. crawlgate allows it")
            }
        }
    }

    /// Why the request is of its kind.
    pub(super) fn reason(&self) -> &'static str {
        use Kind::*;

        match self.kind {
            NotACrawler => "rules are only for crawlers, and for tools that the policy names",
            Allowed if self.readings == OnlyRfc9309 => "Google's own parser allows it",
            Allowed if self.rule.is_some() => "the longest matching rule allows it",
            Allowed => "no rule matches",
            StaleCopy => {
                "an older robots.txt, which the crawler may still use, allows it: crawlgate does \
                 not block it yet"
            }
            Violation if self.requested_hosts.is_some() => {
                "by every robots.txt that the crawler may have. No crawler has requested exactly this host and port yet"
            }
            Violation if self.never_fetched => {
                "by every robots.txt that the crawler may have. It has not fetched robots.txt here lately"
            }
            Violation => "by every robots.txt that the crawler may have",
            Unproven if self.verdict != Verdict::Disallowed => {
                "earlier than Crawl-delay allows. It does not count as a violation yet, because the \
                 crawler may still use an older robots.txt"
            }
            Unproven => {
                "by the robots.txt in force. It does not count as a violation yet, because the crawler may \
                 still use an older robots.txt"
            }
            Ambiguous if self.readings == OnlyRfc9309 => {
                "Google's own parser allows this spelling of a disallowed URL: not a violation"
            }
            Ambiguous => {
                "the URL as sent is allowed, but not the URL that it resolves to: not a violation"
            }
            NotBound if self.verdict == Verdict::Disallowed => {
                "the policy names this crawler, but its operator says that it ignores robots.txt"
            }
            NotBound => {
                "its operator says that these rules do not apply to it, and no group names it"
            }
            TooFast => "earlier than Crawl-delay allows",
            Impostor => "it only pretends to be this crawler",
            Trapped => "this client requested a trap, now or before",
            Exempt => "the policy exempts this crawler: not blocked, and not a violation",
            Unverified => "the policy blocks crawlers that are not verified",
        }
    }
}

impl ActionReport {
    /// What is done with the request, and what enforcement would do, if `observed` says why it does
    /// not act.
    fn to_sentence_with_reason(&self, observed: Option<UnenforcedReason>) -> String {
        use UnenforcedReason::*;

        let mut sentence = self.to_sentence();
        if let (Some(would), Some(observed)) = (&self.would, observed) {
            let would = would.to_sentence();
            let when = match observed {
                Mode => "; with \"mode: enforce\"",
                Unverified => ", because of \"unverified: observe\"; once the crawler is verified",
                Unlisted => ", like all bots of the purpose \"other\"; with enforcement",
            };
            sentence += &format!(" (only observed{when}: {would})");
        }
        sentence
    }

    /// What is done with the request, as a sentence.
    fn to_sentence(&self) -> String {
        match (self.kind, self.status) {
            (Block, Some(status)) => format!("blocked with {status}"),
            (Slow, Some(status)) => {
                format!(
                    "blocked with {status}, retry after {} s",
                    self.retry_after.unwrap_or(0)
                )
            }
            (Pause, _) => format!(
                "paused: answered with 503, retry after {} s",
                self.retry_after.unwrap_or(0)
            ),
            (RobotsTxt, _) => "answered with the site's robots.txt".into(),
            (License, Some(status)) => {
                format!("asked for a licence with {status}, unless it sends a licence token")
            }
            (Tdmrep, _) => "answered with the site's tdmrep.json".into(),
            _ => "forwarded".into(),
        }
    }
}
