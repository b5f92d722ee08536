//! What the documentation shows works: every policy and settings file in it is accepted, every command and flag exists.
#![cfg(feature = "proxy")]

use crawlgate::crawlers::Registry;
use crawlgate::yaml::Source;
use crawlgate::{settings, verdict};
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

fn read(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).expect("the document")
}

/// The fenced blocks of a language.
fn blocks(document: &str, language: &str) -> Vec<String> {
    let text = read(document);
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap_or("").to_owned()).collect()
}

fn findings(name: &str, text: &str) -> String {
    let source = Source { name: name.into(), text: text.into() };
    let (site, diagnostics) = verdict::load("example", &source, Registry::builtin());
    let errors: Vec<String> = diagnostics.items.iter().map(|item| item.render(&source, false)).collect();
    assert_eq!(site.is_none(), diagnostics.has_errors());
    if diagnostics.has_errors() { errors.join("\n") } else { String::new() }
}

#[test]
fn every_policy_in_the_documentation_is_accepted() {
    for (document, at_least) in [("docs/policy.md", 10), ("docs/deploy.md", 1), ("README.md", 1)] {
        let policies = blocks(document, "yaml");
        assert!(policies.len() >= at_least, "{document} has {} policies", policies.len());
        for policy in policies {
            let found = findings(document, &policy);
            assert!(found.is_empty(), "{document}:\n{policy}\n{found}");
        }
    }
}

#[test]
fn the_settings_in_the_documentation_are_accepted() {
    let files = blocks("docs/settings.md", "yaml");
    assert!(!files.is_empty());
    for text in files {
        let source = Source { name: "docs/settings.md".into(), text: text.as_str().into() };
        let (file, diagnostics) = settings::read(&source);
        let found: Vec<String> = diagnostics.items.iter().map(|item| item.render(&source, false)).collect();
        assert!(file.is_some() && found.is_empty(), "{}", found.join("\n"));
    }
}

#[test]
fn every_command_and_flag_in_the_documentation_exists() {
    let mut helps: HashMap<String, String> = HashMap::new();
    let mut seen = 0;
    for document in ["docs/command-line.md", "docs/settings.md", "README.md"] {
        for line in blocks(document, "sh").iter().flat_map(|block| block.lines()) {
            // `target/release/crawlgate` and `crawlgate` alike; `$ ` stands before what is typed in a transcript.
            let mut words = line.trim_start_matches("$ ").split_whitespace();
            if !words.next().is_some_and(|program| program == "crawlgate" || program.ends_with("/crawlgate")) {
                continue;
            }
            let command = words.next().expect("a command").to_owned();
            let help = helps.entry(command.clone()).or_insert_with(|| {
                let output = Command::new(env!("CARGO_BIN_EXE_crawlgate"))
                    .args([command.as_str(), "--help"])
                    .output()
                    .expect("the binary runs");
                assert!(output.status.success(), "{document}: there is no command `{command}`");
                String::from_utf8_lossy(&output.stdout).into_owned()
            });
            for flag in words.filter(|word| word.starts_with("--")) {
                assert!(help.contains(flag), "{document}: `crawlgate {command}` has no {flag}");
            }
            seen += 1;
        }
    }
    assert!(seen > 15, "only {seen} commands were seen");
}

#[test]
fn every_lint_has_a_section_in_the_documentation() {
    use crawlgate::policy::lint::LINTS;
    use crawlgate::yaml::Severity;
    let page = read("docs/lints.md");
    let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    assert_eq!(sections, LINTS.iter().map(|lint| lint.id).collect::<Vec<_>>(), "one section each, in this order");
    for lint in LINTS {
        let section = page.split(&format!("### {}\n", lint.id)).nth(1).and_then(|rest| rest.split("\n#").next());
        let words = section.unwrap_or("").split_whitespace().collect::<Vec<_>>().join(" ");
        let severity = match lint.severity {
            Severity::Note => "Note",
            Severity::Warning => "Warning",
            Severity::Error => "Error",
        };
        assert!(words.starts_with(&format!("{severity}: {}.", lint.about)), "{}: {severity}: {}.", lint.id, lint.about);
        assert!(words.len() > 120, "{} needs more words", lint.id);
    }
}
