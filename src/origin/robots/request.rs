//! [`fetch_from_origin`] fetches an origin's robots.txt over HTTP, as RFC 9309 section 2.3 tells
//! crawlers to. The call blocks its thread. [`OriginTargets`] selects the servers of a site.
//!
//! If a redirect names one of the site's own hosts, the next request goes to the origin, because
//! that host leads to crawlgate itself. A redirect to a server of the origin is followed as it is.
//! Every other redirect must lead over https to a public address
//! ([`OriginNameResolver::must_be_public`]). Otherwise crawlgate could publish a file from an
//! internal network.

use super::connections::{NoPublicAddressError, OriginNameResolver, UnixConnector, tls_config};
use super::{FetchFailure, FetchResult};
use crate::download::{client_config, failure_reason, header_text, read_body, with_validators};
use crate::heads::ORIGIN_USER_AGENT;
use crate::robots::MAX_ROBOTS_BYTES;
use crate::settings::{OriginIndex, OriginServerAddress, OriginSettings, url_host};
use FetchResult::{NoFile, Unchanged, Unreachable};
use std::io::ErrorKind::{ConnectionReset, UnexpectedEof};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use ureq::Agent;
use ureq::unversioned::transport::DefaultConnector;
use url::{ParseError, Position, Url};

/// RFC 9309 section 2.3.1.2 requires at least five. Google follows ten.
const MAX_REDIRECTS: usize = 10;
/// The limit for all servers and redirects together.
const TIMEOUT: Duration = Duration::from_secs(20);
/// How many servers of an origin are tried.
const MAX_SERVERS: usize = 3;
/// The path of the file. An origin for some paths alone need not have it.
const ROBOTS_TXT: &[u8] = b"/robots.txt";

type Response = ureq::http::Response<ureq::Body>;

/// Finds the servers of a host among the origins of the settings.
pub struct OriginTargets {
    index: OriginIndex,
    groups: Vec<OriginSettings>,
}

/// The servers of one site, and the Host for requests to them.
pub struct OriginTarget {
    /// The site's host: the Host of requests, unless the origin has its own.
    pub host: String,
    /// The servers, and how they are reached.
    pub origin: OriginSettings,
}

impl OriginTargets {
    /// The targets of these origins.
    pub fn new(origins: &[OriginSettings]) -> OriginTargets {
        OriginTargets {
            index: OriginIndex::new(origins),
            groups: origins.to_vec(),
        }
    }

    /// Whether there is no origin.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The target for a host; `None` if no origin is for it. Without a host (a site for every host)
    /// it is the origin for a request without a host, else the first origin.
    pub fn for_host(&self, host: Option<&str>) -> Option<OriginTarget> {
        let group = match host {
            Some(host) => self.index.find(host.as_bytes(), ROBOTS_TXT),
            None => self
                .index
                .find(b"", ROBOTS_TXT)
                .or((!self.groups.is_empty()).then_some(0)),
        };
        self.for_origin(group?, host)
    }

    /// The target for the origin with this index; `None` if there is none. Without `host`, its host
    /// is the origin's first whole host, else the origin's own Host, else its first server.
    pub fn for_origin(&self, group: usize, host: Option<&str>) -> Option<OriginTarget> {
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
        Some(OriginTarget { host, origin })
    }
}

/// One request for a robots.txt.
pub struct RobotsRequest<'a> {
    /// The servers.
    pub target: &'a OriginTarget,
    /// The path, `/robots.txt`, or that of another file.
    pub path: &'a str,
    /// The `ETag` of the copy.
    pub etag: Option<&'a str>,
    /// The `Last-Modified` of the copy.
    pub last_modified: Option<&'a str>,
    /// Whether a host is one of the site's own.
    pub is_own_host: &'a dyn Fn(&str) -> bool,
}

/// Fetches the file from the servers in order, at most three, within 20 seconds together. Returns
/// the first result that is not `Unreachable`, else the last one.
pub fn fetch_from_origin(request: &RobotsRequest<'_>) -> FetchResult {
    let mut result = Unreachable("the origin has no server".into());
    let deadline = Instant::now() + TIMEOUT;
    for server in request.target.origin.servers.iter().take(MAX_SERVERS) {
        result = fetch_from_server(request, &server.address, deadline);
        if !matches!(result, Unreachable(_)) || Instant::now() >= deadline {
            break;
        }
    }
    result
}

/// The server and the path of the next request.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Destination {
    /// The site's own host, if the request goes to the origin under it.
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
    /// A file of a server.
    fn new(server: &OriginServerAddress, path: String) -> Destination {
        Destination {
            host: None,
            tls: server.tls,
            authority: server.authority(),
            socket: server.socket.clone(),
            path,
            is_foreign: false,
        }
    }

    /// The URL of the destination by its authority, without the host and the socket.
    fn url(&self) -> String {
        format!(
            "{}://{}{}",
            if self.tls { "https" } else { "http" },
            self.authority,
            self.path
        )
    }

    /// The destination after a redirect with this `Location`; `None` if it cannot be parsed or is
    /// not http. A relative one stays at this server. One to the origin's own Host, or to a host of
    /// the site, goes to `server`. Any other URL is requested as it is, and is foreign unless it
    /// names a server of the origin.
    fn after_redirect(
        &self,
        location: &str,
        server: &OriginServerAddress,
        request: &RobotsRequest<'_>,
    ) -> Option<Destination> {
        use Position::*;

        let to = Url::parse(&self.url()).ok()?.join(location).ok()?;
        let path = to[BeforePath..AfterQuery].to_owned();
        let is_relative = Url::parse(location) == Err(ParseError::RelativeUrlWithoutBase);
        if is_relative && !location.starts_with("//") {
            return (!location.is_empty()).then(|| Destination {
                path,
                ..self.clone()
            });
        }
        let is_web = matches!(to.scheme(), "http" | "https");
        if !is_web || to[AfterScheme..BeforeHost] != *"://" {
            return None;
        }
        let tls = to.scheme() == "https";
        let host = to[BeforeHost..AfterPort].to_owned();
        let is_wanted = request
            .target
            .origin
            .host
            .as_ref()
            .is_some_and(|wanted| wanted.eq_ignore_ascii_case(&host));
        let own_host = if is_wanted {
            Some(&request.target.host)
        } else {
            Some(&host).filter(|host| (request.is_own_host)(host))
        };
        if let Some(own_host) = own_host {
            return Some(Destination {
                host: Some(own_host.clone()),
                tls,
                ..Destination::new(server, path)
            });
        }
        let is_foreign = !request.target.origin.servers.iter().any(|server| {
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

/// Fetches the file from one server, over at most ten redirects. A 2xx is the file, 304 `Unchanged`,
/// 429, 5xx and unusable responses `Unreachable`, everything else `NoFile`. Redirects to crawlgate
/// itself or to a destination that is not allowed are `Unreachable`.
fn fetch_from_server(
    request: &RobotsRequest<'_>,
    server: &OriginServerAddress,
    deadline: Instant,
) -> FetchResult {
    let mut destination = Destination {
        host: Some(request.target.host.clone()),
        ..Destination::new(server, request.path.to_owned())
    };
    for _ in 0..=MAX_REDIRECTS {
        let url = match &destination.host {
            // The redirect names the public URL. The settings say how the server is reached.
            Some(_) => Destination {
                tls: server.tls,
                ..destination.clone()
            }
            .url(),
            None => destination.url(),
        };
        if destination.is_foreign && !destination.tls {
            return Unreachable(FetchFailure::redirect_refused(&url, "it is not https"));
        }
        let response = match send_request(request, &destination, &url, deadline) {
            Ok(response) => response,
            Err(ureq::Error::Other(error)) if error.is::<NoPublicAddressError>() => {
                return Unreachable(FetchFailure::redirect_refused(&url, error));
            }
            Err(error) => {
                let at = destination.host.map_or(url, |_| server.url());
                let reason = failure_reason(&error);
                return Unreachable(FetchFailure {
                    is_server_down: true,
                    is_other_protocol: matches!(
                        error.into_io().kind(),
                        ConnectionReset | UnexpectedEof
                    ),
                    ..format!("{at}: {reason}").into()
                });
            }
        };
        if destination.host.is_none()
            && header_text(&response, "server").is_some_and(|name| name == "crawlgate")
        {
            return Unreachable(FetchFailure::redirect_refused(&url, "that is crawlgate"));
        }
        let status = response.status().as_u16();
        if !matches!(status, 301 | 302 | 303 | 307 | 308) {
            return response_result(request, response, url);
        }
        let location = header_text(&response, "location");
        let next = location.and_then(|to| destination.after_redirect(&to, server, request));
        let Some(next) = next else {
            return NoFile {
                reason: format!("the Location of the {status} is missing or cannot be followed"),
                url,
            };
        };
        destination = next;
    }
    NoFile {
        url: destination.url(),
        reason: format!("more than {MAX_REDIRECTS} redirects"),
    }
}

/// The result of a response that is no redirect.
fn response_result(request: &RobotsRequest<'_>, response: Response, url: String) -> FetchResult {
    match response.status().as_u16() {
        304 if request.etag.is_some() || request.last_modified.is_some() => Unchanged,
        // 206 and 304: crawlgate requested the whole file, and these responses do not contain it.
        status @ (206 | 304 | 429 | 500..=599) => {
            let hint = match status {
                504 => {
                    ": that server waited in vain for another one, perhaps for crawlgate. If it asks crawlgate for this \
                     file, name another address as the origin: one that serves the application's own file"
                }
                508 => {
                    ": that server asks crawlgate for this file. As the origin (--origin, or \"origins\" in the settings), \
                     name an address that serves the application's own file"
                }
                _ => "",
            };
            unusable_response_result(&url, format_args!("the answer is {status}{hint}"))
        }
        200..=299 => read_file(response, url),
        status => NoFile {
            reason: format!("the answer is {status}"),
            url,
        },
    }
}

/// The result for a response that cannot be used, with the URL in the reason.
fn unusable_response_result(url: &str, reason: impl std::fmt::Display) -> FetchResult {
    Unreachable(format!("{url}: {reason}").into())
}

/// The result for a 2xx: the file with its validators. `Unreachable` if the body has a coding that
/// was not requested, or is incomplete. Reads at most 500 KiB.
fn read_file(response: Response, url: String) -> FetchResult {
    // A body in an unknown coding would be read as a file without rules.
    let coding = header_text(&response, "content-encoding").unwrap_or_default();
    if !["", "identity", "gzip"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(coding.trim()))
    {
        return unusable_response_result(
            &url,
            format_args!(
                "the answer has a Content-Encoding ({coding}) that crawlgate did not ask for"
            ),
        );
    }
    let etag = header_text(&response, "etag");
    let last_modified = header_text(&response, "last-modified");
    let media = header_text(&response, "content-type");
    let html = media.is_some_and(|media| media.to_ascii_lowercase().starts_with("text/html"));
    match read_body(response.into_body(), MAX_ROBOTS_BYTES) {
        Ok(bytes) => FetchResult::File {
            bytes,
            url,
            etag,
            last_modified,
            html,
        },
        Err(error) => {
            unusable_response_result(&url, format_args!("the answer was cut off: {error}"))
        }
    }
}

/// Sends one request to a destination, and returns the head of its response. `url` is the URL of the
/// destination with the scheme of the settings. For a server of the origin, the settings for TLS,
/// names and Host apply; a foreign server must have a public address.
fn send_request(
    request: &RobotsRequest<'_>,
    destination: &Destination,
    url: &str,
    deadline: Instant,
) -> Result<Response, ureq::Error> {
    let origin = &request.target.origin;
    let is_tls = url.starts_with("https:");
    let tls = origin
        .tls
        .as_ref()
        .filter(|_| is_tls && !destination.is_foreign);
    let mut config = client_config(
        deadline
            .saturating_duration_since(Instant::now())
            .max(Duration::from_millis(1)),
    )
    .timeout_connect(Some(origin.timeouts.connect))
    .timeout_recv_response(Some(origin.timeouts.read.min(TIMEOUT)))
    .user_agent(ORIGIN_USER_AGENT)
    // A proxy that the environment names is for other programs. The settings say how origins are
    // reached.
    .proxy(None);
    if let Some(tls) = tls {
        config = config.tls_config(tls_config(tls)?);
    }
    let config = config.build();
    let name = origin
        .certificate_name()
        .filter(|_| is_tls && !destination.is_foreign);
    let names = OriginNameResolver {
        servers: if destination.is_foreign {
            Vec::new()
        } else {
            origin.resolvers.clone()
        },
        server: match &destination.socket {
            // Any address: ureq resolves one in any case, and the connector takes the socket.
            Some(_) => Some("127.0.0.1:80".into()),
            None => name.map(|_| destination.authority.clone()),
        },
        must_be_public: destination.is_foreign,
    };
    let agent = match &destination.socket {
        Some(path) => Agent::with_parts(config, UnixConnector(path.clone()), names),
        None => Agent::with_parts(config, DefaultConnector::new(), names),
    };
    let named = name.map(|name| format!("https://{}{}", url_host(name), destination.path));
    let mut builder = agent
        .get(named.as_deref().unwrap_or(url))
        .header("accept", "text/plain, */*;q=0.5");
    if let (Some(_), None) = (name, &destination.host) {
        builder = builder.header("host", &destination.authority);
    }
    if let Some(host) = &destination.host {
        // For origins that redirect every request without https.
        builder = builder.header(
            "x-forwarded-proto",
            if destination.tls { "https" } else { "http" },
        );
        let wanted = origin.host.as_ref().unwrap_or(host);
        builder = builder.header("host", wanted);
        if wanted != host {
            builder = builder.header("x-forwarded-host", host);
        }
    }
    with_validators(builder, request.etag, request.last_modified).call()
}
