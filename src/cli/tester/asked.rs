//! [`Asked`]: the crawler that an `--agent` of `tester` names, with the tokens (names in
//! `User-agent` lines) that it obeys. [`Asked::followed`] says whose rules the crawler follows in a
//! robots.txt.

use super::{Failure, Result};
use crate::crawlers::{Binds, Claim, Crawler, Registry, SiteMarkers, calls_itself};
use crate::robots::{Bound, Reading};

/// The crawler of one `--agent`.
pub struct Asked<'a> {
    /// As it is written.
    pub written: &'a str,
    /// The record of the crawler that it names; none for an unlisted one, and with `--literal`.
    pub crawler: Option<&'a Crawler>,
    /// Whether it is a whole user agent, of which the crawler or the token was read.
    pub is_user_agent: bool,
    /// Whether that is a person's, for whom no rule is.
    pub is_person: bool,
    /// The tokens that the crawler looks for in the file, the most specific first.
    tokens: Vec<&'a str>,
    binds: Binds,
}

impl<'a> Asked<'a> {
    /// A crawler that looks for exactly this token, and else obeys `*`, whatever the registry knows
    /// of it.
    pub fn literal(written: &'a str) -> Asked<'a> {
        let tokens = vec![written];
        Asked {
            written,
            crawler: None,
            is_user_agent: false,
            is_person: false,
            tokens,
            binds: Binds::Unknown,
        }
    }

    /// The crawler that `--agent` names. A token, id or name of the registry is that crawler; a
    /// text without signs of a user agent is any other token. Of a whole user agent the crawler or
    /// token is read from it. `named` are the tokens of the file that the registry does not know.
    ///
    /// # Errors
    /// A user agent of a bot or tool that names no token.
    pub fn new(
        written: &'a str,
        registry: &'a Registry,
        named: &'a SiteMarkers,
    ) -> Result<Asked<'a>> {
        if let Some(index) = registry.find(written) {
            return Ok(Asked::known(written, registry.get(index), false));
        }
        if !written.contains([' ', '/', ';', '(']) {
            return Ok(Asked::literal(written));
        }
        let asked = Asked {
            is_user_agent: true,
            ..Asked::literal(written)
        };
        let token = match registry.identify_with(written.as_bytes(), named) {
            Claim::Known(index) => return Ok(Asked::known(written, registry.get(index), true)),
            Claim::Nobody => {
                return Ok(Asked {
                    is_person: true,
                    ..asked
                });
            }
            Claim::Token(index) => named.token(index),
            Claim::Other | Claim::Tool => calls_itself(written.as_bytes()),
        };
        let token = token.ok_or_else(|| {
            Failure::Usage(format!(
                "`{written}` is the user agent of no crawler that crawlgate knows; give its product token, like Googlebot"
            ))
        })?;
        Ok(Asked {
            tokens: vec![token],
            ..asked
        })
    }

    /// A crawler of the registry, with its tokens; its name is the token if it has none.
    fn known(written: &'a str, crawler: &'a Crawler, is_user_agent: bool) -> Asked<'a> {
        let tokens = if crawler.tokens.is_empty() {
            vec![crawler.name.as_str()]
        } else {
            crawler.tokens.iter().map(String::as_str).collect()
        };
        Asked {
            crawler: Some(crawler),
            is_user_agent,
            tokens,
            binds: crawler.binds,
            ..Asked::literal(written)
        }
    }

    /// What the crawler is called in an answer: as it is written, or the first token of a user
    /// agent.
    pub fn name(&self) -> &'a str {
        if self.is_user_agent {
            self.tokens[0]
        } else {
            self.written
        }
    }

    /// Whether a token is the crawler's own, which is its first one, and not that of another
    /// crawler whose group it follows.
    pub fn is_own(&self, token: &str) -> bool {
        self.tokens[0].eq_ignore_ascii_case(token)
    }

    /// Whether the operator says that the crawler ignores robots.txt.
    pub fn ignores_robots_txt(&self) -> bool {
        self.binds == Binds::Never
    }

    /// The token whose rules the crawler obeys, and what binds it: the first of its tokens that a
    /// group names; else its first token, bound by the group for `*` or by nothing. `None` for a
    /// person, and where no group names a crawler that does not obey `*`.
    pub fn followed(&self, reading: &Reading) -> Option<(&'a str, Bound)> {
        if self.is_person {
            return None;
        }
        for token in &self.tokens {
            if reading.binding(token.as_bytes()).0 == Bound::Named {
                return Some((token, Bound::Named));
            }
        }
        match self.binds {
            Binds::Star | Binds::Unknown => {
                let token = self.tokens[0];
                Some((token, reading.binding(token.as_bytes()).0))
            }
            Binds::Named | Binds::Never => None,
        }
    }
}
