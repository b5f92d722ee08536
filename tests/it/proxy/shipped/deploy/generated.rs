//! Parts of pages that come from the program: the help of every command, the table of settings.
//! `UPDATE_DOCS=1 cargo test --test it -- generated table_of_fields` writes them into the pages.

use super::files::{json, path, text};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::process::Command;

const COMMANDS: &str = "docs/command-line.md";
const SETTINGS: &str = "docs/settings.md";

/// The page has this text, or gets it.
pub fn assert_or_update(page: &str, wanted: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path(page), wanted).expect("written");
    } else {
        assert!(
            text(page) == wanted,
            "{page} is not as the program has it: UPDATE_DOCS=1"
        );
    }
}

/// The page with another table in place of the one that begins so.
pub fn with_table(page: &str, beginning: &str, table: &str) -> String {
    let begin = page.find(beginning).expect("the table");
    let end = begin + page[begin..].find("\n\n").expect("the end of the table") + 1;
    [&page[..begin], table, &page[end..]].concat()
}

fn help(command: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_crawlgate"))
        .args(command.split_whitespace())
        .arg("--help")
        .env_remove("COLUMNS")
        .output()
        .expect("the binary runs");
    let help = String::from_utf8(output.stdout).expect("UTF-8");
    help.lines()
        .fold(String::new(), |help, line| help + line.trim_end() + "\n")
}

/// The commands below one, in the order of its help; deeper ones behind the one that has them.
fn commands_below(command: &str) -> Vec<String> {
    let help = help(command);
    let list = help
        .split("\nCommands:\n")
        .nth(1)
        .and_then(|rest| rest.split("\n\n").next());
    let names = list.unwrap_or_default().lines().filter_map(|line| {
        let name = line.strip_prefix("  ")?;
        name.starts_with(|sign: char| sign.is_ascii_lowercase())
            .then(|| name.split(' ').next().unwrap_or_default())
    });
    let mut found = Vec::new();
    for name in names {
        let whole = format!("{command} {name}").trim().to_owned();
        found.push(whole.clone());
        found.extend(commands_below(&whole));
    }
    found
}

/// Each command has a block `text crawlgate COMMAND` with its help; text may stand around it.
#[test]
fn generated_help_of_every_command_is_on_the_page() {
    let mut page = text(COMMANDS);
    let commands = commands_below("");
    assert!(commands.len() > 25, "{commands:?}");
    for command in &commands {
        let fence = format!("```text crawlgate {command}\n");
        let help = help(command);
        match page.find(&fence) {
            Some(place) => {
                let begin = place + fence.len();
                let end = begin + page[begin..].find("```\n").expect("the end of the block");
                page.replace_range(begin..end, &help);
            }
            None => write!(page, "\n## {command}\n\n{fence}{help}```\n").expect("a string"),
        }
    }
    let blocks = page.matches("```text crawlgate ").count();
    assert_eq!(blocks, commands.len(), "a command is gone");
    assert_or_update(COMMANDS, &page);
}

fn resolve<'s>(schema: &'s Value, node: &'s Value) -> &'s Value {
    let name = node["$ref"]
        .as_str()
        .and_then(|reference| reference.strip_prefix("#/definitions/"));
    name.map_or(node, |name| &schema["definitions"][name])
}

/// The rows of the fields below a node of the schema, whichever of its forms has them.
fn add_rows(schema: &Value, node: &Value, place: &str, rows: &mut Vec<(String, String)>) {
    let node = resolve(schema, node);
    for (name, field) in node["properties"].as_object().into_iter().flatten() {
        let place = format!("{place}{name}");
        if rows.iter().any(|(known, _)| *known == place) {
            continue;
        }
        let meaning = [
            &field["description"],
            &resolve(schema, field)["description"],
        ]
        .iter()
        .find_map(|text| text.as_str())
        .unwrap_or_else(|| panic!("{place} has no description"));
        let default = match &field["default"] {
            Value::Null => String::new(),
            Value::Bool(false) => "`off`".to_owned(),
            Value::Array(values) => format!("`{}`", values[0].as_str().expect("a word")),
            Value::String(word) => format!("`{word}`"),
            other => format!("`{other}`"),
        };
        let row = format!(
            "| `{place}` | {default} | {} |\n",
            meaning.replace('|', "\\|")
        );
        rows.push((place.clone(), row));
        add_rows(schema, field, &format!("{place}."), rows);
    }
    for form in ["allOf", "anyOf"] {
        for either in node[form].as_array().into_iter().flatten() {
            add_rows(schema, either, place, rows);
        }
    }
    if node["items"].is_object() {
        add_rows(schema, &node["items"], place, rows);
    }
}

#[test]
fn generated_table_of_settings_is_on_the_page() {
    let schema = json("src/settings/settings.schema.json");
    let mut rows = Vec::new();
    add_rows(&schema, &schema, "", &mut rows);
    assert!(rows.len() > 100, "{}", rows.len());
    let rows: String = rows.into_iter().map(|(_, row)| row).collect();
    let head = "| setting | default | meaning |\n";
    let table = format!("{head}|---|---|---|\n{rows}");
    assert_or_update(SETTINGS, &with_table(&text(SETTINGS), head, &table));
}
