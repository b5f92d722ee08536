//! What makes a release fits together: the package's files, the changelogs, the workflows and the
//! scripts that they run. `scripts/try-package` tries the package itself (docs/internals/releasing.md).

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

#[test]
fn the_changelogs_are_of_this_version() {
    let package = package();
    let version = package["version"].as_str().expect("a version");
    let debian = text("deploy/debian/changelog");
    assert!(
        debian.starts_with(&format!("crawlgate ({version}-1) ")),
        "{debian}"
    );
    let maintainer = package["metadata"]["deb"]["maintainer"]
        .as_str()
        .expect("a maintainer");
    assert!(debian.contains(&format!(" -- {maintainer}  ")), "{debian}");
    let notes = |version: &str| -> Output {
        Command::new(path("scripts/notes"))
            .arg(version)
            .output()
            .expect("a script")
    };
    let changes = text("CHANGELOG.md");
    let mut headings = changes
        .lines()
        .filter_map(|line| line.strip_prefix("## [")?.split(']').next());
    assert_eq!(headings.next(), Some("Unreleased"));
    let newest = headings.next();
    assert!(newest.is_none_or(|newest| newest == version), "{newest:?}");
    let [said, unknown] = [notes(newest.unwrap_or("Unreleased")), notes("99.0.0")];
    assert!(said.status.success() && String::from_utf8_lossy(&said.stdout).contains("### "));
    assert!(!unknown.status.success() && unknown.stdout.is_empty());
}

#[test]
fn names_that_the_registry_lacks_are_printed() {
    let directory = tempfile::tempdir().expect("a directory");
    let compared = |list: &str| {
        let file = directory.path().join("list");
        fs::write(&file, list).expect("written");
        let output = Command::new(path("scripts/compare-crawlers"))
            .arg(&file)
            .output()
            .expect("a script");
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
        ("docs/deploy.md", &["crawlgate_", "/crawlgate:"]),
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
