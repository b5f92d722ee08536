//! Fetches an origin's robots.txt over HTTP, as RFC 9309 section 2.3 tells crawlers to: [`ask`]. [`Targets`] selects the
//! servers of a site. Blocks its thread. Must not know earlier fetches.
//!
//! A redirect to one of the site's own hosts is followed to the origin, not to the public name, which is crawlgate's. A
//! redirect to a server of the origin is followed, too. Every other one must lead to a public address over https: what
//! it leads to is published, and crawlgate can reach addresses that no client can (`public_addresses.rs`).

use super::super::trust;
use super::public_addresses::{NotPublic, PublicAddresses};
use super::server_of_name::{OriginNames, ServerOfName, in_url};
use super::unix_connector::UnixConnector;
use super::{FetchFailure, FetchResult};
use crate::heads::OWN_AGENT;
use crate::robots::MAX_BYTES;
use crate::settings::{OriginIndex, OriginSettings, OriginTimeouts, OriginTls, ServerAddress};
use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use ureq::unversioned::transport::DefaultConnector;

/// RFC 9309 section 2.3.1.2 asks for at least five. Google follows ten.
const REDIRECTS: usize = 10;
/// Limit for all servers and redirects together.
const TIME: Duration = Duration::from_secs(20);
/// How many servers of an origin are tried, one after the other.
const SERVERS: usize = 3;
/// What is asked for. An origin of some paths alone need not have it.
const ROBOTS_TXT: &[u8] = b"/robots.txt";

type Response = ureq::http::Response<ureq::Body>;

/// The servers of each host.
pub struct Targets {
    index: OriginIndex,
    groups: Vec<OriginSettings>,
}

/// The servers of one site.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The Host field.
    pub host: String,
    /// The servers, in the order in which they are asked.
    pub servers: Vec<ServerAddress>,
    /// The name servers that know them; those of the system where it is empty.
    pub resolvers: Vec<SocketAddr>,
    /// How long they may take.
    pub timeouts: OriginTimeouts,
    /// TLS to them; `None` for the system's roots and each server's own name.
    pub tls: Option<OriginTls>,
}

impl Targets {
    /// For the origins of the settings.
    pub fn new(origins: &[OriginSettings]) -> Targets {
        Targets { index: OriginIndex::new(origins), groups: origins.to_vec() }
    }

    /// Whether there is no origin.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The servers of a host. A site for every host has none: then those that a request without a host would go to.
    pub fn target(&self, host: Option<&str>) -> Option<Target> {
        let group = match host {
            Some(host) => self.index.find(host.as_bytes(), ROBOTS_TXT),
            None => self.index.find(b"", ROBOTS_TXT).or((!self.groups.is_empty()).then_some(0)),
        };
        self.target_of(group?, host)
    }

    /// The servers of the origin at this place of the settings.
    pub fn target_of(&self, group: usize, host: Option<&str>) -> Option<Target> {
        let group = self.groups.get(group)?;
        let named = group.hosts.iter().find(|host| !host.starts_with('*')).cloned();
        let host = host
            .map(str::to_owned)
            .or(named)
            .or_else(|| group.servers.first().map(|server| server.address.authority()))?;
        let servers = group.servers.iter().map(|server| server.address.clone()).take(SERVERS).collect();
        let (resolvers, tls) = (group.resolvers.clone(), group.tls.clone());
        Some(Target { host, servers, resolvers, timeouts: group.timeouts, tls })
    }
}

/// One request for a robots.txt.
pub struct Question<'a> {
    /// The servers.
    pub target: &'a Target,
    /// The `ETag` of the copy.
    pub etag: Option<&'a str>,
    /// The `Last-Modified` of the copy.
    pub last_modified: Option<&'a str>,
    /// Whether a host is one of the site's own.
    pub is_own: &'a dyn Fn(&str) -> bool,
}

/// Asks the servers in order. The first that gives a usable answer decides.
pub fn ask(question: &Question<'_>) -> FetchResult {
    let mut result = FetchResult::Unreachable("the origin has no server".into());
    let deadline = Instant::now() + TIME;
    for server in &question.target.servers {
        result = follow(question, server, deadline);
        if !matches!(result, FetchResult::Unreachable(_)) || Instant::now() >= deadline {
            break;
        }
    }
    result
}

/// Where the next request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    /// The Host field, if the request goes to the origin as one of the site's own hosts.
    host: Option<String>,
    tls: bool,
    /// The server to connect to.
    authority: String,
    /// The socket to connect to in its place.
    socket: Option<PathBuf>,
    /// Whether the server is none of the origin's.
    is_foreign: bool,
    /// Path and query.
    path: String,
}

impl Place {
    fn url(&self) -> String {
        format!("{}://{}{}", if self.tls { "https" } else { "http" }, self.authority, self.path)
    }

    /// The place that a `Location` of this place leads to. `None` if it cannot be read.
    fn redirected(&self, location: &str, server: &ServerAddress, question: &Question<'_>) -> Option<Place> {
        let location = location.split('#').next().unwrap_or_default();
        let rooted = |path: &str| if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let lower = location.get(..8).unwrap_or(location).to_ascii_lowercase();
        let (tls, rest) = if lower.starts_with("https://") {
            (true, &location[8..])
        } else if lower.starts_with("http://") {
            (false, &location[7..])
        } else if let Some(rest) = location.strip_prefix("//") {
            (self.tls, rest)
        } else if location.starts_with('/') {
            return Some(Place { path: location.to_owned(), ..self.clone() });
        } else if location.is_empty() || location.split(['/', '?']).next().is_some_and(|part| part.contains(':')) {
            return None;
        } else {
            let here = self.path.split('?').next().unwrap_or("/");
            let directory = &here[..here.rfind('/').map_or(0, |slash| slash + 1)];
            return Some(Place { path: rooted(&format!("{directory}{location}")), ..self.clone() });
        };
        let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if host.is_empty() || host.contains('@') {
            return None;
        }
        let path = rooted(path);
        if (question.is_own)(host) {
            return Some(Place {
                host: Some(host.to_owned()),
                tls,
                authority: server.authority(),
                socket: server.socket.clone(),
                path,
                is_foreign: false,
            });
        }
        let is_server = |server: &ServerAddress| {
            server.socket.is_none() && server.tls == tls && server.authority().eq_ignore_ascii_case(host)
        };
        let is_foreign = !question.target.servers.iter().any(is_server);
        Some(Place { host: None, tls, authority: host.to_owned(), socket: None, path, is_foreign })
    }
}

fn follow(question: &Question<'_>, server: &ServerAddress, deadline: Instant) -> FetchResult {
    let mut place = Place {
        host: Some(question.target.host.clone()),
        tls: server.tls,
        authority: server.authority(),
        socket: server.socket.clone(),
        path: "/robots.txt".into(),
        is_foreign: false,
    };
    for _ in 0..=REDIRECTS {
        let url = match &place.host {
            // The redirect names the public URL. The settings say how the server is reached.
            Some(_) => Place { tls: server.tls, ..place.clone() }.url(),
            None => place.url(),
        };
        if place.is_foreign && !place.tls {
            return FetchResult::Unreachable(FetchFailure::LeadsAstray { url, why: "it is not https".into() });
        }
        let response = match request(question, &place, &url, deadline) {
            Ok(response) => response,
            Err(ureq::Error::Other(error)) if error.is::<NotPublic>() => {
                return FetchResult::Unreachable(FetchFailure::LeadsAstray { url, why: error.to_string() });
            }
            Err(error) => return unusable(&url, error),
        };
        if place.host.is_none() && field(&response, "server").is_some_and(|name| name == "crawlgate") {
            return FetchResult::Unreachable(FetchFailure::LeadsBack { url });
        }
        let status = response.status().as_u16();
        match status {
            304 if question.etag.is_some() || question.last_modified.is_some() => return FetchResult::Unchanged,
            // crawlgate asked for the whole file. These answers do not contain it.
            206 => return unusable(&url, "the answer is 206, a part of the file"),
            304 => return unusable(&url, "the answer is 304, and there is nothing to compare with"),
            200..=299 => return file(response, url),
            301 | 302 | 303 | 307 | 308 => {
                let location = field(&response, "location");
                match location.as_deref().and_then(|to| place.redirected(to, server, question)) {
                    Some(next) => place = next,
                    None => {
                        return FetchResult::Nothing {
                            reason: format!("the Location of the {status} is missing or cannot be followed"),
                            url,
                        };
                    }
                }
            }
            508 => {
                return unusable(
                    &url,
                    "the answer is 508: the server asks crawlgate for this file. Name an address with --origin at which \
                     the application's own file is",
                );
            }
            429 | 500..=599 => return unusable(&url, format_args!("the answer is {status}")),
            _ => return FetchResult::Nothing { reason: format!("the answer is {status}"), url },
        }
    }
    FetchResult::Nothing { url: place.url(), reason: format!("more than {REDIRECTS} redirects") }
}

fn unusable(url: &str, reason: impl std::fmt::Display) -> FetchResult {
    FetchResult::Unreachable(format!("{url}: {reason}").into())
}

fn field(response: &Response, name: &str) -> Option<String> {
    response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// The file in a response with status 200.
fn file(response: Response, url: String) -> FetchResult {
    // A body in an unknown coding would be read as a file without rules.
    let is_known = |coding: &str| ["", "identity", "gzip"].iter().any(|known| known.eq_ignore_ascii_case(coding));
    if let Some(coding) = field(&response, "content-encoding").filter(|coding| !is_known(coding.trim())) {
        return unusable(
            &url,
            format_args!("the answer has a Content-Encoding ({coding}) that crawlgate did not ask for"),
        );
    }
    let (etag, last_modified) = (field(&response, "etag"), field(&response, "last-modified"));
    let media = field(&response, "content-type");
    let html = media.is_some_and(|media| media.to_ascii_lowercase().starts_with("text/html"));
    let mut bytes = Vec::new();
    match response.into_body().into_reader().take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes) {
        Ok(_) => FetchResult::File { bytes, url, etag, last_modified, html },
        Err(error) => unusable(&url, format_args!("the answer broke off: {error}")),
    }
}

fn request(question: &Question<'_>, place: &Place, url: &str, deadline: Instant) -> Result<Response, ureq::Error> {
    let is_tls = url.starts_with("https:");
    let tls = question.target.tls.as_ref().filter(|_| is_tls && !place.is_foreign);
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_global(Some(deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))))
        .timeout_connect(Some(question.target.timeouts.connect))
        .timeout_recv_response(Some(question.target.timeouts.read.min(TIME)))
        .user_agent(OWN_AGENT)
        // A proxy that the environment names is for other programs. The settings say how origins are reached.
        .proxy(None)
        .tls_config(tls.map_or_else(|| Ok(trust::system()), trust::of_origin)?)
        .build();
    let name = tls.and_then(|tls| tls.server_name.as_deref());
    let names = OriginNames::new(&question.target.resolvers);
    let agent = match (&place.socket, name) {
        (Some(path), _) => ureq::Agent::with_parts(
            config,
            UnixConnector(path.clone()),
            ServerOfName::new("127.0.0.1:80", OriginNames::default()),
        ),
        (None, Some(_)) => {
            ureq::Agent::with_parts(config, DefaultConnector::new(), ServerOfName::new(&place.authority, names))
        }
        (None, None) if place.is_foreign => {
            ureq::Agent::with_parts(config, DefaultConnector::new(), PublicAddresses::default())
        }
        (None, None) => ureq::Agent::with_parts(config, DefaultConnector::new(), names),
    };
    let named = name.map(|name| format!("https://{}{}", in_url(name), place.path));
    let mut request = agent.get(named.as_deref().unwrap_or(url)).header("accept", "text/plain, */*;q=0.5");
    if let (Some(_), None) = (name, &place.host) {
        request = request.header("host", &place.authority);
    }
    if let Some(host) = &place.host {
        // For origins that redirect every request without https.
        request = request.header("host", host).header("x-forwarded-proto", if place.tls { "https" } else { "http" });
    }
    if let Some(etag) = question.etag {
        request = request.header("if-none-match", etag);
    }
    if let Some(date) = question.last_modified {
        request = request.header("if-modified-since", date);
    }
    request.call()
}
