//! The tester: a form that asks what would become of a request, here and now. Asking leaves no traces.

use super::format::encoded;
use super::layout::{Layout, line_link, site_link};
use super::{Dashboard, PageError};
use crate::admin::LiveQuestion;
use crate::admin::query::Query;
use crate::crawlers::Registry;
use crate::logs::printable;
use askama::Template;
use serde_json::Value;
use std::net::IpAddr;

#[derive(Template)]
#[template(path = "tester.html")]
struct TesterPage {
    layout: Layout,
    host: String,
    path: String,
    agent: String,
    ip: String,
    content_type: String,
    hosts: Vec<String>,
    agents: Vec<String>,
    mistake: String,
    answer: Option<Answer>,
}

struct Answer {
    rows: Vec<(&'static str, String, Option<String>)>,
    text: String,
}

impl Dashboard {
    pub(super) fn tester(&self, query: &str) -> Result<String, PageError> {
        // A form sends its empty fields, too.
        let given: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let filled = given.iter().filter(|(_, value)| !value.is_empty());
        let filled: Vec<String> = filled.map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
        let filled = filled.join("&");
        let query = Query::read(&filled, &["host", "path", "agent", "ip", "type"])?;
        let text = |name| query.get(name).unwrap_or_default().to_owned();
        let (host, path, agent, ip, content_type) =
            (text("host"), text("path"), text("agent"), text("ip"), text("type"));
        let is_asked = !given.is_empty();
        let address = (!ip.is_empty()).then(|| ip.parse::<IpAddr>());
        let mistake = match &address {
            _ if !is_asked => "",
            _ if host.is_empty() => "Give the host of the request.",
            _ if !path.starts_with('/') => "A path begins with /.",
            _ if agent.is_empty() => "Give a user agent, or the name of a crawler.",
            Some(Err(_)) => "The address is no IP address.",
            _ => "",
        };
        let question = (is_asked && mistake.is_empty()).then(|| LiveQuestion {
            host: host.clone(),
            target: path.clone(),
            user_agent: agent.clone(),
            ip: address.and_then(Result::ok),
            content_type: (!content_type.is_empty()).then(|| content_type.clone()),
            status: 200,
            origin_tags: Vec::new(),
            colour: false,
        });
        let page = TesterPage {
            layout: self.layout("Tester", "/tester"),
            hosts: self.hosts(),
            agents: self.agents(),
            mistake: mistake.to_owned(),
            answer: question.map(|question| self.answer_to(&question)),
            host: if is_asked { host } else { self.hosts().into_iter().next().unwrap_or_default() },
            path: if is_asked { path } else { "/".to_owned() },
            agent,
            ip,
            content_type,
        };
        Ok(page.render()?)
    }

    fn answer_to(&self, question: &LiveQuestion) -> Answer {
        let answer = self.operations.explain(question);
        let of = |pointer: &str| {
            answer.explanation.pointer(pointer).and_then(Value::as_str).map(|text| printable(text.as_bytes()))
        };
        let list = |pointer: &str| {
            let lines = answer.explanation.pointer(pointer).and_then(Value::as_array);
            let lines = lines
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(|text| printable(text.as_bytes()))
                .collect::<Vec<_>>();
            (!lines.is_empty()).then(|| lines.join("; "))
        };
        let site = of("/site");
        let rule = of("/rule/kind").zip(of("/rule/pattern")).map(|(kind, pattern)| format!("{kind} {pattern}"));
        let source = of("/rule/source");
        let line = site.as_deref().zip(source.as_deref()).and_then(|(site, source)| line_link(site, source));
        let words = |text: Option<String>| text.map(|text| text.replace('_', " "));
        let rows = [
            ("Site", site.clone(), site.as_deref().map(site_link)),
            ("Crawler", of("/crawler/name"), None),
            ("Verdict", words(of("/verdict")), None),
            ("Kind", words(of("/kind")), None),
            ("Rule", rule, line.clone()),
            ("Where the policy says so", source, line),
            ("What is done", words(of("/action/kind")), None),
            ("What enforcement would do", words(of("/action/would/kind")), None),
            ("Identity", words(of("/identity")), None),
            ("X-Robots-Tag", list("/x_robots_tag"), None),
            ("Signals", list("/signals"), None),
        ];
        let rows = rows.into_iter().filter_map(|(name, value, link)| Some((name, value?, link))).collect();
        Answer { rows, text: answer.text }
    }

    /// Hosts that may be asked for.
    fn hosts(&self) -> Vec<String> {
        let sites = self.operations.status().policies.sites;
        let hosts = sites.into_iter().flat_map(|site| site.hosts);
        hosts.map(|host| host.strip_prefix("*.").map_or(host.clone(), |name| format!("www.{name}"))).take(50).collect()
    }

    /// Names of crawlers.
    fn agents(&self) -> Vec<String> {
        let crawlers = Registry::builtin().crawlers().iter();
        crawlers.filter_map(|crawler| crawler.tokens.first()).cloned().collect()
    }
}
