//! The dashboard's page of one site. It shows what crawlers did on the site, and the findings about
//! the site's policy. It also shows the served robots.txt, each line with a link to the policy line
//! that it comes from. Then it shows the tests of the policy, and the whole policy file. The lines
//! of the policy file are numbered, so that other pages can link to a line.

use super::layout::{PageLayout, PageLink, site_link};
use super::overview::live_report;
use super::{Dashboard, PageError, PageResult};
use crate::admin::query::QueryParameters;
use crate::policy::Site;
use crate::policy::site::RuleSource;
use crate::report::ReportFragment;
use crate::sites::SiteStatus;
use crate::verdict::source_location;
use askama::Template;

use RuleSource::*;

#[derive(Template)]
#[template(path = "site.html")]
struct SitePage<'a> {
    layout: PageLayout,
    status: SiteStatus,
    choices: Vec<PageLink>,
    content: ReportFragment<'a>,
    robots_txt: Vec<ServedRobotsLine>,
    /// The site, where it is in force.
    site: Option<&'a Site>,
}

struct ServedRobotsLine {
    text: String,
    source: String,
    /// The line of the policy.
    line: Option<u32>,
}

impl Dashboard {
    /// The page of the site `name`, about the last `days` (30 by default). Not found if the site is
    /// not in force, has no policy file, and has no requests in the history.
    pub(super) fn site_page(&self, query: &str) -> PageResult {
        let query = QueryParameters::parse(query, &["name", "days"])?;
        let name = query.get("name").unwrap_or_default();
        let period = super::query_period(&query, self.now())?;
        let report = live_report(&self.operations, period, name, "")?;
        let snapshot = self.operations.instance.sites.snapshot();
        let entry = snapshot.entry_by_name(name);
        let status = self
            .operations
            .status()
            .policies
            .sites
            .into_iter()
            .find(|site| site.site == name);
        if name.is_empty() || (entry.is_none() && status.is_none() && report.crawlers.is_empty()) {
            return Err(PageError::NotFound(format!(
                "there is no site {name}, and there is no history of it in this period"
            )));
        }
        let site = entry.map(|entry| &*entry.site);
        let status = status.unwrap_or_default();
        let page = SitePage {
            layout: self.page_layout(name, "/site", report.instances.clone()),
            choices: super::period_links(&period, &site_link(name)),
            content: ReportFragment {
                report: &report,
                has_links: true,
                heading_level: 2,
            },
            robots_txt: site.map(served_lines).unwrap_or_default(),
            site,
            status,
        };
        Ok(page.render()?)
    }
}

/// The lines of robots.txt as served, with their places in the policy. Rules, Crawl-delays and the
/// first `User-agent` line of a group have a place. The n-th rule of the n-th group in the text is
/// that of the compiled document; any other line has no place.
fn served_lines(site: &Site) -> Vec<ServedRobotsLine> {
    let text = String::from_utf8_lossy(&site.robots_txt.body).into_owned();
    let mut group = None::<usize>;
    let mut rule = 0;
    let mut is_in_agents = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut source = None;
        if line.starts_with("User-agent:") {
            if !is_in_agents {
                group = Some(group.map_or(0, |group| group + 1));
                rule = 0;
                source = group.and_then(|group| site.group_sources.get(group));
            }
            is_in_agents = true;
        } else if let Some(group) = group {
            is_in_agents = false;
            if line.starts_with("Crawl-delay:") {
                source = site.delay_sources.get(group).and_then(Option::as_ref);
            }
            let expected = site
                .document
                .groups
                .get(group)
                .and_then(|group| group.rules.get(rule));
            if expected.is_some_and(|expected| expected.to_string().trim_end() == line.trim_end()) {
                source = site
                    .rule_sources
                    .get(group)
                    .and_then(|sources| sources.get(rule));
                rule += 1;
            }
        }
        let (source, line_of_policy) = source
            .map(|source| source_place_words(source, site))
            .unwrap_or_default();
        lines.push(ServedRobotsLine {
            text: line.to_owned(),
            source,
            line: line_of_policy,
        });
    }
    lines
}

/// The source of a rule in words, and its line if it is in the policy file.
fn source_place_words(source: &RuleSource, site: &Site) -> (String, Option<u32>) {
    let what = match source {
        Purpose(_) => "policy: purposes",
        Staging => return ("environment: staging".to_owned(), None),
        Policy(_) | Origin(_) => "policy",
    };
    match source_location(source, site) {
        (_, Some(span)) => (format!("{what}, line {}", span.line), Some(span.line)),
        (place, None) => (place, None),
    }
}

#[cfg(test)]
mod tests {
    use super::served_lines;
    use crate::crawlers::Registry;
    use crate::verdict::load_site;
    use crate::yaml::SourceFile;

    #[test]
    fn rules_and_crawl_delays_have_their_line_of_the_policy() {
        let text = "hosts: [shop.example]\nrobots:\n  origin: replace\n  groups:\n    - agents: [\"*\"]\n      \
                    disallow: [/cart/]\n    - agents: [bingbot]\n      disallow: [/b/]\n      crawl_delay: 10s\n";
        let source = SourceFile {
            name: "shop.yaml".into(),
            text: text.into(),
        };
        let (site, findings) = load_site("shop", &source, Registry::builtin());
        let site = site.unwrap_or_else(|| panic!("{findings:?}"));
        let lines = served_lines(&site);
        let line_of = |begin: &str| {
            let found = lines.iter().find(|line| line.text.starts_with(begin));
            found.unwrap_or_else(|| panic!("no {begin}")).line
        };
        for (begin, number) in [
            ("User-agent: bingbot", 7),
            ("Disallow: /cart/", 6),
            ("Disallow: /b/", 8),
            ("Crawl-delay: 10", 9),
        ] {
            assert_eq!(line_of(begin), Some(number), "{begin}");
        }
    }
}
