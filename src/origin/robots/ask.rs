//! [`ask`] fetches an origin's robots.txt over HTTP, as RFC 9309 section 2.3 tells crawlers to. It
//! blocks its thread. [`Targets`] selects the servers of a site.
//!
//! A redirect to one of the site's own hosts is followed to the origin, not to the public name,
//! which is crawlgate's. A redirect to a server of the origin is followed, too. Every other
//! redirect must lead to a public address over https, because crawlgate publishes the file that it
//! finds, and can reach addresses that no client can ([`Names::must_be_public`]).

use super::connections::{Names, NotPublic, UnixConnector, in_url, tls_of};
use super::{FetchFailure, FetchResult};
use crate::download::{client, conditional, field, octets};
use crate::robots::MAX_BYTES;
use crate::settings::{OriginIndex, OriginSettings, ServerAddress};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use ureq::Agent;
use ureq::unversioned::transport::DefaultConnector;
use url::{ParseError, Position, Url};

/// RFC 9309 section 2.3.1.2 asks for at least five. Google follows ten.
const REDIRECTS: usize = 10;
/// Limit for all servers and redirects together.
const TIME: Duration = Duration::from_secs(20);
/// How many servers of an origin are tried, one after the other.
const SERVERS: usize = 3;
/// The path of the file. An origin for some paths alone need not have it.
const ROBOTS_TXT: &[u8] = b"/robots.txt";

type Response = ureq::http::Response<ureq::Body>;

/// The servers of each host.
pub struct Targets {
    index: OriginIndex,
    groups: Vec<OriginSettings>,
}

/// The servers of one site.
#[derive(Debug, PartialEq)]
pub struct Target {
    /// The site's host. It is the Host field, unless the origin wants its own.
    pub host: String,
    /// The servers, and how they are reached.
    pub origin: OriginSettings,
}

impl Targets {
    /// For the origins of the settings.
    pub fn new(origins: &[OriginSettings]) -> Targets {
        Targets {
            index: OriginIndex::new(origins),
            groups: origins.to_vec(),
        }
    }

    /// Whether there is no origin.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The servers of a host; `None` if no origin is for it. Without a host, which stands for a
    /// site for every host, the servers are those for a request without a host, else those of the
    /// first origin.
    pub fn target(&self, host: Option<&str>) -> Option<Target> {
        let group = match host {
            Some(host) => self.index.find(host.as_bytes(), ROBOTS_TXT),
            None => self
                .index
                .find(b"", ROBOTS_TXT)
                .or((!self.groups.is_empty()).then_some(0)),
        };
        self.target_of(group?, host)
    }

    /// The servers of the origin at this place of the settings; `None` if there is none. Without
    /// `host`, the request names the origin's first whole host, else the Host that it wants, else
    /// its first server.
    pub fn target_of(&self, group: usize, host: Option<&str>) -> Option<Target> {
        let origin = self.groups.get(group)?.clone();
        let named = origin
            .hosts
            .iter()
            .find(|host| !host.starts_with('*'))
            .cloned();
        let host = host
            .map(str::to_owned)
            .or(named)
            .or_else(|| origin.host.clone());
        let host = host.or_else(|| {
            origin
                .servers
                .first()
                .map(|server| server.address.authority())
        })?;
        Some(Target { host, origin })
    }
}

/// One request for a robots.txt.
pub struct RobotsRequest<'a> {
    /// The servers.
    pub target: &'a Target,
    /// The `ETag` of the copy.
    pub etag: Option<&'a str>,
    /// The `Last-Modified` of the copy.
    pub last_modified: Option<&'a str>,
    /// Whether a host is one of the site's own.
    pub is_own: &'a dyn Fn(&str) -> bool,
}

/// Asks the servers in order, at most three, within 20 seconds together. The first result that is
/// not `Unreachable` decides, else the last one.
pub fn ask(asked: &RobotsRequest<'_>) -> FetchResult {
    let mut result = FetchResult::Unreachable("the origin has no server".into());
    let deadline = Instant::now() + TIME;
    for server in asked.target.origin.servers.iter().take(SERVERS) {
        result = follow(asked, &server.address, deadline);
        if !matches!(result, FetchResult::Unreachable(_)) || Instant::now() >= deadline {
            break;
        }
    }
    result
}

/// The server and the path of the next request.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Destination {
    /// The host, if the request goes to the origin as one of the site's own hosts.
    host: Option<String>,
    tls: bool,
    authority: String,
    /// The Unix socket to connect to, in place of `authority`.
    socket: Option<PathBuf>,
    /// Whether the server does not belong to the origin.
    is_foreign: bool,
    /// Path and query.
    path: String,
}

impl Destination {
    /// The robots.txt of a server.
    fn at(server: &ServerAddress) -> Destination {
        Destination {
            host: None,
            tls: server.tls,
            authority: server.authority(),
            socket: server.socket.clone(),
            path: "/robots.txt".into(),
            is_foreign: false,
        }
    }

    /// The URL of the destination, by its authority. It does not name the host or the socket.
    fn url(&self) -> String {
        format!(
            "{}://{}{}",
            if self.tls { "https" } else { "http" },
            self.authority,
            self.path
        )
    }

    /// The destination of a redirect from here with this `Location`; `None` if it cannot be read or
    /// is not http. A relative one stays at this server. One to the Host that the origin wants, or
    /// to a host of the site, goes to `server`. Any other URL is asked for as it is, and is foreign
    /// unless it names a server of the origin.
    fn redirected(
        &self,
        location: &str,
        server: &ServerAddress,
        asked: &RobotsRequest<'_>,
    ) -> Option<Destination> {
        let to = Url::parse(&self.url()).ok()?.join(location).ok()?;
        let path = to[Position::BeforePath..Position::AfterQuery].to_owned();
        let is_relative = Url::parse(location) == Err(ParseError::RelativeUrlWithoutBase);
        if is_relative && !location.starts_with("//") {
            return (!location.is_empty()).then(|| Destination {
                path,
                ..self.clone()
            });
        }
        let is_web = matches!(to.scheme(), "http" | "https");
        if !is_web || to[Position::AfterScheme..Position::BeforeHost] != *"://" {
            return None;
        }
        let tls = to.scheme() == "https";
        let host = to[Position::BeforeHost..Position::AfterPort].to_owned();
        let is_wanted = asked
            .target
            .origin
            .host
            .as_ref()
            .is_some_and(|wanted| wanted.eq_ignore_ascii_case(&host));
        if is_wanted {
            return Some(Destination {
                host: Some(asked.target.host.clone()),
                tls,
                path,
                ..Destination::at(server)
            });
        }
        if (asked.is_own)(&host) {
            return Some(Destination {
                host: Some(host),
                tls,
                path,
                ..Destination::at(server)
            });
        }
        let is_foreign = !asked.target.origin.servers.iter().any(|server| {
            let address = &server.address;
            address.socket.is_none()
                && address.tls == tls
                && address.authority().eq_ignore_ascii_case(&host)
        });
        Some(Destination {
            host: None,
            tls,
            authority: host,
            socket: None,
            path,
            is_foreign,
        })
    }
}

/// Asks one server, follows redirects (at most ten), and turns the answer into a result: a 2xx is
/// the file, 304 that nothing changed, 429, 5xx and what cannot be used `Unreachable`, everything
/// else `Nothing`. Redirects that lead to crawlgate itself or to a place that is not allowed are
/// `Unreachable`.
fn follow(asked: &RobotsRequest<'_>, server: &ServerAddress, deadline: Instant) -> FetchResult {
    let mut place = Destination {
        host: Some(asked.target.host.clone()),
        ..Destination::at(server)
    };
    for _ in 0..=REDIRECTS {
        let url = match &place.host {
            // The redirect names the public URL. The settings say how the server is reached.
            Some(_) => Destination {
                tls: server.tls,
                ..place.clone()
            }
            .url(),
            None => place.url(),
        };
        if place.is_foreign && !place.tls {
            return FetchResult::Unreachable(FetchFailure::LeadsAstray {
                url,
                why: "it is not https".into(),
            });
        }
        let response = match request(asked, &place, &url, deadline) {
            Ok(response) => response,
            Err(ureq::Error::Other(error)) if error.is::<NotPublic>() => {
                return FetchResult::Unreachable(FetchFailure::LeadsAstray {
                    url,
                    why: error.to_string(),
                });
            }
            Err(error) => return unusable(&url, error),
        };
        if place.host.is_none()
            && field(&response, "server").is_some_and(|name| name == "crawlgate")
        {
            return FetchResult::Unreachable(FetchFailure::LeadsBack { url });
        }
        let status = response.status().as_u16();
        if !matches!(status, 301 | 302 | 303 | 307 | 308) {
            return answered(asked, response, url);
        }
        let location = field(&response, "location");
        let next = location.and_then(|to| place.redirected(&to, server, asked));
        let Some(next) = next else {
            return FetchResult::Nothing {
                reason: format!("the Location of the {status} is missing or cannot be followed"),
                url,
            };
        };
        place = next;
    }
    FetchResult::Nothing {
        url: place.url(),
        reason: format!("more than {REDIRECTS} redirects"),
    }
}

/// The result of an answer that is no redirect.
fn answered(asked: &RobotsRequest<'_>, response: Response, url: String) -> FetchResult {
    match response.status().as_u16() {
        304 if asked.etag.is_some() || asked.last_modified.is_some() => FetchResult::Unchanged,
        // crawlgate asked for the whole file. These answers do not contain it.
        206 => unusable(&url, "the answer is 206, a part of the file"),
        304 => unusable(
            &url,
            "the answer is 304, and there is nothing to compare with",
        ),
        200..=299 => file(response, url),
        508 => unusable(
            &url,
            "the answer is 508: the server asks crawlgate for this file. Name an address with --origin at which \
             the application's own file is",
        ),
        status @ (429 | 500..=599) => unusable(&url, format_args!("the answer is {status}")),
        status => FetchResult::Nothing {
            reason: format!("the answer is {status}"),
            url,
        },
    }
}

/// The result for an answer that cannot be used, with the URL in the reason.
fn unusable(url: &str, reason: impl std::fmt::Display) -> FetchResult {
    FetchResult::Unreachable(format!("{url}: {reason}").into())
}

/// The result for a 2xx: the file with its validators. `Unreachable` if the body has a coding that
/// was not asked for, or breaks off. More than 500 KiB are not read.
fn file(response: Response, url: String) -> FetchResult {
    // A body in an unknown coding would be read as a file without rules.
    let coding = field(&response, "content-encoding").unwrap_or_default();
    if !["", "identity", "gzip"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(coding.trim()))
    {
        return unusable(
            &url,
            format_args!(
                "the answer has a Content-Encoding ({coding}) that crawlgate did not ask for"
            ),
        );
    }
    let etag = field(&response, "etag");
    let last_modified = field(&response, "last-modified");
    let media = field(&response, "content-type");
    let html = media.is_some_and(|media| media.to_ascii_lowercase().starts_with("text/html"));
    match octets(response.into_body(), MAX_BYTES) {
        Ok(bytes) => FetchResult::File {
            bytes,
            url,
            etag,
            last_modified,
            html,
        },
        Err(error) => unusable(&url, format_args!("the answer broke off: {error}")),
    }
}

/// Sends one request to a destination, and returns the head of its answer. `url` is that of the
/// destination, as the settings say how the server is reached. A server of the origin gets the
/// settings for TLS, names and Host; a foreign one none of them, and it must have a public address.
fn request(
    asked: &RobotsRequest<'_>,
    place: &Destination,
    url: &str,
    deadline: Instant,
) -> Result<Response, ureq::Error> {
    let origin = &asked.target.origin;
    let is_tls = url.starts_with("https:");
    let tls = origin.tls.as_ref().filter(|_| is_tls && !place.is_foreign);
    let mut config = client(
        deadline
            .saturating_duration_since(Instant::now())
            .max(Duration::from_millis(1)),
    )
    .timeout_connect(Some(origin.timeouts.connect))
    .timeout_recv_response(Some(origin.timeouts.read.min(TIME)))
    // A proxy that the environment names is for other programs. The settings say how origins are
    // reached.
    .proxy(None);
    if let Some(tls) = tls {
        config = config.tls_config(tls_of(tls)?);
    }
    let config = config.build();
    let name = origin
        .certificate_name()
        .filter(|_| is_tls && !place.is_foreign);
    let names = Names {
        servers: if place.is_foreign {
            Vec::new()
        } else {
            origin.resolvers.clone()
        },
        server: match &place.socket {
            // Any address: ureq resolves one in any case, and the connector takes the socket.
            Some(_) => Some("127.0.0.1:80".into()),
            None => name.map(|_| place.authority.clone()),
        },
        must_be_public: place.is_foreign,
    };
    let agent = match &place.socket {
        Some(path) => Agent::with_parts(config, UnixConnector(path.clone()), names),
        None => Agent::with_parts(config, DefaultConnector::new(), names),
    };
    let named = name.map(|name| format!("https://{}{}", in_url(name), place.path));
    let mut request = agent
        .get(named.as_deref().unwrap_or(url))
        .header("accept", "text/plain, */*;q=0.5");
    if let (Some(_), None) = (name, &place.host) {
        request = request.header("host", &place.authority);
    }
    if let Some(host) = &place.host {
        // For origins that redirect every request without https.
        request = request.header(
            "x-forwarded-proto",
            if place.tls { "https" } else { "http" },
        );
        let wanted = origin.host.as_ref().unwrap_or(host);
        request = request.header("host", wanted);
        if wanted != host {
            request = request.header("x-forwarded-host", host);
        }
    }
    conditional(request, asked.etag, asked.last_modified).call()
}
