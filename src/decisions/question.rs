//! [`Question`]: the request that a proxy asks about, read from the path and the fields of the
//! proxy's own request. [`Protocol`] lists the formats, which differ between proxies.

use crate::forwarding::Peer;
use crate::heads::path_of;
use crate::requests::{Connection, MappedRequest, Received};
use http::HeaderValue;
use std::net::{IpAddr, Ipv4Addr};

/// The address that stands for a peer on a Unix socket.
const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// The path below which questions are asked.
const DECIDE: &[u8] = b"/decide/";
/// The files that a proxy fetches from crawlgate in place of its origin.
pub const ROBOTS_TXT: &str = "/robots.txt";
pub const TDMREP: &str = "/.well-known/tdmrep.json";

/// The format of a question, named by the path of the proxy's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// `/decide/nginx`: the request is in `X-Original-Method` and `X-Original-URI`. A refusal is
    /// 403 without a body.
    Nginx,
    /// `/decide/answer`: the complete answer to a request that `/decide/nginx` refused, asked for
    /// in the same way.
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
#[derive(Debug, PartialEq, Eq)]
pub struct Question<'a> {
    /// The format of the question.
    pub protocol: Protocol,
    /// The method of the request.
    pub method: &'a [u8],
    /// The target of the request.
    pub target: &'a [u8],
    /// The host of the request.
    pub host: &'a [u8],
}

/// Why a question cannot be answered.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuestionError {
    /// A field that the protocol needs is missing.
    #[error("the field {0} is missing: the proxy has to pass on the request that it asks about")]
    Missing(&'static str),
    /// A field that has to be a path is none, or has a fragment.
    #[error("the field {0} has no path in it")]
    NoPath(&'static str),
    /// The host that the proxy routes by is missing, or is not a host. A name with other octets
    /// would be that of no site, and the request would pass.
    #[error("the field {0} has no host in it")]
    NoHost(&'static str),
    /// There is nothing at this path.
    #[error(
        "crawlgate answers /decide/nginx, /decide/answer, /decide/forward-auth, /decide/envoy/..., /robots.txt and \
         /.well-known/tdmrep.json here"
    )]
    Unknown,
}

impl<'a> Question<'a> {
    /// Reads what a proxy asks about from the path and the fields of its request. `envoy` and a
    /// file have method, host and target in the request itself (for `envoy`, the target is what
    /// follows in the path). `nginx` and `answer` have method and target in fields; `forward-auth`
    /// has the host in a field, too. Where the field of method or host is missing, that of the
    /// request counts.
    ///
    /// # Errors
    /// The path is none of these, or the target or the host is missing or not one.
    pub fn read(request: &Received<'a>) -> Result<Question<'a>, QuestionError> {
        let path = path_of(request.target);
        // Proxies route by what a path resolves to, and send it on as it came.
        let is_file =
            path == TDMREP.as_bytes() || crate::robots::reaches_robots_txt(request.target);
        let (protocol, own_target) = match path.strip_prefix(DECIDE) {
            Some(b"nginx") => (Protocol::Nginx, None),
            Some(b"answer") => (Protocol::Answer, None),
            Some(b"forward-auth") => (Protocol::ForwardAuth, None),
            Some(rest) if rest.starts_with(b"envoy/") => (
                Protocol::Envoy,
                Some(&request.target[DECIDE.len() + b"envoy".len()..]),
            ),
            _ if is_file => (Protocol::File, Some(request.target)),
            _ => return Err(QuestionError::Unknown),
        };
        // nginx passes on its client's value of a field that it does not set, so the host is in
        // Host.
        let (method_field, target_field, host_field) = match protocol {
            Protocol::ForwardAuth => (
                "x-forwarded-method",
                "X-Forwarded-Uri",
                Some("x-forwarded-host"),
            ),
            _ => ("x-original-method", "X-Original-URI", None),
        };
        let is_direct = own_target.is_some();
        let target = match own_target {
            Some(target) => target,
            None => field(request, target_field).ok_or(QuestionError::Missing(target_field))?,
        };
        let is_path =
            matches!(target, [b'/', ..] | b"*") || target.windows(3).any(|window| window == b"://");
        // A fragment is never sent (RFC 9112 section 3.2): origins disagree about what stands
        // behind `#`.
        if !is_path || target.contains(&b'#') {
            return Err(QuestionError::NoPath(target_field));
        }
        let host_field = host_field.filter(|_| !is_direct);
        let asked_for = host_field
            .and_then(|name| field(request, name))
            .unwrap_or(request.host)
            .trim_ascii();
        if !crate::heads::is_host(asked_for) {
            return Err(QuestionError::NoHost(host_field.unwrap_or("Host")));
        }
        let method = field(request, method_field)
            .filter(|_| !is_direct)
            .unwrap_or(request.method.as_str().as_bytes());
        Ok(Question {
            protocol,
            method,
            target,
            host: asked_for,
        })
    }

    /// Whether the path of the request in question is exactly this one, apart from a query.
    pub fn is_for(&self, file: &str) -> bool {
        path_of(self.target) == file.as_bytes()
    }

    /// The Location of this file for the client. A whole URL if the proxy names the scheme: Traefik
    /// would complete a path with the address of crawlgate.
    pub fn location(&self, request: &Received<'_>, file: &'static str) -> HeaderValue {
        let scheme = field(request, "x-forwarded-proto");
        let scheme = scheme.filter(|scheme| matches!(*scheme, b"http" | b"https"));
        let url = scheme.filter(|_| self.protocol == Protocol::ForwardAuth);
        let url = url.map(|scheme| [scheme, b"://", self.host, file.as_bytes()].concat());
        url.and_then(|url| HeaderValue::from_bytes(&url).ok())
            .unwrap_or(HeaderValue::from_static(file))
    }

    /// The head of the request in question: the fields of the proxy's request, with the method,
    /// target and host that it asks about.
    pub fn head<'r>(&'r self, request: &'r Received<'a>) -> MappedRequest<'r> {
        let asking = MappedRequest::new(request.method, request.target, None, request.headers)
            .checked(request.http);
        asking.about(self.method, self.target, self.host)
    }

    /// The connection that the request in question came by: from the proxy, which is trusted to
    /// name the client in a field. A proxy on a Unix socket has the address 127.0.0.1.
    pub fn connection(request: &Received<'_>) -> Connection<'static> {
        Connection::from(Peer {
            address: request.peer.or(Some(LOCAL)),
            is_trusted: true,
            ..Peer::default()
        })
    }
}

fn field<'a>(request: &Received<'a>, name: &str) -> Option<&'a [u8]> {
    request.headers.get(name).map(HeaderValue::as_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::Arrival;
    use http::{HeaderMap, Method};
    use std::time::{Duration, Instant, SystemTime};

    type Read = Result<(Protocol, String, String, String), QuestionError>;

    fn read(target: &str, fields: &[(&'static str, &'static str)]) -> Read {
        let mut headers = HeaderMap::new();
        fields.iter().for_each(|(name, value)| {
            headers.append(*name, HeaderValue::from_static(value));
        });
        let request = Received {
            method: &Method::GET,
            target: target.as_bytes(),
            host: b"decisions.internal",
            headers: &headers,
            peer: Some([127, 0, 0, 1].into()),
            http: "1.1",
            arrival: Arrival {
                arrived: SystemTime::UNIX_EPOCH,
                started: Instant::now(),
                lived: Duration::ZERO,
            },
        };
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
        let question = Question::read(&request)?;
        let Question {
            protocol,
            method,
            target,
            host,
        } = question;
        Ok((protocol, text(method), text(target), text(host)))
    }

    fn said(protocol: Protocol, method: &str, target: &str, host: &str) -> Read {
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
            read("/decide/nginx", &fields),
            said(Protocol::Nginx, "POST", "/a?b=1", "decisions.internal")
        );
        assert_eq!(
            read("/decide/answer?x", &fields),
            said(Protocol::Answer, "POST", "/a?b=1", "decisions.internal")
        );
        assert_eq!(
            read("/decide/forward-auth", &fields),
            said(Protocol::ForwardAuth, "HEAD", "/c", "shop.example")
        );
        assert_eq!(
            read("/decide/envoy/d?e", &fields),
            said(Protocol::Envoy, "GET", "/d?e", "decisions.internal")
        );
        assert_eq!(
            read("/robots.txt?x", &fields),
            said(Protocol::File, "GET", "/robots.txt?x", "decisions.internal")
        );
    }

    #[test]
    fn incomplete_questions_name_the_field() {
        assert_eq!(
            read("/decide/nginx", &[]),
            Err(QuestionError::Missing("X-Original-URI"))
        );
        assert_eq!(
            read("/decide/forward-auth", &[]),
            Err(QuestionError::Missing("X-Forwarded-Uri"))
        );
        let no_path = [("x-original-uri", "example")];
        assert_eq!(
            read("/decide/nginx", &no_path),
            Err(QuestionError::NoPath("X-Original-URI"))
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
                read("/decide/forward-auth", &fields),
                Err(QuestionError::NoHost("x-forwarded-host")),
                "{host}"
            );
        }
        for path in ["/", "/page", "/decide/", "/decide/envoy", "/decide/nginx/x"] {
            assert_eq!(read(path, &[]), Err(QuestionError::Unknown), "{path}");
        }
    }
}
