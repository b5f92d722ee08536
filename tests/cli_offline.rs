//! The commands that ask the engine without a server, as processes.
#![cfg(feature = "proxy")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn crawlgate(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_crawlgate"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("NO_COLOR")
        .output()
        .expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&output.stdout)))
}

fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, content) in files {
        std::fs::write(directory.path().join(name), content).expect("a file");
    }
    directory
}

fn path(directory: &tempfile::TempDir) -> &str {
    directory.path().to_str().expect("UTF-8")
}

const GOOD: &str =
    "hosts: [shop.example]\nrobots:\n  origin: replace\n  groups:\n    - agents: \"*\"\n      disallow: /cart/\n";

const SIX_MISTAKES: &str = "\
hots: [shop.example]
purposes:
  training: forbid
robots:
  origin: replace
  max_age: soon
  groups:
    - agents: [GPTBot]
      disallow: [cart/]
    - agents: [\"*\"]
      disallow: [/x/]
      disallow: [/y/]
indexing:
  - types: [application/pdf]
    tag: noidnex
";

#[test]
fn check_shows_six_different_mistakes_each_in_its_place() {
    let policies = directory(&[("shop.yaml", SIX_MISTAKES)]);
    let output = crawlgate(&["check", path(&policies)]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    for (line, column) in [(1, 1), (3, 13), (6, 12), (9, 18), (12, 7), (15, 10)] {
        assert!(shown.contains(&format!("shop.yaml:{line}:{column}\n")), "{line}:{column} in\n{shown}");
    }
    assert!(shown.contains("did you mean `hosts`?"), "{shown}");
    assert!(shown.contains("0 of 1 policy file good, 6 errors"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "colours outside of a terminal:\n{shown}");

    let findings = json(&crawlgate(&["check", "--json", path(&policies)]));
    assert_eq!(findings["errors"], 6);
    assert_eq!(findings["findings"][0]["line"], 1);
    assert_eq!(findings["findings"][0]["severity"], "error");
    assert_eq!(findings["sites"], serde_json::json!([]));
}

#[test]
fn check_passes_every_shipped_policy_without_a_warning() {
    let output = crawlgate(&["check", "--deny-warnings"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("demo (policies/demo.yaml)"));
}

#[test]
fn a_failing_test_of_a_policy_fails_the_check() {
    let policy = format!("{GOOD}tests:\n  - {{ agent: Googlebot, path: /cart/, expect: allowed }}\n");
    let policies = directory(&[("shop.yaml", &policy)]);
    let output = crawlgate(&["check", path(&policies)]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("the verdict is `disallowed`, not `allowed`"), "{}", text(&output.stdout));
}

#[test]
fn warnings_fail_the_check_only_when_they_are_denied() {
    // A group that names a crawler and drops the rules of `*`.
    let policy = format!("{GOOD}    - agents: GPTBot\n      disallow: /private/\n");
    let policies = directory(&[("shop.yaml", &policy)]);
    assert_eq!(crawlgate(&["check", path(&policies)]).status.code(), Some(0));
    assert_eq!(crawlgate(&["check", "--deny-warnings", path(&policies)]).status.code(), Some(1));
}

#[test]
fn two_policies_for_one_host_are_a_conflict() {
    let policies = directory(&[("a.yaml", GOOD), ("b.yaml", GOOD)]);
    let output = crawlgate(&["check", path(&policies)]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(shown.contains("a.yaml claims the host shop.example too"), "{shown}");
    assert!(shown.contains("b.yaml:1:9"), "{shown}");

    let everywhere = GOOD.replace("hosts: [shop.example]\n", "");
    let policies = directory(&[("a.yaml", &everywhere), ("b.yaml", &everywhere)]);
    assert_eq!(crawlgate(&["check", path(&policies)]).status.code(), Some(1));
}

#[test]
fn what_is_not_there_is_told_apart_from_what_is_wrong() {
    assert_eq!(crawlgate(&["check", "/nowhere/at/all"]).status.code(), Some(3));
    let empty = directory(&[]);
    assert_eq!(crawlgate(&["check", path(&empty)]).status.code(), Some(3));
    let broken = directory(&[("latin.yaml", "")]);
    std::fs::write(broken.path().join("latin.yaml"), b"hosts: [caf\xe9.example]\n").expect("a file");
    let output = crawlgate(&["check", path(&broken)]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("not UTF-8"), "{}", text(&output.stdout));
}

#[test]
fn wrong_usage_exits_2_and_says_what_is_wrong_on_standard_error() {
    for arguments in [
        &["nonsense"][..],
        &[],
        &["check", "--nonsense"],
        &["render"],
        &["explain", "--host", "a.example", "--user-agent", "x", "no-slash"],
        &["explain", "--host", "a.example", "--user-agent", "x", "--status", "99", "/"],
        &["crawlers", "--purpose", "world-domination"],
        &["crawlers", "GPTBot", "--identify", "x"],
        &["pause", "--for", "soon"],
        &["run"],
        &["run", "--origin", "shop.example"],
        &["run", "--origin", "http://127.0.0.1:1", "--listen", "nowhere"],
        &["run", "--origin", "http://127.0.0.1:1", "--trusted-proxy", "10.0.0.0/40"],
    ] {
        let output = crawlgate(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty(), "{arguments:?}: {}", text(&output.stdout));
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
    assert_eq!(crawlgate(&["--help"]).status.code(), Some(0));
    assert_eq!(crawlgate(&["--version"]).status.code(), Some(0));
}

#[test]
fn render_prints_the_bytes_that_check_shows() {
    let rendered = crawlgate(&["render", "--host", "any.example"]);
    assert_eq!(rendered.status.code(), Some(0), "{}", text(&rendered.stderr));
    let checked = json(&crawlgate(&["check", "--json"]));
    assert_eq!(checked["sites"][0]["robots_txt"], text(&rendered.stdout));
    assert_eq!(checked["sites"][0]["bytes"], rendered.stdout.len());
    assert!(text(&rendered.stdout).contains("User-agent: GPTBot\nDisallow: /\n"));
}

#[test]
fn render_of_a_host_that_no_policy_is_for_is_a_finding() {
    let policies = directory(&[("shop.yaml", GOOD)]);
    let output = crawlgate(&["render", "--host", "other.example", "--policies", path(&policies)]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    assert!(text(&output.stderr).contains("other.example"), "{}", text(&output.stderr));
}

#[test]
fn a_broken_policy_does_not_keep_another_from_being_rendered() {
    let policies = directory(&[("shop.yaml", GOOD), ("wrong.yaml", "hots: x\n")]);
    let output = crawlgate(&["render", "--host", "shop.example", "--policies", path(&policies)]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("Disallow: /cart/"));
    assert!(text(&output.stderr).contains("did you mean `hosts`?"), "{}", text(&output.stderr));
    let output = crawlgate(&["render", "--host", "wrong.example", "--policies", path(&policies)]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn explain_as_json_has_the_shape_that_is_documented() {
    let policies = directory(&[("shop.yaml", &format!("{GOOD}indexing:\n  - tag: noarchive\n"))]);
    let arguments =
        ["explain", "--policies", path(&policies), "--host", "shop.example", "--user-agent", "Googlebot", "--json"];
    let said = json(&crawlgate(&[&arguments[..], &["/cart/?x=1"]].concat()));
    assert_eq!(said["site"], "shop");
    assert_eq!(said["host"], "shop.example");
    assert_eq!(said["target"], "/cart/?x=1");
    assert_eq!(said["crawler"]["id"], "googlebot");
    assert_eq!(said["crawler"]["token"], "Googlebot");
    assert_eq!(said["crawler"]["purpose"], "search");
    assert_eq!(said["identity"], "unverified");
    assert_eq!(said["group"]["agents"], serde_json::json!(["*"]));
    assert_eq!(said["rule"]["kind"], "disallow");
    assert_eq!(said["rule"]["pattern"], "/cart/");
    assert!(said["rule"]["source"].as_str().is_some_and(|place| place.ends_with("shop.yaml:6:17")), "{said}");
    assert_eq!(said["verdict"], "disallowed");
    assert_eq!(said["kind"], "unproven");
    // Nothing is said about enforcement: observe.
    assert_eq!(said["action"]["kind"], "pass");
    assert_eq!(said["action"]["would"]["kind"], "block");
    assert_eq!(said["action"]["would"]["status"], 403);
    assert_eq!(said["x_robots_tag"], serde_json::json!(["noarchive"]));
}

#[test]
fn explain_shows_the_line_of_the_policy_that_decided() {
    let output = crawlgate(&["explain", "--host", "any.example", "--user-agent", "GPTBot", "/"]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let policy = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("policies/demo.yaml")).expect("it");
    let line = policy.lines().position(|line| line.starts_with("  training: disallow")).expect("the line") + 1;
    assert!(shown.contains(&format!("policies/demo.yaml:{line}:13")), "{shown}");
    assert!(shown.contains("training: disallow"), "{shown}");
    assert!(shown.contains("refused with 403"), "{shown}");
}

#[test]
fn crawlers_are_listed_found_and_identified() {
    let all = json(&crawlgate(&["crawlers", "--json"]));
    assert!(all.as_array().is_some_and(|all| all.len() > 100));
    let training = json(&crawlgate(&["crawlers", "--json", "--purpose", "training"]));
    assert!(training.as_array().is_some_and(|all| all.iter().all(|crawler| crawler["purpose"] == "training")));

    let known = "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)";
    let identified = json(&crawlgate(&["crawlers", "--json", "--identify", known]));
    assert_eq!((identified["claim"].as_str(), identified["crawler"]["id"].as_str()), (Some("known"), Some("bingbot")));
    let person = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0";
    assert_eq!(json(&crawlgate(&["crawlers", "--json", "--identify", person]))["claim"], "nobody");
    assert!(text(&crawlgate(&["crawlers", "--identify", person]).stdout).starts_with("nobody"));

    assert!(text(&crawlgate(&["crawlers", "gptbot"]).stdout).contains("OpenAI"));
    let unknown = crawlgate(&["crawlers", "GTPBot"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(text(&unknown.stderr).contains("did you mean"), "{}", text(&unknown.stderr));
}

#[test]
fn a_reader_that_has_read_enough_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_crawlgate"))
        .args(["crawlers", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    // Closed before anything is read: the listing is larger than any pipe.
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
}
