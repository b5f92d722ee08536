//! The rows of the table: requests in the order in which each entry point is asked.

use super::world::EntryPoint;
use crate::proxy::support::{BINGBOT, BROWSER, GPTBOT};
use http::uri::PathAndQuery;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Client,
    Origin,
}

/// A request, and the status that it gets.
#[derive(Clone, Debug)]
pub struct Row {
    pub method: &'static str,
    pub host: &'static str,
    pub target: String,
    pub fields: Vec<(&'static str, &'static str)>,
    pub status: u16,
    /// Who ends the response in the middle.
    pub broken_by: Option<Side>,
    /// Whether a proxy alone answers it.
    needs_proxy: bool,
}

impl Row {
    /// Whether an entry point can be asked for it.
    pub fn is_for(&self, entry_point: EntryPoint) -> bool {
        match entry_point {
            // Authorities ask a proxy, and an application answers hosts that no policy names in its
            // own way.
            EntryPoint::Tower | EntryPoint::Decisions if self.needs_proxy => false,
            // The `http` crate refuses such a target before crawlgate sees it.
            EntryPoint::Http2 | EntryPoint::Tower
                if PathAndQuery::try_from(self.target.as_str()).is_err() =>
            {
                false
            }
            // The response is another server's.
            EntryPoint::Decisions if self.broken_by.is_some() => false,
            // Proxies fetch robots.txt there with GET and HEAD.
            EntryPoint::Decisions => !self.is_file() || matches!(self.method, "GET" | "HEAD"),
            _ => true,
        }
    }

    pub fn is_file(&self) -> bool {
        self.target.starts_with("/robots.txt")
    }
}

fn row(
    method: &'static str,
    host: &'static str,
    target: &str,
    agent: &'static str,
    status: u16,
) -> Row {
    let fields = if agent.is_empty() {
        Vec::new()
    } else {
        vec![("user-agent", agent)]
    };
    Row {
        method,
        host,
        target: target.to_owned(),
        fields,
        status,
        broken_by: None,
        needs_proxy: false,
    }
}

/// A person's request to the shop.
pub fn visit(target: &str) -> Row {
    get(SHOP, target, BROWSER, 200)
}

fn get(host: &'static str, target: &str, agent: &'static str, status: u16) -> Row {
    row("GET", host, target, agent, status)
}

impl Row {
    fn with(mut self, name: &'static str, value: &'static str) -> Row {
        self.fields.push((name, value));
        self
    }

    fn broken_by(self, side: Side) -> Row {
        Row {
            broken_by: Some(side),
            ..self
        }
    }

    fn of_a_proxy(self) -> Row {
        Row {
            needs_proxy: true,
            ..self
        }
    }
}

const SHOP: &str = "shop.example";
const CURL: &str = "curl/8.5.0";
const UNLISTED: &str = "Mozilla/5.0 (compatible; UnknownBot/1.0; +https://bot.example/)";
const GOOGLEBOT: &str = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
const AHREFSBOT: &str = "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)";
const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const ACCEPTS: [&str; 3] = ["text/html", "application/json", "text/plain"];

/// `etag` is that of the robots.txt of the shop.
pub fn rows(etag: &'static str) -> Vec<Row> {
    let mut rows = vec![
        get(SHOP, "/robots.txt", GPTBOT, 200),
        get(SHOP, "/robots.txt?x", BROWSER, 200),
        row("HEAD", SHOP, "/robots.txt", BINGBOT, 200),
        row("POST", SHOP, "/robots.txt", BROWSER, 405),
        get(SHOP, "/robots.txt", BROWSER, 304).with("if-none-match", etag),
        row("HEAD", SHOP, "/robots.txt", BROWSER, 304).with("if-none-match", etag),
        get(SHOP, "/robots.txt", GOOGLEBOT, 200).with("if-none-match", "\"other\""),
        get(SHOP, "/robots.txt", UNLISTED, 200)
            .with("if-modified-since", "Thu, 01 Jan 1970 00:00:00 GMT"),
        get(SHOP, "/.well-known/acme-challenge/token", BROWSER, 200).of_a_proxy(),
        get(SHOP, "/.well-known/acme-challenge/other", BROWSER, 404).of_a_proxy(),
        row(
            "HEAD",
            SHOP,
            "/.well-known/acme-challenge/token",
            BROWSER,
            200,
        )
        .of_a_proxy(),
        get(
            "paused.example",
            "/.well-known/acme-challenge/token",
            GPTBOT,
            200,
        )
        .of_a_proxy(),
        get(
            "paused.example",
            "/.well-known/pki-validation/fileauth.txt",
            BROWSER,
            200,
        ),
        get(
            "paused.example",
            "/.well-known/pki-validation/../../article",
            BROWSER,
            503,
        ),
        get(
            "paused.example",
            "/.well-known/pki-validation/a/b",
            BROWSER,
            503,
        ),
        row(
            "PUT",
            "paused.example",
            "/.well-known/pki-validation/fileauth.txt",
            BROWSER,
            503,
        ),
        get(
            "news.example",
            "/.well-known/pki-validation/fileauth.txt",
            GPTBOT,
            200,
        ),
        get(
            SHOP,
            "/.well-known/pki-validation/fileauth.txt",
            GPTBOT,
            200,
        ),
        row(
            "HEAD",
            SHOP,
            "/.well-known/pki-validation/fileauth.txt",
            GPTBOT,
            200,
        ),
        row(
            "POST",
            SHOP,
            "/.well-known/pki-validation/fileauth.txt",
            GPTBOT,
            403,
        ),
        get(
            SHOP,
            "/.well-known/pki-validation/..%2f..%2fpage",
            GPTBOT,
            403,
        ),
        get(
            "unknown.example",
            "/.well-known/pki-validation/fileauth.txt",
            GPTBOT,
            200,
        )
        .of_a_proxy(),
        get(
            "paused.example",
            "/.well-known/acme-challenge/../../article",
            BROWSER,
            503,
        ),
        get(
            "paused.example",
            "/.well-known/acme-challenge/",
            BROWSER,
            503,
        ),
        row(
            "PUT",
            "paused.example",
            "/.well-known/acme-challenge/token",
            BROWSER,
            503,
        ),
        row(
            "DELETE",
            "paused.example",
            "/.well-known/acme-challenge/token",
            BROWSER,
            503,
        ),
        get("paused.example", "/", GPTBOT, 503),
        get("paused.example", "/", BROWSER, 503),
        row("HEAD", "paused.example", "/", BROWSER, 503),
        row("POST", "paused.example", "/", BROWSER, 503),
        get("paused.example", "/robots.txt", BINGBOT, 200),
        get("news.example", "/article", GPTBOT, 401),
        get("news.example", "/article", GPTBOT, 200).with("authorization", "License abc"),
        get(
            "news.example",
            "/.well-known/acme-challenge/../../article",
            GPTBOT,
            401,
        ),
        row(
            "PUT",
            "news.example",
            "/.well-known/acme-challenge/token",
            GPTBOT,
            401,
        ),
        get("news.example", "/license.xml", GPTBOT, 200),
        get("news.example", "/article", BROWSER, 200),
        get("unknown.example", "/", GPTBOT, 200),
        get("unknown.example", "/robots.txt", BROWSER, 200).of_a_proxy(),
        get(SHOP, "/broken", BROWSER, 200).broken_by(Side::Origin),
        get(SHOP, "/large", BROWSER, 200).broken_by(Side::Client),
        get(SHOP, "/large", GOOGLEBOT, 200).broken_by(Side::Client),
    ];
    for target in [
        "/",
        "/page",
        "/page?a=b",
        "/x/../private/a",
        "//page",
        "/%70age",
        "/a%20b",
    ] {
        rows.push(get(SHOP, target, GPTBOT, 403));
        rows.push(get(SHOP, target, BROWSER, 200));
    }
    // No proxy asks about a target in absolute form.
    for (target, _) in TARGETS
        .into_iter()
        .filter(|(target, _)| target.starts_with('/'))
    {
        rows.push(get(SHOP, target, GPTBOT, 403));
        rows.push(get(SHOP, target, BROWSER, 200));
    }
    for method in ["HEAD", "POST", "PUT", "DELETE"] {
        rows.push(row(method, SHOP, "/page", GPTBOT, 403));
    }
    for accept in ACCEPTS {
        rows.push(get(SHOP, "/page", GPTBOT, 403).with("accept", accept));
    }
    for agent in ["", CURL, UNLISTED, GOOGLEBOT] {
        rows.push(get(SHOP, "/public", agent, 200));
    }
    for agent in [UNLISTED, GOOGLEBOT] {
        rows.push(get(SHOP, "/private/a", agent, 403));
    }
    rows.push(get(SHOP, "/a.pdf", BROWSER, 200));
    rows.push(row("HEAD", SHOP, "/a.pdf", BROWSER, 200));
    rows.push(get("SHOP.example:80", "/page", GPTBOT, 403));
    rows.push(get("shop.example.", "/page", GPTBOT, 403));
    // Over HTTP/2 it comes in more pieces than a head may have fields.
    rows.push(
        get(SHOP, "/public", BROWSER, 200).with("cookie", vec!["a=b"; 150].join("; ").leak()),
    );
    // bingbot has read how long it has to wait. Its first request to a page may come, the next
    // comes too soon.
    rows.push(get(SHOP, "/robots.txt", BINGBOT, 200));
    rows.push(get(SHOP, "/slow/1", BINGBOT, 200));
    rows.push(get(SHOP, "/slow/2", BINGBOT, 429));
    rows.push(row("HEAD", SHOP, "/slow/3", BINGBOT, 429));
    // A trap marks its client under the name that it has.
    for agent in [AHREFSBOT, UNLISTED] {
        rows.push(get(SHOP, "/public", agent, 200));
        rows.push(get(SHOP, "/trap/", agent, 403));
        rows.push(get(SHOP, "/public", agent, 403));
        rows.push(row("HEAD", SHOP, "/public", agent, 403));
    }
    rows.push(get(SHOP, "/public", BROWSER, 200));
    rows.push(get(SHOP, "/page", BROWSER, 200).with("referer", "https://search.example/"));
    for agent in [BROWSER, GPTBOT] {
        let status = if agent == GPTBOT { 403 } else { 200 };
        for trace in [TRACE, "00-1"] {
            rows.push(get(SHOP, "/page", agent, status).with("traceparent", trace));
        }
        rows.push(
            get(SHOP, "/page", agent, status)
                .with("traceparent", TRACE)
                .with("traceparent", TRACE),
        );
    }
    rows
}

/// Targets with all bytes that a client may send, and each as the origin gets it.
pub const TARGETS: [(&str, &str); 8] = [
    (
        "/!$&'()*+,-./09:;=@AZ[\\]^_az{|}~%\"\u{e9}",
        "/!$&'()*+,-./09:;=@AZ[\\]^_az{|}~%\"\u{e9}",
    ),
    (
        "/?!$&'()*+,-./09:;=?@AZ[\\]^_`az{|}~%\u{e9}",
        "/?!$&'()*+,-./09:;=?@AZ[\\]^_`az{|}~%\u{e9}",
    ),
    ("/<a>", "/%3Ca%3E"),
    ("/a`b?`", "/a%60b?`"),
    ("/a\"?q=\"b\"", "/a\"?q=%22b%22"),
    ("/?q=<b>", "/?q=%3Cb%3E"),
    ("http://shop.example?q=<`>", "/?q=%3C`%3E"),
    ("http://SHOP.example/a", "/a"),
];

/// Requests to a listener that leads them to https.
pub fn redirected() -> Vec<Row> {
    vec![
        get(SHOP, "/page?a=b", BROWSER, 301),
        get(SHOP, "/page", GPTBOT, 301),
        get("shop.example:8080", "/", BROWSER, 301),
        get("unknown.example", "/", GPTBOT, 301),
        row("HEAD", SHOP, "/page", BROWSER, 301),
        row("POST", SHOP, "/page", BROWSER, 308),
        get(SHOP, "/robots.txt", GPTBOT, 200),
        get(SHOP, "/.well-known/acme-challenge/token", BROWSER, 200),
        get(SHOP, "/.well-known/acme-challenge/other", BROWSER, 404),
        row(
            "PUT",
            SHOP,
            "/.well-known/acme-challenge/token",
            BROWSER,
            308,
        ),
        get(
            SHOP,
            "/.well-known/pki-validation/fileauth.txt",
            GPTBOT,
            200,
        ),
        get(SHOP, "/.well-known/pki-validation/../a", GPTBOT, 301),
        row(
            "PUT",
            SHOP,
            "/.well-known/pki-validation/fileauth.txt",
            BROWSER,
            308,
        ),
        get(SHOP, "/a#b", BROWSER, 400),
    ]
}
