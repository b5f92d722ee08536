//! [`export_config`] writes a policy as native configuration of nginx, HAProxy, Caddy or Apache
//! httpd, for sites that do not run crawlgate itself. [`ExportedPolicy`] is the part of the policy
//! that such a configuration can express; [`ExportedPolicy::left_out`] lists the rest. Each server
//! has a template in `templates`, and a module with the functions that the template calls. `regex`
//! writes path patterns and crawler names as regular expressions.

mod apache;
mod caddy;
mod conversion;
mod haproxy;
mod nginx;
mod regex;
mod rules;

#[cfg(feature = "internals")]
pub use haproxy::frontend_config;
#[cfg(feature = "internals")]
pub use nginx::http_and_server_config;
#[cfg(feature = "internals")]
pub use regex::{marker_steps, path_steps, split_regexes};
pub use rules::ExportedPolicy;
#[cfg(feature = "internals")]
pub use rules::TagRule;

use std::collections::BTreeMap;

/// The server that a configuration is for: nginx 1.9, HAProxy 2.4, Caddy 2.6, Apache httpd 2.4.26
/// with mod_headers, or later.
#[derive(Clone, Copy, clap::ValueEnum)]
#[allow(missing_docs)]
pub enum ExportTarget {
    Nginx,
    Haproxy,
    Caddy,
    Apache,
}

/// A regular expression for the paths of certificate challenges, which are never blocked: see
/// `verdict::is_challenge`.
const CHALLENGE_PATH: &str = "/[.]well-known/(acme-challenge/[A-Za-z0-9_-]{1,256}|\
                         pki-validation/[A-Za-z0-9_-][A-Za-z0-9._-]{0,127})";

/// Files by their names.
pub type ConfigFiles = BTreeMap<String, Vec<u8>>;

/// The files of a configuration, which will be in `directory`.
pub fn export_config(rules: &ExportedPolicy, server: ExportTarget, directory: &str) -> ConfigFiles {
    let mut files: ConfigFiles = rules
        .files
        .iter()
        .map(|file| (file.name().to_owned(), file.body.clone()))
        .collect();
    match server {
        ExportTarget::Nginx => {
            let (http, server) = nginx::http_and_server_config(rules, directory);
            files.insert("crawlgate-export-http.conf".into(), http.into());
            files.insert("crawlgate-export-server.conf".into(), server.into());
        }
        ExportTarget::Haproxy => {
            let (frontend, read) =
                haproxy::frontend_config(rules, haproxy::DEFAULT_BUFFER, directory);
            files.extend(read);
            files.insert("crawlgate.cfg".into(), frontend.into());
        }
        ExportTarget::Caddy => {
            files.insert(
                "crawlgate.caddy".into(),
                caddy::CaddySnippet { rules, directory }.to_string().into(),
            );
        }
        ExportTarget::Apache => {
            for (name, directory) in [
                ("crawlgate.conf", Some(directory)),
                ("crawlgate.htaccess", None),
            ] {
                files.insert(
                    name.into(),
                    apache::ApacheConfig { rules, directory }.to_string().into(),
                );
            }
        }
    }
    files
}

/// Escapes a word for double quotes.
fn escape_quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
