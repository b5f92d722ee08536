//! Finds the AI assistant or search engine that sent a visitor to a site. [`ReferringServices`] is
//! the table of these services, read from `services.yaml`. The table finds the [`ReferringService`]
//! of a request by the `Referer` field, or by `utm_source` in the request target.
//!
//! A host in the table stands for itself and its subdomains: `google.evil.example` is no service.

use crate::yaml::{Diagnostics, MapFields, NodeValue, SourceFile};
use ahash::AHashMap;
use std::borrow::Cow;
use std::sync::LazyLock;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// The longest host name (RFC 1035, section 2.3.4).
const MAX_HOST_BYTES: usize = 253;

/// What a service does with what its crawlers read.
#[derive(PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum ReferringServiceKind {
    /// It answers in its own words.
    Assistant,
    /// It lists pages.
    Search,
}

named!(ReferringServiceKind);

/// A service that sends visitors.
pub struct ReferringService {
    /// Its stable name: a label in metrics and reports.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// An assistant or a search engine.
    pub kind: ReferringServiceKind,
    /// Who runs it, as the registry of crawlers names the operator.
    pub operator: String,
    hosts: Vec<String>,
    domains: Vec<String>,
    utm_sources: Vec<String>,
}

/// How a host name of the registry is matched.
#[derive(Clone, Copy)]
struct HostEntry {
    service: usize,
    /// Its subdomains are the service's, too.
    has_subdomains: bool,
}

/// All known services.
pub struct ReferringServices {
    services: Vec<ReferringService>,
    hosts: AHashMap<Box<[u8]>, HostEntry>,
    /// The lengths of these names modulo 64, by their first byte: most names of other hosts need no
    /// hash.
    host_lengths: [u64; 256],
    /// By the value of `utm_source`.
    utm_sources: AHashMap<Box<[u8]>, usize>,
}

impl ReferringServices {
    /// The registry that comes with crawlgate; read once.
    pub fn builtin() -> &'static ReferringServices {
        static BUILTIN: LazyLock<ReferringServices> = LazyLock::new(|| {
            let source = SourceFile {
                name: "services.yaml".into(),
                text: include_str!("services.yaml").into(),
            };
            #[expect(clippy::expect_used, reason = "the file is part of the program")]
            let services =
                parse_services(&source).expect("the registry of services is tested to be readable");
            ReferringServices::new(services)
        });
        &BUILTIN
    }

    fn new(services: Vec<ReferringService>) -> ReferringServices {
        let mut hosts: AHashMap<Box<[u8]>, HostEntry> = AHashMap::new();
        let mut utm_sources = AHashMap::new();
        for (place, service) in services.iter().enumerate() {
            for (names, has_subdomains) in [(&service.hosts, false), (&service.domains, true)] {
                let entry = HostEntry {
                    service: place,
                    has_subdomains,
                };
                hosts.extend(names.iter().map(|name| (name.as_bytes().into(), entry)));
            }
            utm_sources.extend(
                service
                    .utm_sources
                    .iter()
                    .map(|value| (value.as_bytes().into(), place)),
            );
        }
        let mut host_lengths = [0; 256];
        for name in hosts.keys() {
            host_lengths[usize::from(name[0])] |= 1 << (name.len() % 64);
        }
        ReferringServices {
            services,
            hosts,
            host_lengths,
            utm_sources,
        }
    }

    /// All services, in the order of the file.
    pub fn all(&self) -> &[ReferringService] {
        &self.services
    }

    /// The service with this id.
    pub fn get(&self, id: &str) -> Option<&ReferringService> {
        self.services.iter().find(|service| service.id == id)
    }

    /// The service that sent a visitor to `host`, by the value of `Referer` and the request's
    /// target. `utm_source` counts only without a `Referer` whose host can be read. A link within
    /// the site is no visit. Allocates only for a host in capitals.
    pub fn referring(
        &self,
        host: &[u8],
        referer: Option<&[u8]>,
        target: &[u8],
    ) -> Option<&ReferringService> {
        let own = without_port(host);
        if referer.is_some_and(|referer| is_page_of(referer, own)) {
            return None;
        }
        let place = match referer.and_then(host_of_url) {
            Some(from) if from.eq_ignore_ascii_case(own) => None,
            Some(from) => self.by_host(from),
            None => utm_source(target).and_then(|value| self.by_utm_source(value)),
        };
        place.and_then(|place| self.services.get(place))
    }

    fn by_host(&self, host: &[u8]) -> Option<usize> {
        if host.len() > MAX_HOST_BYTES {
            return None;
        }
        if let Some(entry) = self.host_entry(host) {
            return Some(entry.service);
        }
        // Faster than `memchr` for short names.
        (0..host.len())
            .filter(|place| host[*place] == b'.')
            .filter_map(|dot| self.host_entry(&host[dot + 1..]))
            .find(|entry| entry.has_subdomains)
            .map(|entry| entry.service)
    }

    fn host_entry(&self, name: &[u8]) -> Option<&HostEntry> {
        let first = name.first()?.to_ascii_lowercase();
        let is_possible = self.host_lengths[usize::from(first)] >> (name.len() % 64) & 1 == 1;
        if !is_possible {
            return None;
        }
        self.hosts.get(&*lowercase(name))
    }

    fn by_utm_source(&self, value: &[u8]) -> Option<usize> {
        if value.len() > MAX_HOST_BYTES {
            return None;
        }
        self.utm_sources.get(&*lowercase(value)).copied()
    }
}

/// Whether a URL is of this host, by its usual spelling. A quick test: most visitors come from
/// another page of the site.
fn is_page_of(url: &[u8], host: &[u8]) -> bool {
    url.strip_prefix(b"https://")
        .and_then(|rest| rest.strip_prefix(host))
        .is_some_and(|path| path.starts_with(b"/"))
}

/// A text in lower case. Allocates only for one with capitals.
fn lowercase(text: &[u8]) -> Cow<'_, [u8]> {
    if text.iter().any(u8::is_ascii_uppercase) {
        text.to_ascii_lowercase().into()
    } else {
        text.into()
    }
}

/// The host of an absolute `http` or `https` URL, without port, user and final dot. `None` for
/// anything else.
fn host_of_url(url: &[u8]) -> Option<&[u8]> {
    let after_scheme = url.strip_prefix(b"https://").or_else(|| {
        ["https://", "http://"].iter().find_map(|scheme| {
            let (begin, rest) = url.split_at_checked(scheme.len())?;
            begin
                .eq_ignore_ascii_case(scheme.as_bytes())
                .then_some(rest)
        })
    })?;
    let end = after_scheme
        .iter()
        .position(|byte| matches!(byte, b'/' | b'?' | b'#' | b'\\' | b'@'))
        .unwrap_or(after_scheme.len());
    // A browser sends no user. What stands before an `@` may look like the host.
    if after_scheme.get(end) == Some(&b'@') {
        return None;
    }
    let host = without_port(&after_scheme[..end]);
    Some(host.strip_suffix(b".").unwrap_or(host)).filter(|host| !host.is_empty())
}

fn without_port(authority: &[u8]) -> &[u8] {
    let end = authority.iter().rposition(|byte| !byte.is_ascii_digit());
    match end {
        Some(colon) if authority[colon] == b':' => &authority[..colon],
        _ => authority,
    }
}

/// The value of the first `utm_source` of a target's query.
fn utm_source(target: &[u8]) -> Option<&[u8]> {
    let query = &target[memchr::memchr(b'?', target)? + 1..];
    query
        .split(|byte| *byte == b'&')
        .find_map(|pair| pair.strip_prefix(b"utm_source="))
}

/// Parses all services.
///
/// # Errors
/// Everything that is wrong with the file.
fn parse_services(source: &SourceFile) -> Result<Vec<ReferringService>, Diagnostics> {
    let (services, diagnostics) = crate::yaml::decode_file(source, "", |_, root| {
        let list = root.filter(|root| matches!(root.value, NodeValue::Sequence(_)));
        Some(
            list.map(|list| list.decode_maps(["a list of services", "a service"], decode_service))
                .unwrap_or_default(),
        )
    });
    services.ok_or(diagnostics)
}

/// Decodes one service. `None` if a required field is missing or wrong, which is reported.
fn decode_service(fields: &mut MapFields<'_>) -> Option<ReferringService> {
    // For people who read the file.
    fields.required_text("source")?;
    Some(ReferringService {
        id: fields.required_text("id")?,
        name: fields.required_text("name")?,
        kind: fields.variant("kind", "`assistant` or `search`")?,
        operator: fields.required_text("operator")?,
        hosts: fields.text_list("hosts"),
        domains: fields.text_list("domains"),
        utm_sources: fields.text_list("utm"),
    })
}

#[cfg(test)]
mod tests {
    use super::{ReferringServiceKind, ReferringServices};
    use std::collections::BTreeSet;

    fn referring(referer: Option<&str>, target: &str) -> Option<&'static str> {
        let service = ReferringServices::builtin().referring(
            b"shop.example:8443",
            referer.map(str::as_bytes),
            target.as_bytes(),
        );
        service.map(|service| service.id.as_str())
    }

    #[test]
    fn referer_is_matched_by_whole_host_or_subdomain() {
        for (referer, expected) in [
            ("https://chatgpt.com/", Some("chatgpt")),
            ("https://www.google.co.uk/search?q=x", Some("google")),
            ("HTTPS://WWW.Google.COM", Some("google")),
            ("http://www.google.com.:8080/", Some("google")),
            ("https://gemini.google.com/app", Some("gemini")),
            ("https://uk.search.yahoo.com/x", Some("yahoo")),
            ("https://search.yahoo.com", Some("yahoo")),
            ("https://google.evil.example/", None),
            ("https://google.com.evil.example/", None),
            ("https://evilgoogle.com/", None),
            ("https://mail.google.com/", None),
            ("https://notsearch.yahoo.com/", None),
            ("https://chatgpt.com@evil.example/", None),
            ("https://evil.example\\.chatgpt.com/", None),
            ("https://evil.example/?u=https://chatgpt.com/", None),
            ("android-app://com.google.android.gm/", None),
            ("chatgpt.com", None),
            ("https://", None),
            ("", None),
        ] {
            assert_eq!(referring(Some(referer), "/"), expected, "{referer}");
        }
        let long = format!("https://{}.google.com/", "a".repeat(300));
        assert_eq!(referring(Some(&long), "/"), None);
    }

    #[test]
    fn utm_source_counts_only_without_a_referer() {
        let target = "/a?x=1&utm_source=ChatGPT.com&utm_medium=referral";
        for (referer, target, expected) in [
            (None, target, Some("chatgpt")),
            (Some("garbage"), target, Some("chatgpt")),
            (Some("https://news.example/"), target, None),
            (Some("https://shop.example/b"), target, None),
            (None, "/utm_source=chatgpt.com", None),
            (None, "/?xutm_source=chatgpt.com", None),
            (None, "/?utm_source=newsletter", None),
            (None, "/?utm_source=", None),
        ] {
            assert_eq!(referring(referer, target), expected, "{referer:?} {target}");
        }
    }

    #[test]
    fn link_within_the_site_is_no_visit() {
        let services = ReferringServices::builtin();
        let referer = Some(b"https://www.bing.com/a".as_slice());
        assert!(services.referring(b"www.bing.com", referer, b"/").is_none());
        assert!(services.referring(b"bing.example", referer, b"/").is_some());
    }

    #[test]
    fn builtin_registry_is_whole() {
        let services = ReferringServices::builtin().all();
        assert!(services.len() >= 40, "{}", services.len());
        let ids: BTreeSet<&str> = services.iter().map(|service| service.id.as_str()).collect();
        assert_eq!(ids.len(), services.len());
        let mut hosts = BTreeSet::new();
        for service in services {
            assert!(
                !service.hosts.is_empty() || !service.domains.is_empty(),
                "{}",
                service.id
            );
            for host in service.hosts.iter().chain(&service.domains) {
                assert!(hosts.insert(host.as_str()), "{host} stands twice");
                assert_eq!(*host, host.to_ascii_lowercase());
                assert!(host.contains('.') && !host.starts_with('.'), "{host}");
            }
        }
        let assistants = services
            .iter()
            .filter(|service| service.kind == ReferringServiceKind::Assistant);
        assert!(assistants.count() >= 20);
    }
}
