//! The text that the command `demo` prints after the start: commands to try, with the ports that
//! the demo listens on. The template is `guide.txt`.

use crate::server::BoundAddresses;
use askama::Template;
use std::env;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;

/// Prints the guide on standard output.
pub fn print_guide(bound: &BoundAddresses, policies: &Path, control: &Path, access_log: &Path) {
    let text = render_guide(bound, policies, control, access_log, &program_word());
    // A closed output is no reason to stop serving.
    let _ = std::io::stdout().write_all(text.as_bytes());
    let _ = std::io::stdout().flush();
}

/// The program as a word of the shell: its bare name if the shell found it in the path, else the
/// path of the binary, relative to the current directory if it is below.
fn program_word() -> String {
    let called = env::args_os().next().unwrap_or_default();
    if !called.to_string_lossy().contains('/') {
        return "crawlgate".into();
    }
    let path = env::current_exe().unwrap_or_else(|_| called.into());
    let here = env::current_dir().unwrap_or_default();
    shell_quote(path.strip_prefix(&here).unwrap_or(&path))
}

/// A path as a word of the shell, in single quotes if it needs them.
fn shell_quote(path: &Path) -> String {
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
struct GuideText<'a> {
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

/// Renders the commands to paste, with the first URL of the demo. For https they do not check the
/// certificate. Without an admin listener there are no metrics, status and access log.
fn render_guide(
    bound: &BoundAddresses,
    policies: &Path,
    control: &Path,
    access_log: &Path,
    program: &str,
) -> String {
    let url = bound.urls().next().unwrap_or_default();
    let mut guide = GuideText {
        url: &url,
        site: url.split("://").nth(1).unwrap_or_default(),
        curl: "curl",
        wget: "wget",
        program,
        policies: shell_quote(policies),
        control: shell_quote(control),
        admin: bound.admin,
        access_log: shell_quote(access_log),
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
    fn commands_use_protocol_of_the_demo() {
        for (is_tls, command) in [
            (false, "curl -i -A GPTBot http://127.0.0.1:1/"),
            (true, "curl -k -i -A GPTBot https://127.0.0.1:1/"),
        ] {
            let bound = BoundAddresses {
                listen: vec![(is_tls, SocketAddr::from(([127, 0, 0, 1], 1)))],
                decisions: Vec::new(),
                admin: None,
            };
            let place = Path::new("/tmp/place");
            let text = render_guide(&bound, place, place, place, "crawlgate");
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
