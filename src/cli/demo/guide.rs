//! The guide that `demo` prints after the start: commands to try, with the ports that the demo
//! listens on. The template is `guide.txt`.

use crate::server::Bound;
use askama::Template;
use std::env;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;

/// Prints the guide on standard output.
pub fn print(bound: &Bound, policies: &Path, control: &Path, access_log: &Path) {
    let text = text(bound, policies, control, access_log, &program());
    // A closed output is no reason to stop serving.
    let _ = std::io::stdout().write_all(text.as_bytes());
    let _ = std::io::stdout().flush();
}

/// How this program was called, for commands that are pasted: its bare name if it was found in the
/// path, else the path of the binary, relative to the current directory where it is below.
fn program() -> String {
    let called = env::args_os().next().unwrap_or_default();
    if !called.to_string_lossy().contains('/') {
        return "crawlgate".into();
    }
    let path = env::current_exe().unwrap_or_else(|_| called.into());
    let here = env::current_dir().unwrap_or_default();
    quoted(path.strip_prefix(&here).unwrap_or(&path))
}

/// A path as a word of the shell: in single quotes if it has characters that the shell may
/// interpret.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let mut signs = text.chars();
    let is_plain = signs.all(|sign| sign.is_ascii_alphanumeric() || "-_./+@%:=".contains(sign));
    if is_plain && !text.is_empty() {
        text
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[derive(Template)]
#[template(path = "guide.txt")]
struct Guide<'a> {
    url: &'a str,
    /// The host of the site, with its port.
    site: &'a str,
    curl: &'a str,
    wget: &'a str,
    program: &'a str,
    policies: String,
    control: String,
    admin: Option<SocketAddr>,
    access_log: String,
}

/// The guide: commands to paste, with the first URL that the demo serves and its paths as words of
/// the shell. For https the commands do not check the certificate. Metrics, status and access log
/// are left out where there is no admin listener. `program` is how crawlgate was called.
fn text(
    bound: &Bound,
    policies: &Path,
    control: &Path,
    access_log: &Path,
    program: &str,
) -> String {
    let url = bound.urls().next().unwrap_or_default();
    let mut guide = Guide {
        url: &url,
        site: url.split("://").nth(1).unwrap_or_default(),
        curl: "curl",
        wget: "wget",
        program,
        policies: quoted(policies),
        control: quoted(control),
        admin: bound.admin,
        access_log: quoted(access_log),
    };
    // The certificate of the demo is self-signed.
    if url.starts_with("https:") {
        guide.curl = "curl -k";
        guide.wget = "wget --no-check-certificate";
    }
    format!("{guide}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_speak_the_protocol_of_the_demo() {
        for (is_tls, command) in [
            (false, "curl -i -A GPTBot http://127.0.0.1:1/"),
            (true, "curl -k -i -A GPTBot https://127.0.0.1:1/"),
        ] {
            let bound = Bound {
                listen: vec![(is_tls, SocketAddr::from(([127, 0, 0, 1], 1)))],
                decisions: Vec::new(),
                admin: None,
            };
            let place = Path::new("/tmp/place");
            let text = text(&bound, place, place, place, "crawlgate");
            assert!(
                text.contains(command) && text.contains("--host 127.0.0.1:1 "),
                "{text}"
            );
            assert!(
                !text.contains("{curl}") && !text.contains("{wget}"),
                "{text}"
            );
        }
    }
}
