//! [`AdminApp`]: the HTTP application of the read-only admin listener, with the dashboard,
//! `/metrics`, `/healthz`, `/readyz` and the read API (JSON).
//!
//! A request is answered only if its Host is an IP address, `localhost`, a name without a dot, or a
//! name of `admin_hosts`.
//! This stops DNS rebinding, in which an attacker's web page reads the responses through an
//! operator's browser: the requests of such a page have the attacker's domain as Host. `/healthz`
//! and `/readyz` reveal nothing. So requests for these two may have any Host, or none, as in health
//! checks over HTTP/1.0.

use super::dashboard::{Dashboard, PageError};
use super::query::{QueryError, QueryParameters};
use super::{Operations, violations};
use ::http::{HeaderValue, Method, Response, StatusCode, header};
use pingora_core::apps::http_app::ServeHttp;
use pingora_core::protocols::http::ServerSession;
use serde::Serialize;
use std::net::IpAddr;
use std::sync::Arc;

use PageError::*;

/// The Content-Security-Policy of pages: they may load their style and icon, and run no script.
const PAGE_CSP: &str = "default-src 'none'; style-src 'self'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

/// The application behind the admin listener, for Pingora's `ServerApp`; cheap to clone.
#[derive(Clone)]
pub struct AdminApp {
    operations: Arc<Operations>,
    dashboard: Arc<Dashboard>,
    hosts: Arc<[String]>,
}

impl AdminApp {
    /// `hosts` are the names of `admin_hosts`.
    pub fn new(operations: Arc<Operations>, hosts: &[String]) -> AdminApp {
        AdminApp {
            dashboard: Arc::new(Dashboard::new(operations.clone())),
            operations,
            hosts: hosts.into(),
        }
    }

    /// Whether a Host (with or without port) is an IP address, `localhost`, a name without a dot, as
    /// in container networks, or one of `admin_hosts`. No foreign DNS zone can have a name without a
    /// dot.
    fn is_own_host(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[') {
            Some(inner) => inner.split(']').next().unwrap_or(""),
            None => host.rsplit_once(':').map_or(host, |(name, _)| name),
        };
        name.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || (!name.is_empty() && !name.contains('.'))
            || self.hosts.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// The response, without Pingora's types. `path` includes the query. 421 for a Host that is not
    /// local (see the module), 405 for methods other than GET and HEAD, 404 for unknown paths. The
    /// response to HEAD has the body of GET.
    pub(super) fn respond(
        &self,
        method: &Method,
        host: Option<&str>,
        path: &str,
    ) -> Response<Vec<u8>> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        if !matches!(path, "/healthz" | "/readyz")
            && !host.is_some_and(|host| self.is_own_host(host))
        {
            return text_response(
                StatusCode::MISDIRECTED_REQUEST,
                "Open this page under the address of the admin listener, or as localhost. To use another name, add it to \
                 admin_hosts in crawlgate.yaml.\n",
            );
        }
        if !matches!(*method, Method::GET | Method::HEAD) {
            let mut refusal = text_response(
                StatusCode::METHOD_NOT_ALLOWED,
                "Only GET and HEAD work here.\n",
            );
            refusal
                .headers_mut()
                .insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refusal;
        }
        match path {
            "/healthz" => text_response(StatusCode::OK, "ok\n"),
            "/readyz" if self.operations.is_ready() => text_response(StatusCode::OK, "ready\n"),
            "/readyz" => text_response(StatusCode::SERVICE_UNAVAILABLE, "not ready\n"),
            "/metrics" => {
                self.operations.update_metrics();
                let metrics = &self.operations.instance.metrics;
                response_of_type(
                    StatusCode::OK,
                    "text/plain; version=0.0.4; charset=utf-8",
                    metrics.render().into(),
                )
            }
            "/api/status" => json_or_bad_request(
                QueryParameters::parse(query, &[]).map(|_| self.operations.status()),
            ),
            "/api/violations" => {
                json_or_bad_request(violations::list_violations(&self.operations, query))
            }
            _ => match self.dashboard.render_path(path, query) {
                Some(page) => page_or_problem(page),
                None => text_response(
                    StatusCode::NOT_FOUND,
                    "Not found. Here are: /, /metrics, /healthz, /readyz, /api/status and /api/violations.\n",
                ),
            },
        }
    }
}

#[async_trait::async_trait]
impl ServeHttp for AdminApp {
    /// Responds in a thread that may block. The response to HEAD has no body, and the length of the
    /// one to GET. 500 if rendering panics.
    async fn response(&self, session: &mut ServerSession) -> Response<Vec<u8>> {
        let request = session.req_header();
        let host = request
            .headers
            .get(header::HOST)
            .and_then(|host| host.to_str().ok())
            .or_else(|| request.uri.authority().map(|host| host.as_str()));
        let head = request.method == Method::HEAD;
        let target = request
            .uri
            .path_and_query()
            .map_or("/", |target| target.as_str());
        let app = self.clone();
        let method = request.method.clone();
        let host = host.map(str::to_owned);
        let target = target.to_owned();
        // A page may wait for the shared store, and `/healthz` must not wait for the page.
        let answer =
            tokio::task::spawn_blocking(move || app.respond(&method, host.as_deref(), &target));
        let mut response = answer.await.unwrap_or_else(|error| {
            tracing::error!("cannot answer on the admin listener: {error}");
            text_response(
                StatusCode::INTERNAL_SERVER_ERROR,
                "This page failed. The log has the reason.\n",
            )
        });
        // Pingora does not set it.
        let length = HeaderValue::from(response.body().len());
        response
            .headers_mut()
            .insert(header::CONTENT_LENGTH, length);
        if head {
            response.body_mut().clear();
        }
        response
    }
}

/// The value as JSON, or 400 with the mistakes of the query.
fn json_or_bad_request(value: Result<impl Serialize, QueryError>) -> Response<Vec<u8>> {
    match value {
        Ok(value) => json_response(&value),
        Err(error) => text_response(StatusCode::BAD_REQUEST, &error.to_string()),
    }
}

/// The page with its headers, or a plain text with the status for the error.
fn page_or_problem(page: Result<(&'static str, String), PageError>) -> Response<Vec<u8>> {
    let (content_type, body) = match page {
        Ok(page) => page,
        Err(problem) => {
            let status = match problem {
                Query(_) => StatusCode::BAD_REQUEST,
                NotFound(_) => StatusCode::NOT_FOUND,
                History(_) => StatusCode::SERVICE_UNAVAILABLE,
                Template(_) => StatusCode::INTERNAL_SERVER_ERROR,
            };
            return text_response(status, &format!("{}\n", problem.to_string().trim_end()));
        }
    };
    let mut response = response_of_type(StatusCode::OK, content_type, body.into());
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(PAGE_CSP),
    );
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    );
    response
}

fn json_response(value: &impl Serialize) -> Response<Vec<u8>> {
    // The keys and paths are texts, so writing cannot fail.
    let mut body = serde_json::to_vec_pretty(value).unwrap_or_default();
    body.push(b'\n');
    response_of_type(StatusCode::OK, "application/json", body)
}

fn text_response(status: StatusCode, body: &str) -> Response<Vec<u8>> {
    response_of_type(
        status,
        "text/plain; charset=utf-8",
        body.as_bytes().to_vec(),
    )
}

/// A response with this content type that is not stored by caches, not sniffed, and loads nothing.
fn response_of_type(
    status: StatusCode,
    content_type: &'static str,
    body: Vec<u8>,
) -> Response<Vec<u8>> {
    // The fields are valid, so building cannot fail.
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, content_type)
        .header(header::CACHE_CONTROL, "no-store")
        .header(header::X_CONTENT_TYPE_OPTIONS, "nosniff")
        .header(header::CONTENT_SECURITY_POLICY, "default-src 'none'")
        .body(body)
        .unwrap_or_default()
}
