//! [`RegistryProofMeans`] says how each crawler of the registry (the table of known crawlers) can
//! be verified: by published lists of networks, by host names, or by signing keys. The registry has
//! these as texts with remarks (`google.com (host must start google-proxy-)`), which this module
//! parses.

use crate::crawlers::{
    Crawler, CrawlerIndex, Registry, ends_with_ignore_case, starts_with_ignore_case,
};
use crate::yaml::strip_http_scheme;

/// The remark on a host that may confirm a crawler and never refute it.
const CONFIRMS_ONLY_REMARK: &str = "absence proves nothing";
/// The mark of an entry that quotes the operator's own page. Other entries may confirm a crawler and
/// never refute it.
const OPERATOR_SOURCE_MARK: &str = "[D]";

/// The path of an agent's key directory.
const DIRECTORY_PATH: &str = "/.well-known/http-message-signatures-directory";

/// Whether a URL is a key directory; else it is a list of networks.
pub fn is_directory(url: &str) -> bool {
    url.ends_with(DIRECTORY_PATH)
}

/// The index of a list in [`RegistryProofMeans::urls`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListId(pub u16);

/// A pattern for the host names of a crawler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern {
    /// The name ends with it, at the boundary of a label.
    pub suffix: String,
    /// The name begins with it; empty if the operator does not say.
    pub prefix: String,
}

impl HostPattern {
    /// Ignores case, and a dot at the end of the name.
    pub fn matches(&self, name: &str) -> bool {
        let name = name.strip_suffix('.').unwrap_or(name).as_bytes();
        ends_with_ignore_case(name, self.suffix.as_bytes())
            && starts_with_ignore_case(name, self.prefix.as_bytes())
            && matches!(name[..name.len() - self.suffix.len()], [] | [.., b'.'])
    }
}

/// How one crawler can be proven.
#[derive(Clone)]
pub struct ProofMeans {
    /// The published lists that crawlgate can read.
    pub lists: Vec<ListId>,
    /// Whether the operator says that these are all its networks.
    pub are_lists_complete: bool,
    /// Whether the operator publishes addresses in a form that crawlgate cannot read.
    pub has_unreadable_lists: bool,
    /// The patterns of its host names.
    pub hosts: Vec<HostPattern>,
    /// Whether the operator says that all its addresses have such names.
    pub are_hosts_complete: bool,
    /// Whether the operator documents the names, but not that they resolve to the address.
    pub forward_undocumented: bool,
    /// The agent that signs its requests.
    pub signer: Option<SigningAgent>,
}

/// The agent that signs a crawler's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningAgent {
    /// Without a slash at the end: `https://chatgpt.com`.
    pub origin: String,
    pub directory: ListId,
}

impl ProofMeans {
    /// Parses the entry of one crawler. `list_index` returns the index of a URL among all lists.
    fn from_crawler(crawler: &Crawler, mut list_index: impl FnMut(&str) -> ListId) -> ProofMeans {
        let by_operator = crawler.source.starts_with(OPERATOR_SOURCE_MARK);
        let urls: Vec<(String, bool)> = crawler
            .ips
            .iter()
            .filter_map(|written| parse_list_url(written))
            .collect();
        let are_whole = urls.iter().all(|(_, is_whole)| *is_whole);
        let hosts: Vec<HostPattern> = crawler
            .rdns
            .iter()
            .filter_map(|written| parse_host_pattern(written))
            .collect();
        let confirms_only = crawler
            .rdns
            .iter()
            .any(|written| written.contains(CONFIRMS_ONLY_REMARK));
        ProofMeans {
            lists: urls.iter().map(|(url, _)| list_index(url)).collect(),
            are_lists_complete: by_operator
                && are_whole
                && !urls.is_empty()
                && urls.len() == crawler.ips.len(),
            has_unreadable_lists: urls.len() < crawler.ips.len(),
            are_hosts_complete: by_operator
                && !confirms_only
                && !hosts.is_empty()
                && hosts.len() == crawler.rdns.len(),
            hosts,
            forward_undocumented: crawler.forward_undocumented,
            signer: crawler
                .signs
                .as_deref()
                .and_then(parse_signer_origin)
                .map(|origin| {
                    let directory = list_index(&format!("{origin}{DIRECTORY_PATH}"));
                    SigningAgent {
                        origin: origin.to_owned(),
                        directory,
                    }
                }),
        }
    }

    /// Whether a name is a host of the crawler.
    pub fn has_host(&self, name: &str) -> bool {
        self.hosts.iter().any(|host| host.matches(name))
    }
}

/// How every crawler of a registry can be proven.
pub struct RegistryProofMeans {
    /// The URLs of all lists and key directories, by [`ListId`].
    pub urls: Vec<String>,
    by_crawler: Vec<ProofMeans>,
}

impl RegistryProofMeans {
    /// Parses the whole registry. Crawlers may share a list.
    pub fn from_registry(registry: &Registry) -> RegistryProofMeans {
        let mut urls: Vec<String> = Vec::new();
        let by_crawler = registry
            .crawlers()
            .iter()
            .map(|crawler| {
                ProofMeans::from_crawler(crawler, |url| {
                    let known = urls.iter().position(|known| known == url);
                    let place = known.unwrap_or_else(|| {
                        urls.push(url.to_owned());
                        urls.len() - 1
                    });
                    ListId(place as u16)
                })
            })
            .collect();
        RegistryProofMeans { urls, by_crawler }
    }

    /// How a crawler of this registry can be proven.
    pub fn get(&self, crawler: CrawlerIndex) -> Option<&ProofMeans> {
        self.by_crawler.get(usize::from(crawler.0))
    }

    /// Whether a name is a host of any crawler. crawlgate resolves no other names.
    pub fn is_host_of_any(&self, name: &str) -> bool {
        self.by_crawler.iter().any(|means| means.has_host(name))
    }

    /// Whether a name is a host of a crawler whose operator documents no forward record.
    pub fn may_lack_forward_record(&self, name: &str) -> bool {
        self.by_crawler
            .iter()
            .any(|means| means.forward_undocumented && means.has_host(name))
    }
}

/// The URL of a readable list, as https, and whether the list is complete: an address outside is not
/// the crawler's. Pages and geofeeds are not: they show a part, or the networks of a whole company.
/// `None` for other remarks: these lists cannot be read, or have networks of others.
fn parse_list_url(written: &str) -> Option<(String, bool)> {
    let (url, remark) = written.split_once(' ').unwrap_or((written, ""));
    let is_whole = match remark.trim() {
        "" | "(plain text)" | "(own shape)" => true,
        "(CSV, whole network)" => false,
        page if page.starts_with("(HTML") => false,
        _ => return None,
    };
    // Over http anybody on the way could write the list.
    let rest = strip_http_scheme(url)?;
    Some((format!("https://{rest}"), is_whole))
}

/// The origin in `https://chatgpt.com (quoted-string form)`; `None` unless it is an https URL
/// without a path.
fn parse_signer_origin(written: &str) -> Option<&str> {
    let origin = written
        .split(' ')
        .next()
        .unwrap_or_default()
        .trim_end_matches('/');
    let host = origin.strip_prefix("https://")?;
    (!host.is_empty() && !host.contains('/')).then_some(origin)
}

/// The pattern in `google.com (host must start google-proxy-)` or `search.you.com (host youbot-*)`.
/// `None` for other remarks, or if the text is no host name.
fn parse_host_pattern(written: &str) -> Option<HostPattern> {
    let (suffix, remark) = written.split_once(' ').unwrap_or((written, ""));
    let remark = remark.trim().trim_start_matches('(').trim_end_matches(')');
    let prefix = match remark
        .strip_prefix("host must start ")
        .or_else(|| remark.strip_prefix("host "))
    {
        Some(prefix) => prefix.trim_end_matches('*'),
        None if remark.is_empty() || remark.contains(CONFIRMS_ONLY_REMARK) => "",
        None => return None,
    };
    let is_name = suffix.contains('.')
        && suffix
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
    is_name.then(|| HostPattern {
        suffix: suffix.to_owned(),
        prefix: prefix.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::{RegistryProofMeans, parse_host_pattern, parse_list_url};
    use crate::crawlers::Registry;

    fn means_of(id: &str) -> super::ProofMeans {
        let registry = Registry::builtin();
        RegistryProofMeans::from_registry(registry)
            .get(registry.find(id).expect(id))
            .expect(id)
            .clone()
    }

    #[test]
    fn registry_entries_are_readable_or_known_exceptions() {
        for crawler in Registry::builtin().crawlers() {
            for written in &crawler.rdns {
                assert!(
                    parse_host_pattern(written).is_some(),
                    "{}: {written}",
                    crawler.id
                );
            }
            for written in &crawler.ips {
                let read = parse_list_url(written);
                let known: &[&str] = &[
                    "kagi.com",
                    "ip-ranges.amazonaws.com",
                    "148.64.56.0",
                    "censys.com",
                    "detectify.com",
                ];
                let is_unread = known.iter().any(|unread| written.contains(unread));
                assert_eq!(read.is_none(), is_unread, "{}: {written}", crawler.id);
            }
        }
        let known = RegistryProofMeans::from_registry(Registry::builtin());
        assert!(known.urls.len() > 30 && known.urls.iter().all(|url| !url.contains(' ')));
    }

    #[test]
    fn signing_agents_have_a_key_directory() {
        let registry = Registry::builtin();
        let known = RegistryProofMeans::from_registry(registry);
        for crawler in registry
            .crawlers()
            .iter()
            .filter(|crawler| crawler.signs.is_some())
        {
            let signer = means_of(&crawler.id)
                .signer
                .unwrap_or_else(|| panic!("{}", crawler.id));
            let url = &known.urls[usize::from(signer.directory.0)];
            assert!(
                url.starts_with(&signer.origin) && super::is_directory(url),
                "{url}"
            );
        }
        assert_eq!(means_of("googlebot").signer, None);
    }

    #[test]
    fn host_names_match_at_label_boundaries() {
        let googlebot = means_of("googlebot");
        for own in [
            "crawl-66-249-66-1.googlebot.com",
            "GEO-crawl.geo.GoogleBot.com.",
            "googlebot.com",
        ] {
            assert!(googlebot.has_host(own), "{own}");
        }
        for foreign in [
            "googlebot.com.evil.example",
            "notgooglebot.com",
            "com",
            "",
            ".",
            "xgooglebot.com.",
        ] {
            assert!(!googlebot.has_host(foreign), "{foreign}");
        }
        let fetcher = means_of("feedfetcher-google");
        assert!(fetcher.has_host("google-proxy-66-249-81-1.google.com"));
        assert!(
            !fetcher.has_host("mail.google.com")
                && !fetcher.has_host("google-proxy-1.google.com.evil.example")
        );
    }

    #[test]
    fn forward_is_undocumented_only_without_published_list() {
        let registry = Registry::builtin();
        let undocumented = registry
            .crawlers()
            .iter()
            .filter(|crawler| crawler.forward_undocumented);
        let ids: Vec<&str> = undocumented
            .clone()
            .map(|crawler| crawler.id.as_str())
            .collect();
        assert_eq!(
            ids,
            [
                "baiduspider",
                "yeti",
                "ads-naver",
                "blueno",
                "sogou",
                "blexbot",
                "barkrowler"
            ]
        );
        assert!(
            undocumented
                .clone()
                .all(|crawler| crawler.ips.is_empty() && !crawler.rdns.is_empty())
        );
        let known = RegistryProofMeans::from_registry(registry);
        assert!(known.may_lack_forward_record("baiduspider-1-2-3-4.crawl.baidu.com"));
        assert!(
            !known.may_lack_forward_record("x.googlebot.com")
                && !known.may_lack_forward_record("1.spider.yandex.com")
        );
    }

    #[test]
    fn only_complete_operator_statements_may_refute() {
        assert!(
            means_of("googlebot").are_hosts_complete && means_of("googlebot").are_lists_complete
        );
        assert!(means_of("bingbot").are_lists_complete);
        for confirmed_only in ["bytespider", "twitterbot", "linkedinbot"] {
            let means = means_of(confirmed_only);
            assert!(
                !means.hosts.is_empty() && !means.are_hosts_complete,
                "{confirmed_only}"
            );
        }
        let amazonbot = means_of("amazonbot");
        assert!(
            !amazonbot.has_unreadable_lists
                && amazonbot.lists.len() == 1
                && !amazonbot.are_lists_complete
        );
        let meta = means_of("meta-externalagent");
        assert!(meta.lists.len() == 1 && !meta.are_lists_complete);
        assert_eq!(
            parse_list_url("http://a.example/feed (CSV, whole network)"),
            Some(("https://a.example/feed".into(), false))
        );
        let kagibot = means_of("kagibot");
        assert!(kagibot.has_unreadable_lists && kagibot.lists.is_empty());
    }
}
