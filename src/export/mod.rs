//! [`export`] writes a policy as native configuration of nginx, HAProxy, Caddy or Apache httpd, for
//! sites that do not run crawlgate itself. [`Rules`] is the part of the policy that such a
//! configuration can express; [`Rules::left_out`] lists the rest. Each server has a template in
//! `templates` that shows what its files look like, and a module with what the template asks for.
//! `regex` writes path patterns and crawler names as regular expressions.

mod apache;
mod caddy;
mod haproxy;
mod nginx;
mod regex;
mod rules;

#[cfg(feature = "internals")]
pub use haproxy::part as haproxy_part;
#[cfg(feature = "internals")]
pub use nginx::parts as nginx_parts;
#[cfg(feature = "internals")]
pub use regex::{marker, path, regexes};
pub use rules::Rules;
#[cfg(feature = "internals")]
pub use rules::TagRule;

use askama::Template;
use std::collections::BTreeMap;

/// The server that a configuration is for: nginx 1.9, HAProxy 2.4, Caddy 2.6, Apache httpd 2.4.26
/// with mod_headers, or later.
#[derive(Clone, Copy, clap::ValueEnum)]
#[allow(missing_docs)]
pub enum Server {
    Nginx,
    Haproxy,
    Caddy,
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
            let (http, server) = nginx::parts(rules, directory);
            files.insert("crawlgate-http.conf".into(), http.into());
            files.insert("crawlgate-server.conf".into(), server.into());
        }
        Server::Haproxy => {
            let (frontend, read) = haproxy::part(rules, haproxy::BUFFER, directory);
            files.extend(read);
            files.insert("crawlgate.cfg".into(), frontend.into());
        }
        Server::Caddy => {
            let snippet = caddy::Snippet { rules, directory };
            files.insert("crawlgate.caddy".into(), text(&snippet).into());
        }
        Server::Apache => {
            for (name, directory) in [
                ("crawlgate.conf", Some(directory)),
                ("crawlgate.htaccess", None),
            ] {
                let lines = apache::Lines { rules, directory };
                files.insert(name.into(), text(&lines).into());
            }
        }
    }
    files
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
