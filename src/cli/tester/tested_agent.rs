//! [`TestedAgent`]: the crawler that the user names with `--agent` of the command `tester`, and the
//! user-agent tokens that this crawler looks for in a robots.txt. [`TestedAgent::followed_token`]
//! finds the group of a robots.txt that the crawler follows.

use super::{Failure, Result};
use crate::crawlers::{Claim, Crawler, Registry, RobotsObedience, SiteMarkers, self_given_name};
use crate::robots::{DialectRules, GroupMatch};
use Claim::*;

/// The crawler of one `--agent`.
pub struct TestedAgent<'a> {
    /// The value of the flag.
    pub written: &'a str,
    /// The crawler of the registry; `None` for an unlisted one, and with `--literal`.
    pub crawler: Option<&'a Crawler>,
    /// Whether the value is a whole user agent.
    pub is_user_agent: bool,
    /// Whether that is a browser's or app's. Rules do not apply to visitors.
    pub is_person: bool,
    /// The tokens that the crawler looks for in the file, the most specific first.
    tokens: Vec<&'a str>,
    binds: RobotsObedience,
}

impl<'a> TestedAgent<'a> {
    /// A crawler that obeys exactly this token or `*`, whatever the registry knows about it.
    pub fn from_token(written: &'a str) -> TestedAgent<'a> {
        TestedAgent {
            written,
            crawler: None,
            is_user_agent: false,
            is_person: false,
            tokens: vec![written],
            binds: RobotsObedience::Unknown,
        }
    }

    /// Parses `--agent`: a token, id or name of the registry, another token, or a whole user agent.
    /// `named` are the tokens of the file that the registry does not know.
    ///
    /// # Errors
    /// The user agent is that of a bot or tool, and has no token.
    pub fn from_flag(
        written: &'a str,
        registry: &'a Registry,
        named: &'a SiteMarkers,
    ) -> Result<TestedAgent<'a>> {
        let found = registry.find(written);
        if found.is_none() && !written.contains([' ', '/', ';', '(']) {
            return Ok(TestedAgent::from_token(written));
        }
        let tested_agent = TestedAgent {
            is_user_agent: found.is_none(),
            ..TestedAgent::from_token(written)
        };
        let claim = match found {
            Some(index) => Known(index),
            None => registry.identify_on_site(written.as_bytes(), named),
        };
        let token = match claim {
            Known(index) => return Ok(tested_agent.with_crawler(registry.get(index))),
            Visitor => {
                return Ok(TestedAgent {
                    is_person: true,
                    ..tested_agent
                });
            }
            PolicyToken(index) => named.token(index),
            UnknownBot | Tool => self_given_name(written.as_bytes()),
        };
        let token = token.ok_or_else(|| {
            Failure::Usage(format!(
                "\"{written}\" names no crawler; give the token of one, like Googlebot"
            ))
        })?;
        Ok(TestedAgent {
            tokens: vec![token],
            ..tested_agent
        })
    }

    /// As a crawler of the registry. Without a token, its name is used.
    fn with_crawler(self, crawler: &'a Crawler) -> TestedAgent<'a> {
        let mut tokens: Vec<&str> = crawler.tokens.iter().map(String::as_str).collect();
        if tokens.is_empty() {
            tokens.push(&crawler.name);
        }
        TestedAgent {
            crawler: Some(crawler),
            tokens,
            binds: crawler.binds,
            ..self
        }
    }

    /// The name for messages: the value of the flag, or the first token of a user agent.
    pub fn display_name(&self) -> &'a str {
        if self.is_user_agent {
            self.tokens[0]
        } else {
            self.written
        }
    }

    /// Whether a token is the crawler's first one, and not that of another crawler whose group it
    /// follows.
    pub fn is_own_token(&self, token: &str) -> bool {
        self.tokens[0].eq_ignore_ascii_case(token)
    }

    /// Whether the operator says that the crawler ignores robots.txt.
    pub fn ignores_robots_txt(&self) -> bool {
        self.binds == RobotsObedience::Never
    }

    /// The token whose rules the crawler follows, and its binding: the first of its tokens that has a
    /// group, else its first token, bound by the group for `*` or by nothing. `None` for a visitor,
    /// and for a crawler without a group that does not obey `*`.
    pub fn followed_token(&self, reading: &DialectRules) -> Option<(&'a str, GroupMatch)> {
        if self.is_person {
            return None;
        }
        for token in &self.tokens {
            if reading.groups_for(token.as_bytes()).0 == GroupMatch::Named {
                return Some((token, GroupMatch::Named));
            }
        }
        let token = self.tokens[0];
        let group = reading.groups_for(token.as_bytes()).0;
        self.binds.follows_star().then_some((token, group))
    }
}
