//! Who comes, where, and what robots.txt says to everybody.

use std::fmt::Write as _;

pub const GOOGLEBOT: &str =
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
pub const GOOGLE_IMAGES: &str = "Googlebot-Image/1.0";
/// Keeps a robots.txt for 72 hours, by its operator's page.
pub const THREE_DAYS: &str = "DuckAssistBot/1.2; (+http://duckduckgo.com/duckassistbot.html)";
/// Keeps it for a week.
pub const A_WEEK: &str = "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)";
/// Comes all the time and keeps to the rules: the host is in use. Ignores Crawl-delay by its
/// operator's word.
pub const BYSTANDER: &str = "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)";
/// Does not follow `*` by its operator's own word, and no group names it.
pub const NOT_BOUND: &str = "AdsBot-Google (+http://www.google.com/adsbot.html)";
/// Proven by its addresses, where the policy has [`PARTNERS`].
pub const PARTNER: &str = "PartnerBot/1.0";
pub const PARTNERS: &str =
    "crawlers: [{ token: PartnerBot, crawl_delay: yes, networks: [198.51.100.0/24] }]\n";

pub const APEX: &str = "shop.example";
pub const WWW: &str = "www.shop.example";
pub const MINUTE: i64 = 60;
pub const HOUR: i64 = 3_600;

/// What robots.txt says to everybody.
#[derive(Clone, Copy)]
pub struct Rules {
    /// `/never/` is closed in every version.
    pub closed: &'static [&'static str],
    /// `Crawl-delay` as a policy has it; none when empty.
    pub delay: &'static str,
    pub traps: &'static [&'static str],
    /// As many versions as one likes, each of which closes one more path.
    pub number: usize,
    /// So long that it takes several writes.
    pub long: bool,
}

pub const OPEN: Rules = Rules {
    closed: &[],
    delay: "",
    traps: &[],
    number: 0,
    long: false,
};
pub const WITHOUT_A: Rules = OPEN.closing(&["/a/"]);
pub const WITHOUT_A_AND_B: Rules = OPEN.closing(&["/a/", "/b/"]);
pub const LONG: Rules = Rules { long: true, ..OPEN };
pub const TRAP: &str = "/trap/";
pub const TRAPPED: Rules = OPEN.trapping(&[TRAP]);

impl Rules {
    pub const fn closing(self, closed: &'static [&'static str]) -> Rules {
        Rules { closed, ..self }
    }

    pub const fn delay(self, delay: &'static str) -> Rules {
        Rules { delay, ..self }
    }

    pub const fn trapping(self, traps: &'static [&'static str]) -> Rules {
        Rules { traps, ..self }
    }

    pub const fn numbered(self, number: usize) -> Rules {
        Rules { number, ..self }
    }

    /// The policy of a site; `more` are its other lines.
    pub fn policy(&self, hosts: &str, more: &str) -> String {
        let mut closed = vec!["/never/".to_owned()];
        closed.extend(self.closed.iter().map(|path| (*path).to_owned()));
        if self.number > 0 {
            closed.push(format!("/numbered/{}/", self.number));
        }
        if self.long {
            closed.extend((0..6_000).map(|number| format!("/long/{}/{number}/", "x".repeat(50))));
        }
        let delay = if self.delay.is_empty() {
            String::new()
        } else {
            format!("\n      crawl_delay: {}", self.delay)
        };
        let mut text = format!(
            "hosts: [{hosts}]\nrobots:\n  origin: replace\n  groups:\n    - agents: ['*']{delay}\n      disallow:\n"
        );
        for path in closed {
            let _ = writeln!(text, "        - {path}");
        }
        let traps = self.traps.join(", ");
        let cache = if more.contains("behind_cache") {
            ""
        } else {
            "\n  behind_cache: no"
        };
        let _ = writeln!(
            text,
            "enforcement:\n  mode: enforce{cache}\n  traps: [{traps}]\n  trapped: {{ for: 2h }}"
        );
        text + more
    }
}
