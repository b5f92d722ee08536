//! The guide that `demo` prints after the start: commands to try, with the ports that the demo
//! listens on.

use crate::server::Bound;
use std::env;
use std::io::Write as _;
use std::path::Path;

/// Prints the guide on standard output.
pub fn print(bound: &Bound, policies: &Path, control: &Path, access_log: &Path) {
    let text = text(bound, policies, control, access_log, &program());
    // A closed output is no reason to stop serving.
    let _ = std::io::stdout().write_all(text.as_bytes());
    let _ = std::io::stdout().flush();
}

/// How this program was called, so that the commands can be pasted.
fn program() -> String {
    let called = env::args_os().next().unwrap_or_default();
    if !called.to_string_lossy().contains('/') {
        return "crawlgate".into();
    }
    let path = env::current_exe().unwrap_or_else(|_| called.into());
    let here = env::current_dir().unwrap_or_default();
    quoted(path.strip_prefix(&here).unwrap_or(&path))
}

/// A path as a word of the shell.
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

fn text(
    bound: &Bound,
    policies: &Path,
    control: &Path,
    access_log: &Path,
    program: &str,
) -> String {
    let url = bound.urls().next().unwrap_or_default();
    let is_tls = url.starts_with("https:");
    let site = url.split("://").nth(1).unwrap_or_default();
    // The certificate of the demo is self-signed.
    let (curl, wget) = if is_tls {
        ("curl -k", "wget --no-check-certificate")
    } else {
        ("curl", "wget")
    };
    let policies = quoted(policies);
    let control = quoted(control);
    let access_log = quoted(access_log);
    let admin = bound
        .admin
        .map_or_else(String::new, |admin| admin.to_string());
    format!(
        "
crawlgate runs in front of a sample site, with the policy in {policies}. When you save the policy, crawlgate reads it again.
Try this in another terminal:

  # a person gets the page
  {curl} -s -o /dev/null -w '%{{http_code}}\\n' -A Firefox {url}/

  # a crawler that the policy disallows is refused, with the reason
  {curl} -i -A GPTBot {url}/

  # the reason, with the line of the policy
  {program} explain --policies {policies} --host {site} --user-agent GPTBot /

  # the rules, as crawlers read them
  {curl} -s {url}/robots.txt

  # the PDF and the drafts carry X-Robots-Tag
  {curl} -sI -A Googlebot {url}/reports/annual-report.pdf | grep -i x-robots
  {curl} -sI -A Googlebot {url}/drafts/ | grep -i x-robots

  # a real crawler that follows robots.txt, and the same one told to ignore it
  {wget} -r -nv -P /tmp/museum {url}/
  {wget} -r -nv -P /tmp/museum -e robots=off {url}/

  # pause crawling for ten minutes; people still get pages
  {program} pause --control {control} --for 10m
  {curl} -sI -A Googlebot {url}/ | head -1
  {program} resume --control {control}

  # requests by crawler, the status, and the access log
  curl -s http://{admin}/metrics | grep crawlgate_requests_total
  {program} status --control {control}
  tail -f {access_log}

Ctrl-C ends the demo.
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

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
        }
    }
}
