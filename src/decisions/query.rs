//! [`DecisionQuery`]: a client's HTTP request, about which another reverse proxy asks the decision
//! service. The proxy sends crawlgate a query, and describes the client's request in the path and
//! the header fields of the query. Proxies use different formats; [`QueryProtocol`] lists them.

use crate::forwarding::ConnectionPeer;
use crate::heads::path_of;
use crate::requests::{ConnectionFacts, HeaderMapHead, ReceivedRequest};
use http::HeaderValue;
use std::net::{IpAddr, Ipv4Addr};

/// The address of a peer on a Unix socket, which has none.
const UNIX_PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// The path of all queries.
const DECIDE_PREFIX: &[u8] = b"/decide/";
/// The files that a proxy fetches from crawlgate in place of its origin.
pub const ROBOTS_TXT: &str = "/robots.txt";
pub const TDMREP: &str = "/.well-known/tdmrep.json";

/// The format of a query, which follows from the path of the proxy's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryProtocol {
    /// `/decide/nginx`: the request is in `X-Original-Method` and `X-Original-URI`. A refusal is
    /// 403 without a body.
    Nginx,
    /// `/decide/answer`: the complete answer to a request that `/decide/nginx` refused, with the
    /// same fields.
    Answer,
    /// `/decide/forward-auth`: the request is in `X-Forwarded-Method`, `-Uri` and `-Host`. Caddy,
    /// Traefik, HAProxy.
    ForwardAuth,
    /// `/decide/envoy` followed by the path of the request, with its method and host.
    Envoy,
    /// Another path: the request itself, for a file that crawlgate serves.
    File,
}

/// A request that a proxy asks about.
pub struct DecisionQuery<'a> {
    /// The format of the query.
    pub protocol: QueryProtocol,
    /// The method of the request.
    pub method: &'a [u8],
    /// The target of the request.
    pub target: &'a [u8],
    /// The host of the request.
    pub host: &'a [u8],
}

/// Why a query cannot be answered.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecisionQueryError {
    /// A field that the protocol needs is missing.
    #[error("the field {0} is missing: the proxy has to pass on the request that it asks about")]
    Missing(&'static str),
    /// A field that must be a path is no path, or has a fragment.
    #[error("the field {0} has no path in it")]
    NoPath(&'static str),
    /// The host that the proxy routes by is missing or malformed. No site has a malformed host, so
    /// the request would pass.
    #[error("the field {0} has no host in it")]
    NoHost(&'static str),
    /// There is nothing at this path.
    #[error(
        "This is crawlgate's decision service. It answers /decide/nginx, /decide/answer, /decide/forward-auth, \
         /decide/envoy/..., /robots.txt, /.well-known/tdmrep.json and /healthz"
    )]
    Unknown,
}

impl<'a> DecisionQuery<'a> {
    /// Reads the request that a proxy asks about, from the path and the fields of the proxy's
    /// request. `envoy` and a file have method, host and target in the proxy's request itself (for
    /// `envoy`, the target is the rest of the path). `nginx` and `answer` have method and target in
    /// fields; `forward-auth` has the host in a field, too. If the field for the method or the host
    /// is missing, that of the proxy's request is used.
    ///
    /// # Errors
    /// The path is none of these, or the target or the host is missing or malformed.
    pub fn parse(request: &ReceivedRequest<'a>) -> Result<DecisionQuery<'a>, DecisionQueryError> {
        let path = path_of(request.target);
        // Proxies route by the resolved path, and forward the path as it was sent.
        let is_file =
            path == TDMREP.as_bytes() || crate::robots::reaches_robots_txt(request.target);
        let (protocol, own_target) = match path.strip_prefix(DECIDE_PREFIX) {
            Some(b"nginx") => (QueryProtocol::Nginx, None),
            Some(b"answer") => (QueryProtocol::Answer, None),
            Some(b"forward-auth") => (QueryProtocol::ForwardAuth, None),
            Some(rest) if rest.starts_with(b"envoy/") => (
                QueryProtocol::Envoy,
                Some(&request.target[DECIDE_PREFIX.len() + b"envoy".len()..]),
            ),
            _ if is_file => (QueryProtocol::File, Some(request.target)),
            _ => return Err(DecisionQueryError::Unknown),
        };
        // nginx forwards its client's value of a field that it does not set, so the host is in
        // Host.
        let (method_field, target_field, host_field) = match protocol {
            QueryProtocol::ForwardAuth => (
                "x-forwarded-method",
                "X-Forwarded-Uri",
                Some("x-forwarded-host"),
            ),
            _ => ("x-original-method", "X-Original-URI", None),
        };
        let is_direct = own_target.is_some();
        let target = match own_target {
            Some(target) => target,
            None => header_value(request, target_field)
                .ok_or(DecisionQueryError::Missing(target_field))?,
        };
        let is_path =
            matches!(target, [b'/', ..] | b"*") || target.windows(3).any(|window| window == b"://");
        // A fragment is never sent (RFC 9112 section 3.2): origins read `#` in different ways.
        if !is_path || target.contains(&b'#') {
            return Err(DecisionQueryError::NoPath(target_field));
        }
        let host_field = host_field.filter(|_| !is_direct);
        let host = host_field
            .and_then(|name| header_value(request, name))
            .unwrap_or(request.host)
            .trim_ascii();
        if !crate::heads::is_host(host) {
            return Err(DecisionQueryError::NoHost(host_field.unwrap_or("Host")));
        }
        let method = header_value(request, method_field)
            .filter(|_| !is_direct)
            .unwrap_or(request.method.as_str().as_bytes());
        Ok(DecisionQuery {
            protocol,
            method,
            target,
            host,
        })
    }

    /// Whether the path of the request is exactly this one, without a query.
    pub fn asks_for_file(&self, file: &str) -> bool {
        path_of(self.target) == file.as_bytes()
    }

    /// The Location of this file for the client. A complete URL if the proxy names the scheme:
    /// Traefik would resolve a path with the address of crawlgate.
    pub fn location(&self, request: &ReceivedRequest<'_>, file: &'static str) -> HeaderValue {
        let scheme = header_value(request, "x-forwarded-proto");
        let scheme = scheme.filter(|scheme| matches!(*scheme, b"http" | b"https"));
        let url = scheme.filter(|_| self.protocol == QueryProtocol::ForwardAuth);
        let url = url.map(|scheme| [scheme, b"://", self.host, file.as_bytes()].concat());
        url.and_then(|url| HeaderValue::from_bytes(&url).ok())
            .unwrap_or(HeaderValue::from_static(file))
    }

    /// The head of the request that the proxy asks about: the fields of the proxy's request, with
    /// that method, target and host.
    pub fn head<'r>(&'r self, request: &'r ReceivedRequest<'a>) -> HeaderMapHead<'r> {
        let proxy_head = HeaderMapHead::new(request.method, request.target, None, request.headers)
            .prechecked(request.http);
        proxy_head.with_original_request(self.method, self.target, self.host)
    }

    /// The connection of the request: from the proxy, which is trusted to name the client in a
    /// field. A proxy on a Unix socket has the address 127.0.0.1.
    pub fn connection(request: &ReceivedRequest<'_>) -> ConnectionFacts<'static> {
        ConnectionFacts::cleartext(ConnectionPeer {
            address: request.peer.or(Some(UNIX_PEER)),
            is_trusted: true,
            ..ConnectionPeer::default()
        })
    }
}

fn header_value<'a>(request: &ReceivedRequest<'a>, name: &str) -> Option<&'a [u8]> {
    request.headers.get(name).map(HeaderValue::as_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::ArrivalTimes;
    use http::{HeaderMap, Method};
    use std::time::{Duration, Instant, SystemTime};

    type ParsedQuery = Result<(QueryProtocol, String, String, String), DecisionQueryError>;

    fn parse(target: &str, fields: &[(&'static str, &'static str)]) -> ParsedQuery {
        let mut headers = HeaderMap::new();
        fields.iter().for_each(|(name, value)| {
            headers.append(*name, HeaderValue::from_static(value));
        });
        let request = ReceivedRequest {
            method: &Method::GET,
            target: target.as_bytes(),
            host: b"decisions.internal",
            headers: &headers,
            peer: Some([127, 0, 0, 1].into()),
            http: "1.1",
            arrival: ArrivalTimes {
                arrived: SystemTime::UNIX_EPOCH,
                started: Instant::now(),
                monotonic: Duration::ZERO,
            },
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let query = DecisionQuery::parse(&request)?;
        let DecisionQuery {
            protocol,
            method,
            target,
            host,
        } = query;
        Ok((protocol, text(method), text(target), text(host)))
    }

    fn parsed(protocol: QueryProtocol, method: &str, target: &str, host: &str) -> ParsedQuery {
        Ok((protocol, method.into(), target.into(), host.into()))
    }

    #[test]
    fn each_protocol_reads_its_own_fields() {
        let fields = [
            ("x-original-uri", "/a?b=1"),
            ("x-original-method", "POST"),
            ("x-forwarded-uri", "/c"),
            ("x-forwarded-method", "HEAD"),
            ("x-forwarded-host", "shop.example"),
            ("x-original-host", "forged.example"),
        ];
        assert_eq!(
            parse("/decide/nginx", &fields),
            parsed(QueryProtocol::Nginx, "POST", "/a?b=1", "decisions.internal")
        );
        assert_eq!(
            parse("/decide/answer?x", &fields),
            parsed(
                QueryProtocol::Answer,
                "POST",
                "/a?b=1",
                "decisions.internal"
            )
        );
        assert_eq!(
            parse("/decide/forward-auth", &fields),
            parsed(QueryProtocol::ForwardAuth, "HEAD", "/c", "shop.example")
        );
        assert_eq!(
            parse("/decide/envoy/d?e", &fields),
            parsed(QueryProtocol::Envoy, "GET", "/d?e", "decisions.internal")
        );
        assert_eq!(
            parse("/robots.txt?x", &fields),
            parsed(
                QueryProtocol::File,
                "GET",
                "/robots.txt?x",
                "decisions.internal"
            )
        );
    }

    #[test]
    fn incomplete_query_names_the_field() {
        assert_eq!(
            parse("/decide/nginx", &[]),
            Err(DecisionQueryError::Missing("X-Original-URI"))
        );
        assert_eq!(
            parse("/decide/forward-auth", &[]),
            Err(DecisionQueryError::Missing("X-Forwarded-Uri"))
        );
        let no_path = [("x-original-uri", "example")];
        assert_eq!(
            parse("/decide/nginx", &no_path),
            Err(DecisionQueryError::NoPath("X-Original-URI"))
        );
        for host in [
            "",
            "shop.example:abc",
            "shop.example:123456",
            "a@shop.example",
            "shop.example/x",
            "a b",
            "a,b",
        ] {
            let fields = [("x-forwarded-uri", "/"), ("x-forwarded-host", host)];
            assert_eq!(
                parse("/decide/forward-auth", &fields),
                Err(DecisionQueryError::NoHost("x-forwarded-host")),
                "{host}"
            );
        }
        for path in ["/", "/page", "/decide/", "/decide/envoy", "/decide/nginx/x"] {
            assert_eq!(parse(path, &[]), Err(DecisionQueryError::Unknown), "{path}");
        }
    }
}
