//! The files of the repository, YAML as JSON values.

use crawlgate::internals::settings::Settings;
use crawlgate::internals::yaml::{Node, NodeValue as Yaml, YamlDocument};
use crawlgate::yaml::{Diagnostics, SourceFile};
use serde_json::{Map, Value};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file of the repository.
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Its text.
pub fn text(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A JSON file.
pub fn json(name: &str) -> Value {
    serde_json::from_str(&text(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A YAML file.
pub fn yaml(name: &str) -> Value {
    let source = SourceFile {
        name: name.into(),
        text: text(name).into(),
    };
    let mut diagnostics = Diagnostics::default();
    let document = YamlDocument::parse(&source, &mut diagnostics);
    let found: Vec<String> = diagnostics
        .items
        .iter()
        .map(|item| item.render(&source, false))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
    json_of(
        &document
            .and_then(|document| document.root)
            .unwrap_or_else(|| panic!("{name} is empty")),
    )
}

fn json_of(node: &Node) -> Value {
    match &node.value {
        Yaml::Sequence(items) => items.iter().map(json_of).collect(),
        Yaml::Mapping(entries) => {
            let mut map = Map::new();
            for (key, value) in entries {
                let Yaml::Scalar { text, .. } = &key.value else {
                    panic!("a key that is no text")
                };
                assert!(
                    map.insert(text.clone(), json_of(value)).is_none(),
                    "`{text}` is there twice"
                );
            }
            map.into()
        }
        Yaml::Scalar { text, plain: false } => text.as_str().into(),
        _ if node.is_null() => Value::Null,
        // As YAML 1.1 has it, by which kubectl and compose may go: a bare `on` is no text.
        Yaml::Scalar { text, .. } => match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => true.into(),
            "false" | "no" | "off" => false.into(),
            _ => text
                .parse::<i64>()
                .map_or_else(|_| text.as_str().into(), Value::from),
        },
    }
}

/// A settings file, as the server would use it.
pub fn settings(name: &str) -> Settings {
    let source = SourceFile {
        name: name.into(),
        text: text(name).into(),
    };
    let (file, diagnostics) = crawlgate::internals::settings::decode_settings(
        &source,
        Path::new(""),
        Settings::default(),
    );
    let found: Vec<String> = diagnostics
        .items
        .iter()
        .map(|item| item.render(&source, false))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
    file.expect("settings").finalize().expect("an origin")
}

/// The texts of a list.
pub fn texts(list: &Value) -> Vec<&str> {
    let list = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    list.iter()
        .map(|item| item.as_str().unwrap_or_else(|| panic!("no text: {item}")))
        .collect()
}

/// Every file below a directory, by its name in the repository.
pub fn below(directory: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in
        fs::read_dir(path(directory)).unwrap_or_else(|error| panic!("{directory}: {error}"))
    {
        let entry = entry.expect("a directory entry");
        let name = format!("{directory}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            found.extend(below(&name))
        } else {
            found.push(name)
        }
    }
    found.sort();
    found
}

/// Runs a program that the test needs; what it said, and whether it was content.
pub fn says(program: &str, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(program).args(arguments).output();
    let output =
        output.unwrap_or_else(|error| panic!("{program} is needed (./test installs it): {error}"));
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

#[test]
fn every_yaml_and_json_file_can_be_read() {
    let files = below("deploy");
    assert!(files.len() > 15, "{files:?}");
    for name in files
        .iter()
        .filter(|name| name.ends_with(".yaml") || name.ends_with(".yml"))
    {
        yaml(name);
    }
    for name in files.iter().filter(|name| name.ends_with(".json")) {
        json(name);
    }
}
