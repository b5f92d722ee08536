//! `check --format`: what code hosts and editors read.

use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A repository with these policies.
fn repository(policies: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::create_dir(directory.path().join("policies")).expect("a directory");
    for (name, text) in policies {
        fs::write(directory.path().join("policies").join(name), text).expect("a policy");
    }
    directory
}

fn check(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crawlgate"));
    command
        .arg("check")
        .args(arguments)
        .current_dir(directory)
        .env_remove("GITHUB_WORKSPACE");
    command.output().expect("the binary runs")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(output)))
}

const BROKEN: &str = "hosts: [shop.example]\nrobots:\n  origin: replace\n  groups:\n    - agents: [\"ä\", GPTBot]\n      disalow: [/x/]\n";
const GOOD: &str = "hosts: [blog.example]\nrobots: { origin: replace, groups: [{ agents: \"*\", disallow: [/cart/] }] }\n";

#[test]
fn github_gets_a_command_for_each_finding_with_its_place() {
    let directory = repository(&[("good.yaml", GOOD), ("shop, new.yaml", BROKEN)]);
    let output = check(directory.path(), &["--format", "github"]);
    assert_eq!(output.status.code(), Some(1));
    let shown = text(&output);
    let commands: Vec<&str> = shown
        .lines()
        .filter(|line| line.starts_with("::"))
        .collect();
    let field = commands
        .iter()
        .find(|line| line.contains("title=crawlgate unknown-field"));
    let field = field.unwrap_or_else(|| panic!("{shown}"));
    let place = "file=policies/shop%2C new.yaml,line=6,endLine=6,col=7,endColumn=14::";
    assert!(
        field.starts_with("::error ") && field.contains(place),
        "{field}"
    );
    assert!(
        field.contains("%0Ahelp: "),
        "what to do stands below: {field}"
    );
    assert_eq!(
        shown.lines().count(),
        commands.len() + 1,
        "nothing but commands and a summary: {shown}"
    );
    assert_eq!(
        check(
            directory.path(),
            &["--format", "github", "policies/good.yaml"]
        )
        .status
        .code(),
        Some(0)
    );
}

/// The log of a job obeys what a policy says otherwise.
#[test]
fn text_of_a_policy_becomes_no_command() {
    let hostile =
        "hosts: [shop.example]\n\"::stop-commands::x\\n::add-mask::y\\r%0A##[error]z\": 1\n";
    let directory = repository(&[("shop.yaml", hostile)]);
    let shown = text(&check(directory.path(), &["--format", "github"]));
    let lines = shown.split(['\n', '\r']).filter(|line| !line.is_empty());
    for line in lines.clone().take(lines.count() - 1) {
        assert!(
            line.starts_with("::error ") || line.starts_with("::warning "),
            "{line:?}"
        );
    }
}

#[test]
fn names_are_those_of_the_repository_wherever_check_runs() {
    let directory = repository(&[("shop.yaml", BROKEN)]);
    let root = directory.path().canonicalize().expect("the directory");
    let policies = root.join("policies");
    for (from, named, wanted) in [
        (&root, "./policies", "policies/shop.yaml"),
        (
            &root,
            policies.to_str().expect("UTF-8"),
            "policies/shop.yaml",
        ),
        (&policies, "shop.yaml", "policies/shop.yaml"),
        (&policies, "../policies/shop.yaml", "policies/shop.yaml"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_crawlgate"))
            .args(["check", "--format", "github", named])
            .current_dir(from)
            .env("GITHUB_WORKSPACE", &root)
            .output()
            .expect("the binary runs");
        let shown = text(&output);
        let first = shown.lines().next().unwrap_or_default();
        assert!(
            first.contains(&format!("file={wanted},")),
            "{named} from {}: {first}",
            from.display()
        );
    }
}

#[test]
fn notes_are_listed_where_they_are_asked_for() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(
        directory.path().join("robots.txt"),
        "User-agent: *\nDisallow: /a\nDisallow: /a/b\n",
    )
    .expect("a file");
    let listed = |arguments: &[&str]| {
        let shown = text(&check(
            directory.path(),
            &[&["--format", "github", "robots.txt"], arguments].concat(),
        ));
        shown
            .lines()
            .filter(|line| line.starts_with("::notice "))
            .count()
    };
    assert_eq!(listed(&[]), 0);
    assert!(listed(&["--notes"]) > 0);
    let json = json(&check(
        directory.path(),
        &["--format", "json", "robots.txt"],
    ));
    assert!(
        json["notes"].as_u64() > Some(0)
            && json["findings"]
                .as_array()
                .is_some_and(|findings| !findings.is_empty())
    );
}

/// Whoever proposes a change chooses the names of files.
#[test]
fn name_of_a_file_becomes_no_command_and_no_escape() {
    let names = [
        "::stop-commands::t.yaml",
        "x\n::add-mask::y\n.yaml",
        "\x1b[2J\u{9b}\u{202e}##[error]z.yaml",
    ];
    for (text, name) in [BROKEN, GOOD]
        .into_iter()
        .flat_map(|text| names.map(|name| (text, name)))
    {
        let directory = repository(&[(name, text)]);
        fs::create_dir(directory.path().join("old")).expect("a directory");
        let runs: [&[&str]; 6] = [
            &["check"],
            &["check", "--quiet"],
            &["check", "--format", "json"],
            &["diff", "old", "policies"],
            &["diff", "old", "policies", "--format", "markdown"],
            &[
                "explain",
                "--host",
                "other.example",
                "--user-agent",
                "GPTBot",
                "/",
            ],
        ];
        for arguments in runs {
            let mut command = Command::new(env!("CARGO_BIN_EXE_crawlgate"));
            let output = command
                .args(arguments)
                .current_dir(directory.path())
                .output()
                .expect("the binary runs");
            for shown in [&output.stdout, &output.stderr]
                .map(|shown| String::from_utf8_lossy(shown).into_owned())
            {
                assert!(
                    !shown.contains(['\x1b', '\u{9b}', '\u{202e}']),
                    "{arguments:?}: {shown:?}"
                );
                assert!(!shown.contains("##["), "{arguments:?}: {shown:?}");
                assert!(
                    !shown
                        .lines()
                        .any(|line| line.trim_start().starts_with("::")),
                    "{arguments:?}: {shown:?}"
                );
            }
        }
    }
}

#[test]
fn link_that_leads_out_of_the_directory_is_not_followed() {
    let directory = repository(&[("good.yaml", GOOD)]);
    let (root, policies) = (directory.path(), directory.path().join("policies"));
    fs::write(root.join("secret"), "password: hunter2\n").expect("a file");
    symlink("../secret", policies.join("out.yaml")).expect("a link");
    symlink("../secret", policies.join("out.txt")).expect("a link");
    for arguments in [["--json"].as_slice(), &["policies/out.yaml", "--json"]] {
        let output = check(root, arguments);
        assert_eq!(output.status.code(), Some(1));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let findings = report["findings"].as_array().expect("a list");
        assert!(
            findings.iter().any(|finding| finding["id"] == "leads-out"),
            "{report}"
        );
        assert!(!text(&output).contains("hunter2"), "{report}");
    }
    for arguments in [
        ["check", "policies/out.txt"].as_slice(),
        &["diff", "policies/out.txt", "policies/out.txt"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_crawlgate"));
        let output = command
            .args(arguments)
            .current_dir(root)
            .output()
            .expect("the binary runs");
        let shown = [output.stdout, output.stderr].concat();
        assert_eq!(
            (
                output.status.code(),
                String::from_utf8_lossy(&shown).contains("hunter2")
            ),
            (Some(3), false)
        );
    }
    let previous = GOOD.replace("{ origin: replace", "{ previous: out.txt, origin: replace");
    fs::write(policies.join("good.yaml"), previous).expect("a policy");
    assert!(!text(&check(root, &["policies/good.yaml"])).contains("hunter2"));
}

/// As Kubernetes mounts a ConfigMap.
#[test]
fn link_within_the_directory_is_followed() {
    let directory = repository(&[]);
    let policies = directory.path().join("policies");
    fs::create_dir(policies.join("..2026")).expect("a directory");
    fs::write(policies.join("..2026/good.yaml"), GOOD).expect("a policy");
    symlink("..2026", policies.join("..data")).expect("a link");
    symlink("..data/good.yaml", policies.join("good.yaml")).expect("a link");
    let output = check(directory.path(), &["--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (
            output.status.code(),
            report["sites"].as_array().map(Vec::len)
        ),
        (Some(0), Some(1)),
        "{report}"
    );
}
