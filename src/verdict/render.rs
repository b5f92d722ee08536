//! [`Explanation::to_text`] writes the explanation of a decision as text for people (`crawlgate
//! explain`): lines with names and values, then the line of the policy that decided.

use super::challenge::is_challenge;
use super::decision::Readings;
use super::explanation::{ActionReport, Explanation, RuleReport};
use super::identity::{Identity, IdentityDoubt};
use super::pass_reason::{ENFORCE_ALL_LINE, PassReason};
use super::{HistoryBasis, Kind, Verdict};
use crate::policy::{Site, Snapshot};
use crate::yaml::Diagnostic;
use std::fmt::Display;

/// The sentence that says how the doubt about a cache in front of crawlgate ends.
pub const PERHAPS_CACHED_END: &str = "\
two crawlers fetched robots.txt through the proxy in front within one `max_age`: then it is no cache. No time ends \
this, but the policy does with `enforcement: { behind_cache: no }`, or `yes` where there is a cache";

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
    pub fn to_text(&self, snapshot: &Snapshot, colour: bool) -> String {
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
                "it makes none: robots.txt has this name for what other crawlers of its operator fetch",
            );
        }
        let entry = self
            .site
            .as_deref()
            .and_then(|name| snapshot.entry_by_name(name));
        let Some(site) = entry.map(|entry| &*entry.site) else {
            lines.add("site", "no policy claims this host: forwarded untouched");
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
                "none: it is a certificate authority's challenge, which always passes".to_owned()
            }
            None => "no crawler by its user agent".to_owned(),
            Some(crawler) => match &crawler.operator {
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
                "answered 503 until {until}, for there is no copy of the origin's own: a crawler that asks for it now takes all for \
                 disallowed; requests are judged by the policy alone"
            );
            lines.add("robots.txt", line);
        }
        if let Some(hosts) = &self.requested_hosts {
            lines.add("host", "no crawler has requested this one yet");
            hosts
                .iter()
                .take(MAX_HOSTS)
                .for_each(|host| lines.add("requested", host));
        }
        let identity = match (self.identity, self.doubt) {
            (Identity::Verified, _) => {
                "verified: it comes from an address of this crawler".to_owned()
            }
            (Identity::Impostor, _) => {
                "impostor: it does not come from an address of this crawler".to_owned()
            }
            (_, Some(doubt)) => format!("unverified: {}", doubt.description()),
            (Identity::Suspended, None) => {
                format!("unverified: {}", IdentityDoubt::Suspended.description())
            }
            (Identity::Unverified | Identity::Pending, None) => {
                "unverified: the user agent is all that is known".to_owned()
            }
        };
        lines.add("identity", identity);
        for evidence in &self.evidence {
            lines.add("evidence", &evidence.message);
        }
    }

    /// Adds the lines from the group to the action, and the lines for a policy that blocks the bot.
    fn add_decision(&self, lines: &mut TextLines) {
        if let Some(group) = &self.group {
            lines.add("group", format!("User-agent: {}", group.agents.join(", ")));
        }
        if let Some(RuleReport {
            kind,
            pattern,
            source,
            ..
        }) = &self.rule
        {
            let field = if *kind == "allow" {
                "Allow"
            } else {
                "Disallow"
            };
            lines.add("rule", format!("{field}: {pattern}   ({source})"));
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
        if self.history == Some(HistoryBasis::PerhapsCached) {
            lines.add("until", PERHAPS_CACHED_END);
        }
        if let Some(until) = self.older_until {
            lines.add(
                "until",
                format!(
                    "{until}: it may use an older robots.txt; what it requests after that counts"
                ),
            );
        }
        let mut action = self.action.to_sentence();
        if let (Some(would), Some(observed)) = (&self.action.would, self.observed) {
            let would = would.to_sentence();
            let when = match observed {
                PassReason::Mode => "; under enforce",
                PassReason::Unverified => {
                    ", by `unverified: observe`; once the crawler is verified"
                }
                PassReason::Unlisted => {
                    ", because the policy does not name this bot; named, and under enforce"
                }
            };
            action += &format!(" (observed only{when}: {would})");
        }
        lines.add("action", action);
        for (place, line) in self.to_enforce.iter().enumerate() {
            let label = match (line == ENFORCE_ALL_LINE, place) {
                (false, _) => "to enforce",
                (true, 0) => "for all",
                (true, _) => "or for all",
            };
            lines.add(label, line);
        }
    }

    /// Adds the lines of X-Robots-Tag that are sent and those that are taken away, and the
    /// directives for each bot. Adds nothing if there are no such lines.
    fn add_tags(&self, lines: &mut TextLines) {
        for tag in &self.x_robots_tag {
            lines.add("tag", format!("X-Robots-Tag: {tag}"));
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
            .filter(|_| !(self.x_robots_tag.is_empty() && self.taken_away.is_empty()))
        {
            let name = if bot.bot == "*" {
                "any other"
            } else {
                &bot.bot
            };
            let directives = if bot.directives.is_empty() {
                "nothing".into()
            } else {
                bot.directives.join(", ")
            };
            lines.add("tells", format!("{name}: {directives}"));
        }
    }

    /// The results of both readings, for a crawler of Google. `None` for other crawlers, which have
    /// one reading.
    fn readings(&self) -> Option<&'static str> {
        match self.readings {
            Readings::Rfc9309 => None,
            Readings::Both => Some("Google's parser and RFC 9309 say the same of it"),
            Readings::OnlyRfc9309 => Some("Google's parser allows it; RFC 9309 disallows it"),
            Readings::OnlyGoogle => {
                Some("Google's parser disallows it; RFC 9309 allows it, so crawlgate does")
            }
        }
    }

    fn reason(&self) -> &'static str {
        match self.kind {
            Kind::NotACrawler => "people, and tools that the policy does not name, are not judged",
            Kind::Allowed if self.readings == Readings::OnlyRfc9309 => {
                "Google's own parser allows it"
            }
            Kind::Allowed if self.rule.is_some() => "the longest rule that matches allows it",
            Kind::Allowed => "no rule matches it",
            Kind::StaleCopy => {
                "disallowed now, but a version that the crawler may have cached allows it: never refused"
            }
            Kind::Violation if self.requested_hosts.is_some() => {
                "disallowed, and no crawler has requested this host yet"
            }
            Kind::Violation if self.never_fetched => {
                "disallowed, and the crawler did not fetch robots.txt here lately, although it could"
            }
            Kind::Violation => "disallowed by every robots.txt that the crawler may have cached",
            Kind::Unproven if self.verdict != Verdict::Disallowed => {
                "sooner after the last request than crawl_delay says; crawlgate cannot know which copies the crawler has cached"
            }
            Kind::Unproven => {
                "the longest rule that matches disallows it; crawlgate cannot know which copies the crawler has cached"
            }
            Kind::Ambiguous if self.readings == Readings::OnlyRfc9309 => {
                "Google's own parser allows this spelling of a URL that is disallowed: no violation"
            }
            Kind::Ambiguous => {
                "the URL as sent is not disallowed, but what it resolves to is: no violation"
            }
            Kind::NotBound if self.verdict == Verdict::Disallowed => {
                "the policy names it, though its operator says it ignores robots.txt"
            }
            Kind::NotBound => {
                "its operator says that these rules do not bind it, and no group names it"
            }
            Kind::TooFast => "sooner after the last request than crawl_delay says",
            Kind::Impostor => "the address is proven not to be that of the crawler",
            Kind::Trapped => "this client requested a trap, now or recently",
            Kind::Exempt => {
                "disallowed, and the policy exempts it: never refused, and no violation"
            }
            Kind::Unverified => "the policy refuses crawlers that are not verified",
        }
    }
}

impl ActionReport {
    /// What is done with the request, as a sentence.
    fn to_sentence(&self) -> String {
        match (self.kind, self.status) {
            ("block", Some(status)) => format!("refused with {status}"),
            ("slow", Some(status)) => {
                format!(
                    "refused with {status}, come back in {} s",
                    self.retry_after.unwrap_or(0)
                )
            }
            ("pause", _) => format!(
                "answered 503, come back in {} s",
                self.retry_after.unwrap_or(0)
            ),
            ("robots_txt", _) => "answered with the site's robots.txt".into(),
            ("license", Some(status)) => {
                format!("answered {status} without a licence token, forwarded with one")
            }
            ("tdmrep", _) => "answered with the site's tdmrep.json".into(),
            _ => "forwarded".into(),
        }
    }
}
