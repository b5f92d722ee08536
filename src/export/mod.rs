//! [`export`] writes a policy as native configuration of nginx, HAProxy, Caddy or Apache httpd, for
//! sites that do not run crawlgate itself. [`Rules`] is the part of the policy that such a
//! configuration can express; [`Rules::left_out`] lists the rest. Each server has a file here, and
//! `regex` writes path patterns and crawler names as regular expressions.

mod apache;
mod caddy;
mod haproxy;
mod nginx;
mod regex;
mod rules;

#[cfg(feature = "internals")]
pub use nginx::parts as nginx_parts;
#[cfg(feature = "internals")]
pub use rules::TagRule;
pub use rules::{Rules, Style};

use askama::Template;
use std::collections::BTreeMap;

/// The server that a configuration is for.
#[derive(Clone, Copy)]
pub enum Server {
    /// nginx 1.9 or later.
    Nginx,
    /// HAProxy 2.4 or later.
    Haproxy,
    /// Caddy 2.6 or later.
    Caddy,
    /// Apache httpd 2.4.26 or later, with mod_headers.
    Apache,
}

/// A regular expression for the paths of challenges, which are never gated: see
/// `verdict::is_challenge`.
const CHALLENGE: &str = "/[.]well-known/(acme-challenge/[A-Za-z0-9_-]{1,256}|\
                         pki-validation/[A-Za-z0-9_-][A-Za-z0-9._-]{0,127})";

/// Files by their names.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The files of a configuration. They name each other by `directory`, where they will be.
pub fn export(rules: &Rules, server: Server, directory: &str) -> Files {
    let mut files: Files = rules
        .files
        .iter()
        .map(|file| (file.name().to_owned(), file.body.clone()))
        .collect();
    match server {
        Server::Nginx => {
            let (http, server) = nginx::parts(rules, Style::Plain, directory);
            files.insert("crawlgate-http.conf".into(), http.into());
            files.insert("crawlgate-server.conf".into(), server.into());
        }
        Server::Haproxy => haproxy::write(rules, directory, &mut files),
        Server::Caddy => caddy::write(rules, directory, &mut files),
        Server::Apache => apache::write(rules, directory, &mut files),
    }
    files
}

/// The lines of an HAProxy frontend in a style of choice, for a buffer of this size, and the files
/// that they read.
#[cfg(feature = "internals")]
pub fn haproxy_part(
    rules: &Rules,
    style: Style,
    buffer: usize,
    directory: &str,
) -> (String, Files) {
    let mut files = Files::new();
    let text = haproxy::part(rules, (style, buffer), directory, &mut files);
    (text, files)
}

/// The comment above each file.
fn heading(rules: &Rules, place: &str) -> String {
    let mut text = format!(
        "# The policy `{}` as crawlgate exported it, {place}.\n",
        rules.site
    );
    if !rules.left_out.is_empty() {
        text += "# Not in it, because this server cannot say it:\n";
    }
    text + &listed(&rules.left_out) + "\n"
}

/// Comments, one for each item.
fn listed(items: &[String]) -> String {
    items.iter().map(|item| format!("# - {item}\n")).collect()
}

/// The text of a file.
fn text(template: &impl Template) -> String {
    // Into memory: this cannot fail.
    template.render().unwrap_or_default()
}

/// The text of a word in double quotes.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// A word in double quotes.
fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}
