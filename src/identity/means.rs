//! [`KnownMeans`]: how each crawler of the registry can be proven, ready for look-ups: by lists of
//! networks, host names and keys. The registry has them as texts with remarks (`google.com (host
//! must start google-proxy-)`), and only this file reads these.

use crate::crawlers::{Crawler, CrawlerIndex, Registry};

/// A remark of the registry on a host that may confirm a crawler and never refute it.
const CONFIRMS_ONLY: &str = "absence proves nothing";
/// The mark of a record that quotes the operator's own page. Facts of other records may confirm a
/// crawler and never refute it.
const FROM_THE_OPERATOR: &str = "[D]";

/// Where the keys of an agent are, below its origin.
const DIRECTORY: &str = "/.well-known/http-message-signatures-directory";

/// Whether a URL is that of a key directory; else it is that of a list of networks.
pub fn is_directory(url: &str) -> bool {
    url.ends_with(DIRECTORY)
}

/// Place of a list in [`KnownMeans::lists`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListIndex(pub u16);

/// The host names of a crawler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern {
    /// The end of the name, on the boundary of a label.
    pub suffix: String,
    /// The beginning of the name, where the operator says it.
    pub start: String,
}

impl HostPattern {
    /// Whether a name ends with the suffix, at the boundary of a label, and begins as the pattern
    /// says. Compares without case and without the dot of the root.
    pub fn matches(&self, name: &str) -> bool {
        let name = name.strip_suffix('.').unwrap_or(name).as_bytes();
        let suffix = self.suffix.as_bytes();
        let Some((before, end)) = name
            .len()
            .checked_sub(suffix.len())
            .and_then(|at| name.split_at_checked(at))
        else {
            return false;
        };
        let starts = name
            .get(..self.start.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(self.start.as_bytes()));
        end.eq_ignore_ascii_case(suffix) && matches!(before.last(), None | Some(b'.')) && starts
    }
}

/// How one crawler can be proven.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Means {
    /// Its published lists, as far as they can be read.
    pub lists: Vec<ListIndex>,
    /// Whether these are all that its operator publishes, by the operator's own word.
    pub lists_are_whole: bool,
    /// Whether its operator publishes addresses in a form that is not read here.
    pub has_other_lists: bool,
    /// The names of its hosts.
    pub hosts: Vec<HostPattern>,
    /// Whether an address without such a name is not the crawler's, by the operator's own word.
    pub hosts_are_whole: bool,
    /// Whether its operator documents only the name, and not that the name leads back to the
    /// address.
    pub forward_undocumented: bool,
    /// The agent that signs its requests.
    pub signer: Option<Signer>,
}

/// The agent that signs a crawler's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signer {
    /// Its origin, without a slash at the end: `https://chatgpt.com`.
    pub origin: String,
    /// Its key directory.
    pub directory: ListIndex,
}

impl Means {
    /// Reads the means of one crawler. `list` gives the place of a URL among all lists. What the
    /// registry does not quote from the operator's own page may confirm the crawler and never
    /// refute it.
    fn of(crawler: &Crawler, mut list: impl FnMut(&str) -> ListIndex) -> Means {
        let by_operator = crawler.source.starts_with(FROM_THE_OPERATOR);
        let urls: Vec<(String, bool)> = crawler
            .ips
            .iter()
            .filter_map(|written| list_url(written))
            .collect();
        let are_whole = urls.iter().all(|(_, is_whole)| *is_whole);
        let hosts: Vec<HostPattern> = crawler
            .rdns
            .iter()
            .filter_map(|written| host_pattern(written))
            .collect();
        let confirms_only = crawler
            .rdns
            .iter()
            .any(|written| written.contains(CONFIRMS_ONLY));
        Means {
            lists: urls.iter().map(|(url, _)| list(url)).collect(),
            lists_are_whole: by_operator
                && are_whole
                && !urls.is_empty()
                && urls.len() == crawler.ips.len(),
            has_other_lists: urls.len() < crawler.ips.len(),
            hosts_are_whole: by_operator
                && !confirms_only
                && !hosts.is_empty()
                && hosts.len() == crawler.rdns.len(),
            hosts,
            forward_undocumented: crawler.forward_undocumented,
            signer: crawler
                .signs
                .as_deref()
                .and_then(signer_origin)
                .map(|origin| {
                    let directory = list(&format!("{origin}{DIRECTORY}"));
                    Signer {
                        origin: origin.to_owned(),
                        directory,
                    }
                }),
        }
    }

    /// Whether a name is one of the crawler's hosts.
    pub fn has_host(&self, name: &str) -> bool {
        self.hosts.iter().any(|host| host.matches(name))
    }
}

/// How every crawler of a registry can be proven.
#[derive(Debug)]
pub struct KnownMeans {
    urls: Vec<String>,
    by_crawler: Vec<Means>,
}

impl KnownMeans {
    /// Reads how each crawler of the registry can be proven. A list that several crawlers share has
    /// one place.
    pub fn of(registry: &Registry) -> KnownMeans {
        let mut urls: Vec<String> = Vec::new();
        let by_crawler = registry
            .crawlers()
            .iter()
            .map(|crawler| {
                Means::of(crawler, |url| {
                    let known = urls.iter().position(|known| known == url);
                    let place = known.unwrap_or_else(|| {
                        urls.push(url.to_owned());
                        urls.len() - 1
                    });
                    ListIndex(place as u16)
                })
            })
            .collect();
        KnownMeans { urls, by_crawler }
    }

    /// The means of a crawler of this registry.
    pub fn get(&self, crawler: CrawlerIndex) -> Option<&Means> {
        self.by_crawler.get(usize::from(crawler.0))
    }

    /// The lists and key directories by their URLs.
    pub fn lists(&self) -> impl Iterator<Item = (ListIndex, &str)> {
        (0..)
            .map(ListIndex)
            .zip(self.urls.iter().map(String::as_str))
    }

    /// Whether a name is a host of any crawler: no other name is looked up.
    pub fn is_host_of_any(&self, name: &str) -> bool {
        self.by_crawler.iter().any(|means| means.has_host(name))
    }

    /// Whether a name is a host of a crawler whose operator documents no forward record.
    pub fn may_lack_forward(&self, name: &str) -> bool {
        self.by_crawler
            .iter()
            .any(|means| means.forward_undocumented && means.has_host(name))
    }
}

/// The URL of a list that can be read, always as https, and whether an address outside of the list
/// is not the crawler's. Pages may show a part of the list, and geofeeds have the networks of a
/// whole company: these only confirm. `None` for any other remark in brackets: it speaks of pages
/// without the keys of a list, or of lists with networks of others.
fn list_url(written: &str) -> Option<(String, bool)> {
    let (url, remark) = written.split_once(' ').unwrap_or((written, ""));
    let is_whole = match remark.trim() {
        "" | "(plain text)" | "(own shape)" => true,
        "(CSV, whole network)" => false,
        page if page.starts_with("(HTML") => false,
        _ => return None,
    };
    // Over http anybody on the way could write the list.
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"))?;
    Some((format!("https://{rest}"), is_whole))
}

/// The origin in a text such as `https://chatgpt.com (quoted-string form)`; `None` unless it is an
/// https URL without a path.
fn signer_origin(written: &str) -> Option<&str> {
    let origin = written
        .split(' ')
        .next()
        .unwrap_or_default()
        .trim_end_matches('/');
    let host = origin.strip_prefix("https://")?;
    (!host.is_empty() && !host.contains('/')).then_some(origin)
}

/// The pattern in a text such as `google.com (host must start google-proxy-)` or
/// `search.you.com (host youbot-*)`. `None` for another remark, or for what is no name of a host.
fn host_pattern(written: &str) -> Option<HostPattern> {
    let (suffix, remark) = written.split_once(' ').unwrap_or((written, ""));
    let remark = remark.trim().trim_start_matches('(').trim_end_matches(')');
    let start = match remark
        .strip_prefix("host must start ")
        .or_else(|| remark.strip_prefix("host "))
    {
        Some(start) => start.trim_end_matches('*'),
        None if remark.is_empty() || remark.contains(CONFIRMS_ONLY) => "",
        None => return None,
    };
    let is_name = suffix.contains('.')
        && suffix
            .bytes()
            .all(|octet| octet.is_ascii_alphanumeric() || b".-".contains(&octet));
    is_name.then(|| HostPattern {
        suffix: suffix.to_owned(),
        start: start.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::{KnownMeans, host_pattern, list_url};
    use crate::crawlers::Registry;

    fn means(id: &str) -> super::Means {
        let registry = Registry::builtin();
        KnownMeans::of(registry)
            .get(registry.find(id).expect(id))
            .expect(id)
            .clone()
    }

    #[test]
    fn every_fact_of_the_registry_is_read_or_known_to_be_of_another_shape() {
        for crawler in Registry::builtin().crawlers() {
            for written in &crawler.rdns {
                assert!(host_pattern(written).is_some(), "{}: {written}", crawler.id);
            }
            for written in &crawler.ips {
                let read = list_url(written);
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
        let known = KnownMeans::of(Registry::builtin());
        assert!(known.lists().count() > 30 && known.lists().all(|(_, url)| !url.contains(' ')));
    }

    #[test]
    fn agents_that_sign_have_a_key_directory() {
        let registry = Registry::builtin();
        let known = KnownMeans::of(registry);
        for crawler in registry
            .crawlers()
            .iter()
            .filter(|crawler| crawler.signs.is_some())
        {
            let signer = means(&crawler.id)
                .signer
                .unwrap_or_else(|| panic!("{}", crawler.id));
            let (_, url) = known
                .lists()
                .find(|(list, _)| *list == signer.directory)
                .expect("a directory");
            assert!(
                url.starts_with(&signer.origin) && super::is_directory(url),
                "{url}"
            );
        }
        assert_eq!(means("googlebot").signer, None);
    }

    #[test]
    fn names_of_hosts_end_on_the_boundary_of_a_label() {
        let googlebot = means("googlebot");
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
        let fetcher = means("feedfetcher-google");
        assert!(fetcher.has_host("google-proxy-66-249-81-1.google.com"));
        assert!(
            !fetcher.has_host("mail.google.com")
                && !fetcher.has_host("google-proxy-1.google.com.evil.example")
        );
    }

    #[test]
    fn forward_is_undocumented_only_where_no_list_is_published() {
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
        let known = KnownMeans::of(registry);
        assert!(known.may_lack_forward("baiduspider-1-2-3-4.crawl.baidu.com"));
        assert!(
            !known.may_lack_forward("x.googlebot.com")
                && !known.may_lack_forward("1.spider.yandex.com")
        );
    }

    #[test]
    fn only_what_the_operator_says_in_full_may_refute() {
        assert!(means("googlebot").hosts_are_whole && means("googlebot").lists_are_whole);
        assert!(means("bingbot").lists_are_whole);
        for confirmed_only in ["bytespider", "twitterbot", "linkedinbot"] {
            let means = means(confirmed_only);
            assert!(
                !means.hosts.is_empty() && !means.hosts_are_whole,
                "{confirmed_only}"
            );
        }
        let amazonbot = means("amazonbot");
        assert!(
            !amazonbot.has_other_lists && amazonbot.lists.len() == 1 && !amazonbot.lists_are_whole
        );
        let meta = means("meta-externalagent");
        assert!(meta.lists.len() == 1 && !meta.lists_are_whole);
        assert_eq!(
            list_url("http://a.example/feed (CSV, whole network)"),
            Some(("https://a.example/feed".into(), false))
        );
        let kagibot = means("kagibot");
        assert!(kagibot.has_other_lists && kagibot.lists.is_empty());
    }
}
