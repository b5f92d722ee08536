//! What packages install beside the binary: completions that a real bash completes with, and manual
//! pages that tell all that the help tells.

use std::collections::BTreeSet;
use std::process::{Command, Output, Stdio};

fn crawlgate(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_crawlgate"))
        .args(arguments)
        .output()
        .expect("the binary runs")
}

fn printed(arguments: &[&str]) -> String {
    let output = crawlgate(arguments);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("UTF-8")
}

const SHELLS: [&str; 5] = ["bash", "zsh", "fish", "powershell", "elvish"];

/// The commands, by the help of the binary.
fn commands() -> Vec<String> {
    let help = printed(&["--help"]);
    let list = help
        .split("Commands:\n")
        .nth(1)
        .and_then(|rest| rest.split("\n\n").next())
        .expect("a list of commands");
    let commands: Vec<String> = list
        .lines()
        // Descriptions go on further in.
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect();
    assert!(commands.len() > 10, "{commands:?}");
    commands
}

/// `--flags` that a text names.
fn flags(text: &str) -> BTreeSet<String> {
    let word = |sign: char| sign.is_ascii_alphanumeric() || sign == '-';
    text.split(|sign: char| !word(sign))
        .filter(|flag| flag.starts_with("--") && flag.len() > 3)
        .map(str::to_owned)
        .collect()
}

/// What bash offers for the last of these words.
fn offered(words: &[&str]) -> Vec<String> {
    let script = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(script.path(), printed(&["completions", "bash"])).expect("the script");
    // As readline does: the words, which of them is at the cursor, and the function that `complete
    // -F` named.
    let drive = r#"
        source "$1" || exit 9
        shift
        COMP_WORDS=("$@")
        COMP_CWORD=$(($# - 1))
        function=$(complete -p crawlgate | sed 's/.*-F \([^ ]*\).*/\1/')
        "$function" crawlgate "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let output = Command::new("bash")
        .args(["--noprofile", "--norc", "-c", drive, "bash"])
        .arg(script.path())
        .args(words)
        .output()
        .expect("bash runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(str::to_owned)
        .filter(|line| !line.is_empty())
        .collect()
}

#[test]
fn bash_completes_commands_flags_and_values() {
    let script = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(script.path(), printed(&["completions", "bash"])).expect("the script");
    let syntax = Command::new("bash")
        .arg("-n")
        .arg(script.path())
        .output()
        .expect("bash runs");
    assert!(
        syntax.status.success() && syntax.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&syntax.stderr)
    );

    assert_eq!(offered(&["crawlgate", "ch"]), ["check"]);
    assert_eq!(
        offered(&["crawlgate", "check", "--deny-"]),
        ["--deny-warnings"]
    );
    assert_eq!(offered(&["crawlgate", "schema", "s"]), ["settings"]);
    let all: BTreeSet<String> = offered(&["crawlgate", ""]).into_iter().collect();
    for command in commands() {
        assert!(all.contains(&command), "{command} is not offered");
    }
    let purposes = crawlgate_purposes();
    assert_eq!(
        offered(&["crawlgate", "crawlers", "--purpose", ""]),
        purposes
    );
    assert_eq!(
        offered(&["crawlgate", "crawlers", "--purpose", "tr"]),
        ["training"]
    );
    let shells: BTreeSet<String> = offered(&["crawlgate", "completions", ""])
        .into_iter()
        .collect();
    for shell in SHELLS {
        assert!(shells.contains(shell), "{shell} is not offered");
    }
}

fn crawlgate_purposes() -> Vec<&'static str> {
    crawlgate::crawlers::Purpose::ALL
        .map(crawlgate::crawlers::Purpose::name)
        .to_vec()
}

#[test]
fn every_shell_has_a_script_that_names_every_command() {
    for shell in SHELLS {
        let script = printed(&["completions", shell]);
        for word in commands()
            .iter()
            .map(String::as_str)
            .chain(["deny-warnings", "user-agent"])
        {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let output = crawlgate(&["completions", "tcsh"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("bash"));
}

/// The text of a page as it is read: without the marks of fonts and the escapes of hyphens and
/// quotes.
fn plain(page: &str) -> String {
    ["\\fB", "\\fI", "\\fR"]
        .iter()
        .fold(page.to_owned(), |text, mark| text.replace(mark, ""))
        .replace("\\-", "-")
}

#[test]
fn every_command_has_a_page_with_all_that_its_help_tells() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    // A directory that is not there is made, as packaging wants it.
    let pages = directory.path().join("share/man1");
    printed(&["man", "--dir", pages.to_str().expect("UTF-8")]);
    let commands = commands();
    let mut names: Vec<String> = commands
        .iter()
        .map(|command| format!("crawlgate-{command}"))
        .collect();
    names.push("crawlgate".into());
    for name in &names {
        let page = std::fs::read_to_string(pages.join(format!("{name}.1"))).expect("a page");
        let text = plain(&page);
        let arguments: Vec<&str> = name.splitn(2, '-').skip(1).chain(["--help"]).collect();
        let help = printed(&arguments);

        assert_eq!(
            page.lines().filter(|line| line.starts_with(".TH ")).count(),
            1,
            "{name}"
        );
        let heading = |title: &str| {
            text.lines()
                .any(|line| line.replace('"', "") == format!(".SH {title}"))
        };
        for title in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"] {
            assert!(heading(title), "{name} has no section {title}");
        }
        assert!(
            text.lines()
                .any(|line| line.starts_with(&format!("{name} - "))),
            "{name} does not say what it is"
        );
        let told = flags(&text);
        for flag in flags(&help) {
            assert!(told.contains(&flag), "{name} does not tell {flag}");
        }
    }

    let main = printed(&["man"]);
    assert_eq!(
        main,
        std::fs::read_to_string(pages.join("crawlgate.1")).expect("the main page")
    );
    let main = plain(&main);
    for command in &commands {
        assert!(
            main.contains(&format!("crawlgate-{command}(1)")),
            "the main page does not name {command}"
        );
    }
    for word in [
        "EXIT STATUS",
        ".SH FILES",
        ".SH ENVIRONMENT",
        "crawlgate.yaml",
        "/var/lib/crawlgate",
        "NO_COLOR",
    ] {
        assert!(main.contains(word), "{word}");
    }
}

#[test]
fn unwritable_directory_is_named_in_the_error() {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let output = crawlgate(&["man", "--dir", file.path().to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(3));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        message.contains(&*file.path().to_string_lossy()),
        "{message}"
    );
}

#[test]
fn closed_pipe_is_no_error() {
    for arguments in [&["schema"][..], &["completions", "bash"], &["man"]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_crawlgate"))
            .args(arguments)
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .expect("the binary runs");
        assert_eq!(
            (output.status.code(), output.stderr),
            (Some(0), Vec::new()),
            "{arguments:?}"
        );
    }
}

#[test]
fn closed_pipe_does_not_hide_findings() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let line = "192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] \"GET /a HTTP/1.1\" 200 9 \"-\" \"GPTBot/1.2\"\n";
    std::fs::write(path("access.log"), line).expect("a log");
    std::fs::write(path("robots.txt"), "User-agent: GPTBot\nDisallow: /a\n").expect("a file");
    std::fs::write(path("empty.log"), "").expect("a log");
    std::fs::write(path("shop.yaml"), "rules: 7\n").expect("a policy");
    let robots = path("robots.txt") + "@2026-01-01T00:00:00Z";
    let audit = [
        "audit",
        "--lists",
        "no",
        "--fail-on",
        "violation",
        "--robots",
        &robots,
    ];
    let (log, empty, policy) = (path("access.log"), path("empty.log"), path("shop.yaml"));
    for (arguments, expected) in [
        ([&audit[..], &[log.as_str()]].concat(), 1),
        ([&audit[..], &[empty.as_str()]].concat(), 3),
        (vec!["check", policy.as_str()], 1),
        (vec!["check", "--format", "json", policy.as_str()], 1),
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_crawlgate"))
            .args(&arguments)
            .stdout(writer)
            .stderr(Stdio::null())
            .output()
            .expect("the binary runs");
        assert_eq!(output.status.code(), Some(expected), "{arguments:?}");
    }
}
