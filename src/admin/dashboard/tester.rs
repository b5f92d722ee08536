//! The page of the tester: a form that asks how crawlgate would treat a request now, and the answer with its reasons.
//! The question changes nothing and is not recorded.

use super::layout::{Layout, line_link, site_link};
use super::{Dashboard, Page};
use crate::admin::LiveQuestion;
use crate::admin::query::Query;
use crate::crawlers::Registry;
use askama::Template;
use serde_json::Value;
use std::net::IpAddr;

#[derive(Template)]
#[template(path = "tester.html")]
struct TesterPage<'a> {
    layout: Layout,
    query: Query<'a>,
    /// Whether the form was sent.
    is_asked: bool,
    hosts: Vec<String>,
    agents: Vec<String>,
    mistake: &'static str,
    answer: Option<Explained>,
}

/// The answer to a question.
struct Explained {
    rows: Vec<(&'static str, String, Option<String>)>,
    text: String,
}

impl Dashboard {
    pub(super) fn tester(&self, query: &str) -> Page {
        // A form sends its empty fields, too.
        let given: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let mut filled = form_urlencoded::Serializer::new(String::new());
        filled.extend_pairs(given.iter().filter(|(_, value)| !value.is_empty()));
        let filled = filled.finish();
        let query = Query::read(&filled, &["host", "path", "agent", "ip", "type"])?;
        let text = |name| query.get(name).unwrap_or_default();
        let is_asked = !given.is_empty();
        let address = query.get("ip").map(str::parse::<IpAddr>);
        let mistake = match &address {
            _ if !is_asked => "",
            _ if text("host").is_empty() => "Give the host of the request.",
            _ if !text("path").starts_with('/') => "A path begins with /.",
            _ if text("agent").is_empty() => "Give a user agent, or the name of a crawler.",
            Some(Err(_)) => "The address is no IP address.",
            _ => "",
        };
        let question = (is_asked && mistake.is_empty()).then(|| LiveQuestion {
            host: text("host").to_owned(),
            target: text("path").to_owned(),
            user_agent: text("agent").to_owned(),
            ip: address.and_then(Result::ok),
            content_type: query.get("type").map(str::to_owned),
            status: 200,
            origin_tags: Vec::new(),
            colour: false,
        });
        let page = TesterPage {
            layout: self.layout("Tester", "/tester"),
            hosts: self.hosts(),
            agents: self.agents(),
            mistake,
            answer: question.map(|question| self.answer_to(&question)),
            is_asked,
            query,
        };
        Ok(page.render()?)
    }

    fn answer_to(&self, question: &LiveQuestion) -> Explained {
        let answer = self.operations.explain(question);
        let shown = |value: &Value| value.as_str().map(|text| crate::printable::printable(text.as_bytes()));
        let of = |pointer: &str| answer.explanation.pointer(pointer).and_then(shown);
        let list = |pointer: &str| {
            let lines = answer.explanation.pointer(pointer)?.as_array()?.iter().filter_map(shown);
            Some(lines.collect::<Vec<_>>().join("; ")).filter(|lines| !lines.is_empty())
        };
        let site = of("/site");
        let rule = of("/rule/kind").zip(of("/rule/pattern")).map(|(kind, pattern)| format!("{kind} {pattern}"));
        let source = of("/rule/source");
        let line = site.as_deref().zip(source.as_deref()).and_then(|(site, source)| line_link(site, source));
        let words = |pointer: &str| of(pointer).map(|text| super::format::words(&text));
        let rows = [
            ("Site", site.clone(), site.as_deref().map(site_link)),
            ("Crawler", of("/crawler/name"), None),
            ("Verdict", words("/verdict"), None),
            ("Kind", words("/kind"), None),
            ("Rule", rule, line.clone()),
            ("Where the policy says so", source, line),
            ("What is done", words("/action/kind"), None),
            ("What enforcement would do", words("/action/would/kind"), None),
            ("Identity", words("/identity"), None),
            ("X-Robots-Tag", list("/x_robots_tag"), None),
            ("Signals", list("/signals"), None),
        ];
        let rows = rows.into_iter().filter_map(|(name, value, link)| Some((name, value?, link))).collect();
        Explained { rows, text: answer.text }
    }

    /// Hosts that the form proposes.
    fn hosts(&self) -> Vec<String> {
        let sites = self.operations.status().policies.sites;
        let hosts = sites.into_iter().flat_map(|site| site.hosts);
        hosts.map(|host| host.strip_prefix("*.").map_or(host.clone(), |name| format!("www.{name}"))).take(50).collect()
    }

    /// Names of crawlers that the form proposes.
    fn agents(&self) -> Vec<String> {
        let crawlers = Registry::builtin().crawlers().iter();
        crawlers.filter_map(|crawler| crawler.tokens.first()).cloned().collect()
    }
}
