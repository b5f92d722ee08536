//! What makes a release fits together: the package's files, the changelogs, the workflows and the
//! scripts that they run. `scripts/try-package` tries the package itself (docs/internals/releasing.md).

use crate::engine::links;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn text(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The package as cargo knows it.
fn package() -> Value {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(path("."))
        .output()
        .expect("cargo");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    metadata["packages"][0].clone()
}

/// Files of the Debian package: where they come from, and where they go to.
fn assets(package: &Value) -> Vec<(String, String)> {
    let assets = package["metadata"]["deb"]["assets"]
        .as_array()
        .expect("assets");
    let word = |asset: &Value, place: usize| asset[place].as_str().expect("a text").to_owned();
    assets
        .iter()
        .map(|asset| (word(asset, 0), word(asset, 1)))
        .collect()
}

/// The files that a source of an asset stands for.
fn files(source: &str) -> Vec<String> {
    let Some((directory, pattern)) = source
        .rsplit_once('/')
        .filter(|(_, name)| name.contains('*'))
    else {
        return if path(source).is_file() {
            vec![source.to_owned()]
        } else {
            Vec::new()
        };
    };
    let end = pattern.trim_start_matches('*');
    let entries =
        fs::read_dir(path(directory)).unwrap_or_else(|error| panic!("{directory}: {error}"));
    let names = entries.map(|entry| {
        entry
            .expect("an entry")
            .file_name()
            .to_string_lossy()
            .into_owned()
    });
    names
        .filter(|name| name.ends_with(end))
        .map(|name| format!("{directory}/{name}"))
        .collect()
}

#[test]
fn the_debian_package_has_every_file_that_it_names() {
    let package = package();
    let mut installed = BTreeSet::new();
    for (source, target) in assets(&package) {
        // Made by scripts/package.
        let found = if source.starts_with("target/deb/") {
            vec![source.clone()]
        } else {
            files(&source)
        };
        assert!(!found.is_empty(), "there is no {source}");
        for file in found {
            let name = file.rsplit('/').next().expect("a name");
            installed.insert(if target.ends_with('/') {
                format!("/{target}{name}")
            } else {
                format!("/{target}")
            });
        }
    }
    for file in package["metadata"]["deb"]["conf-files"]
        .as_array()
        .expect("conf-files")
    {
        assert!(
            installed.contains(file.as_str().expect("a path")),
            "{file} is not installed"
        );
    }
    let unit = text("deploy/systemd/crawlgate.service").replace("/usr/local/", "/usr/");
    let value = |key: &str| {
        let line = unit
            .lines()
            .find_map(|line| line.strip_prefix(key))
            .unwrap_or_else(|| panic!("no {key}"));
        line.split(' ').next().expect("a word").to_owned()
    };
    for named in [
        value("ExecStart="),
        value("ExecReload="),
        value("Documentation=file:"),
    ] {
        assert!(installed.contains(&named), "the unit names {named}");
    }
    assert!(text("scripts/package").contains("s#/usr/local/#/usr/#g"));
    // An upgrade that stopped or restarted the service would lose requests.
    let units = &package["metadata"]["deb"]["systemd-units"];
    assert_eq!(
        [&units["stop-on-upgrade"], &units["restart-after-upgrade"]],
        [false, false]
    );
}

/// Runs a script of the repository.
fn run_script(script: &str, arguments: &[&str]) -> Output {
    Command::new(path(script))
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("{script}: {error}"))
}

#[test]
fn the_changelog_is_of_this_version() {
    let package = package();
    let version = package["version"].as_str().expect("a version");
    let changes = text("CHANGELOG.md");
    let mut headings = changes
        .lines()
        .filter_map(|line| line.strip_prefix("## [")?.split(']').next());
    assert_eq!(headings.next(), Some("Unreleased"));
    let newest = headings.next();
    assert!(newest.is_none_or(|newest| newest == version), "{newest:?}");
    let said = run_script("scripts/notes", &[newest.unwrap_or("Unreleased")]);
    assert!(said.status.success() && String::from_utf8_lossy(&said.stdout).contains("### "));
    let unknown = run_script("scripts/notes", &["99.0.0"]);
    assert!(!unknown.status.success() && unknown.stdout.is_empty());
}

#[test]
fn metadata_of_the_package_is_what_cargo_knows() {
    let package = package();
    let value = |field: &str| {
        let output = run_script("scripts/metadata", &[field]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    for field in ["version", "repository", "license", "description"] {
        assert_eq!(package[field], value(field));
    }
    assert_eq!(package["authors"][0], value("authors"));
    let unknown = run_script("scripts/metadata", &["no-such-field"]);
    assert_eq!(unknown.status.code(), Some(1));
    let repository = value("repository");
    let other_version = run_script("scripts/check-release", &["v99.0.0", &repository]);
    assert_eq!(other_version.status.code(), Some(1));
}

#[test]
fn links_in_the_archive_lead_somewhere() {
    let directory = tempfile::tempdir().expect("a directory");
    let out = directory.path().to_str().expect("a path");
    let output = run_script("scripts/archive", &[env!("CARGO_BIN_EXE_crawlgate"), out]);
    assert!(output.status.success(), "{output:?}");
    let archive = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    assert!(archive.is_file(), "{archive:?}");
    let name = archive.file_name().expect("a name").to_string_lossy();
    let root = directory.path().join(name.trim_end_matches(".tar.gz"));
    for file in [
        "bin/crawlgate",
        "LICENSE",
        "README.md",
        "deploy/systemd/crawlgate.service",
        "docs/install.md",
        "policies/presets/open-site.yaml",
        "share/completions/crawlgate.bash",
        "share/man/man1/crawlgate-run.1.gz",
    ] {
        assert!(root.join(file).is_file(), "{file} is missing");
    }
    let (faults, links) = links::check(&root);
    assert!(links > 200, "only {links} links were found");
    assert_eq!(faults, Vec::<String>::new());
}

#[test]
fn names_that_the_registry_lacks_are_printed() {
    let directory = tempfile::tempdir().expect("a directory");
    let compared = |list: &str| {
        let file = directory.path().join("list");
        fs::write(&file, list).expect("written");
        let output = run_script(
            "scripts/compare-crawlers",
            &[file.to_str().expect("a path")],
        );
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout)
            .expect("text")
            .lines()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let entry = r#"{ "operator": "x", "function": "a: {b}" }"#;
    let names = [
        "GPTBot",
        "New Bot",
        "iaskspider/2.0",
        "claude-web",
        "Brand-New/1.0",
        "bl.uk_ldfc_bot",
        "new bot",
    ];
    let json: Vec<String> = names
        .iter()
        .map(|name| format!("  \"{name}\": {entry}"))
        .collect();
    assert_eq!(
        compared(&format!("{{\n{}\n}}\n", json.join(",\n"))),
        ["New Bot", "Brand-New/1.0"]
    );
    assert_eq!(
        compared(&format!("{{{}}}", json.join(","))),
        ["New Bot", "Brand-New/1.0"]
    );
    let text: Vec<String> = names
        .iter()
        .map(|name| format!("User-Agent: {name} # x\r\n"))
        .collect();
    assert_eq!(
        compared(&format!("{}user-agent: *\nDisallow: /\n", text.concat())),
        ["New Bot", "Brand-New/1.0"]
    );
    let known = text_of_tokens();
    assert_eq!(compared(&known), [] as [&str; 0]);
}

/// A robots.txt with every token of the registry.
fn text_of_tokens() -> String {
    let crawlers = crawlgate::crawlers::Registry::builtin().crawlers();
    crawlers
        .iter()
        .flat_map(|crawler| &crawler.tokens)
        .map(|token| format!("User-agent: {token}\n"))
        .collect()
}

/// Where a version of crawlgate stands in a text: behind these beginnings.
#[test]
fn files_that_users_copy_name_this_version() {
    let package = package();
    let version = package["version"].as_str().expect("a version");
    let mut stale = Vec::new();
    for (file, beginnings) in [
        ("deploy/git/crawlgate.yml", &["crawlgate-"][..]),
        (
            "deploy/kubernetes/kustomization.yaml",
            &["/crawlgate:", "newTag: \""],
        ),
        ("docs/kubernetes.md", &["/crawlgate:"]),
    ] {
        let text = text(file);
        for beginning in beginnings {
            let named = text
                .match_indices(beginning)
                .map(|(place, _)| &text[place + beginning.len()..]);
            let named: Vec<&str> = named
                .filter(|rest| rest.starts_with(|sign: char| sign.is_ascii_digit()))
                .collect();
            assert!(
                !named.is_empty(),
                "{file} names no version behind {beginning}"
            );
            for rest in named {
                let end = rest
                    .find(|sign: char| sign != '.' && !sign.is_ascii_digit())
                    .unwrap_or(rest.len());
                if &rest[..end] != version {
                    stale.push(format!("{file}: {beginning}{}", &rest[..end]));
                }
            }
        }
    }
    assert!(
        stale.is_empty(),
        "these are not of version {version}: {stale:#?}"
    );
}

#[test]
fn workflows_and_pages_name_scripts_that_are_there() {
    let mut seen = 0;
    let workflows = files(".github/workflows/*.yml");
    assert!(workflows.len() >= 3, "{workflows:?}");
    for file in workflows
        .iter()
        .map(String::as_str)
        .chain(["docs/internals/releasing.md", "SECURITY.md"])
    {
        let text = text(file);
        let words = text.split(|sign: char| sign.is_whitespace() || "`\"'()|,;".contains(sign));
        for word in words.filter(|word| {
            ["scripts/", ".ci/", "fuzz/run"]
                .iter()
                .any(|place| word.starts_with(place))
        }) {
            assert!(path(word).is_file(), "{file} names {word}");
            seen += 1;
        }
    }
    assert!(seen >= 10, "only {seen} were seen");
}
