//! The commands that ask the engine without a server, as processes.

use std::os::unix::fs::symlink;
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
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stdout)))
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

const GOOD: &str = "hosts: [shop.example]\nrobots:\n  origin: replace\n  groups:\n    - agents: \"*\"\n      disallow: /cart/\n";

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
        assert!(
            shown.contains(&format!("shop.yaml:{line}:{column}\n")),
            "{line}:{column} in\n{shown}"
        );
    }
    assert!(
        !shown.contains('\u{1b}'),
        "colours outside of a terminal:\n{shown}"
    );

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
    let policy =
        format!("{GOOD}tests:\n  - {{ agent: Googlebot, path: /cart/, expect: allowed }}\n");
    let policies = directory(&[("shop.yaml", &policy)]);
    let output = crawlgate(&["check", "--json", path(&policies)]);
    assert_eq!(output.status.code(), Some(1));
    let finding = &json(&output)["findings"][0];
    assert_eq!(
        (&finding["id"], &finding["line"]),
        (&"test-failed".into(), &8.into()),
        "{finding}"
    );
}

#[test]
fn warnings_fail_the_check_only_when_they_are_denied() {
    // A group that names a crawler and drops the rules of `*`.
    let policy = format!("{GOOD}    - agents: GPTBot\n      disallow: /private/\n");
    let policies = directory(&[("shop.yaml", &policy)]);
    assert_eq!(
        crawlgate(&["check", path(&policies)]).status.code(),
        Some(0)
    );
    assert_eq!(
        crawlgate(&["check", "--deny-warnings", path(&policies)])
            .status
            .code(),
        Some(1)
    );
}

#[test]
fn identity_settings_silence_the_unverified_warning() {
    let policy = format!(
        "{GOOD}enforcement:\n  unverified: refuse\n  agents: {{ OurOwnBot: {{ unverified: refuse }} }}\n"
    );
    let policies = directory(&[("shop.yaml", &policy)]);
    let lines = |settings: &str| {
        let settings = directory(&[("crawlgate.yaml", settings)]);
        let file = settings.path().join("crawlgate.yaml");
        let findings = json(&crawlgate(&[
            "check",
            "--json",
            "--config",
            &file.display().to_string(),
            path(&policies),
        ]));
        let findings = findings["findings"].as_array().expect("findings").clone();
        let found = findings
            .iter()
            .filter(|finding| finding["id"] == "unverified-refused");
        found
            .map(|finding| finding["line"].as_u64().expect("a line"))
            .collect::<Vec<_>>()
    };
    let site_and_agent = lines("identity: { outgoing: no }\n");
    assert_eq!(site_and_agent.len(), 2);
    // The registry has no facts about OurOwnBot.
    for settings in [
        "identity: { outgoing: yes }\n",
        "identity: { lists: lists }\n",
    ] {
        assert_eq!(lines(settings), site_and_agent[1..], "{settings}");
    }
}

#[test]
fn settings_name_the_policies_to_check() {
    let place = directory(&[("crawlgate.yaml", "policies: sites\n")]);
    let sites = place.path().join("sites");
    std::fs::create_dir(&sites).expect("a directory");
    std::fs::write(sites.join("shop.yaml"), GOOD).expect("a policy");
    let settings = place.path().join("crawlgate.yaml");
    let check = || {
        crawlgate(&[
            "check",
            "--json",
            "--config",
            settings.to_str().expect("UTF-8"),
        ])
    };
    let output = check();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(json(&output)["sites"][0]["site"], "shop");
    for (text, code) in [("polices: sites\n", 1), ("policies: nowhere\n", 3)] {
        std::fs::write(&settings, text).expect("settings");
        assert_eq!(check().status.code(), Some(code), "{text}");
    }
}

#[test]
fn two_policies_for_one_host_are_a_conflict() {
    let policies = directory(&[("a.yaml", GOOD), ("b.yaml", GOOD)]);
    let output = crawlgate(&["check", "--json", path(&policies)]);
    assert_eq!(output.status.code(), Some(1));
    let finding = &json(&output)["findings"][0];
    assert!(
        finding["file"]
            .as_str()
            .is_some_and(|file| file.ends_with("b.yaml")),
        "{finding}"
    );
    assert_eq!(
        (&finding["id"], &finding["line"]),
        (&"host-taken".into(), &1.into()),
        "{finding}"
    );
    // The other file may be the one with the mistake.
    let other = format!("{}/a.yaml:1:9", path(&policies));
    let message = finding["message"].as_str().unwrap_or_default();
    assert!(message.contains(&other), "{finding}");

    let everywhere = GOOD.replace("hosts: [shop.example]\n", "");
    let policies = directory(&[("a.yaml", &everywhere), ("b.yaml", &everywhere)]);
    let output = crawlgate(&["check", "--json", path(&policies)]);
    assert_eq!(output.status.code(), Some(1));
    let finding = &json(&output)["findings"][0];
    assert_eq!(
        (&finding["id"], &finding["line"]),
        (&"host-taken".into(), &1.into()),
        "{finding}"
    );
}

#[test]
fn missing_files_and_wrong_files_exit_differently() {
    assert_eq!(
        crawlgate(&["check", "/nowhere/at/all"]).status.code(),
        Some(3)
    );
    let empty = directory(&[]);
    assert_eq!(crawlgate(&["check", path(&empty)]).status.code(), Some(3));
    let broken = directory(&[("latin.yaml", "")]);
    std::fs::write(
        broken.path().join("latin.yaml"),
        b"hosts: [caf\xe9.example]\n",
    )
    .expect("a file");
    let output = crawlgate(&["check", path(&broken)]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stdout).contains("error[not-utf8]"),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn wrong_usage_exits_2_with_the_error_on_stderr() {
    for arguments in [
        &["nonsense"][..],
        &[],
        &["check", "--nonsense"],
        &["render"],
        &[
            "explain",
            "--host",
            "a.example",
            "--user-agent",
            "x",
            "no-slash",
        ],
        &[
            "explain",
            "--host",
            "a.example",
            "--user-agent",
            "x",
            "--status",
            "99",
            "/",
        ],
        &["crawlers", "--purpose", "world-domination"],
        &["crawlers", "GPTBot", "--identify", "x"],
        &["tester", "robots.txt", "--agent", "Googlebot,Bingbot", "/"],
        &["tester", "robots.txt", "--agent", "Googlebot"],
        &["pause", "--for", "soon"],
        &["run"],
        &["run", "--origin", "shop.example"],
        &[
            "run",
            "--origin",
            "http://127.0.0.1:1",
            "--listen",
            "nowhere",
        ],
        &[
            "run",
            "--origin",
            "http://127.0.0.1:1",
            "--trusted-proxy",
            "10.0.0.0/40",
        ],
    ] {
        let output = crawlgate(arguments);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            text(&output.stderr)
        );
        assert!(
            output.stdout.is_empty(),
            "{arguments:?}: {}",
            text(&output.stdout)
        );
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
    assert_eq!(crawlgate(&["--help"]).status.code(), Some(0));
    assert_eq!(crawlgate(&["--version"]).status.code(), Some(0));
}

#[test]
fn render_prints_the_bytes_that_check_shows() {
    let rendered = crawlgate(&["render", "--host", "any.example"]);
    assert_eq!(
        rendered.status.code(),
        Some(0),
        "{}",
        text(&rendered.stderr)
    );
    let checked = json(&crawlgate(&["check", "--json"]));
    assert_eq!(checked["sites"][0]["robots_txt"], text(&rendered.stdout));
    assert_eq!(checked["sites"][0]["bytes"], rendered.stdout.len());
    assert!(text(&rendered.stdout).contains("User-agent: GPTBot\nDisallow: /\n"));
}

#[test]
fn render_of_a_host_that_no_policy_is_for_is_a_finding() {
    let policies = directory(&[("shop.yaml", GOOD)]);
    let output = crawlgate(&[
        "render",
        "--host",
        "other.example",
        "--policies",
        path(&policies),
    ]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    assert!(
        text(&output.stderr).contains("other.example"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_broken_policy_does_not_keep_another_from_being_rendered() {
    let policies = directory(&[("shop.yaml", GOOD), ("wrong.yaml", "hots: x\n")]);
    let output = crawlgate(&[
        "render",
        "--host",
        "shop.example",
        "--policies",
        path(&policies),
    ]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("Disallow: /cart/"));
    assert!(
        text(&output.stderr).contains("wrong.yaml:1:1"),
        "{}",
        text(&output.stderr)
    );
    let output = crawlgate(&[
        "render",
        "--host",
        "wrong.example",
        "--policies",
        path(&policies),
    ]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn explain_as_json_has_the_shape_that_is_documented() {
    let policies = directory(&[(
        "shop.yaml",
        &format!("{GOOD}indexing:\n  - tag: noarchive\n"),
    )]);
    let arguments = [
        "explain",
        "--policies",
        path(&policies),
        "--host",
        "shop.example",
        "--user-agent",
        "Googlebot",
        "--json",
    ];
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
    assert!(
        said["rule"]["source"]
            .as_str()
            .is_some_and(|place| place.ends_with("shop.yaml:6:17")),
        "{said}"
    );
    assert_eq!(said["verdict"], "disallowed");
    assert_eq!(said["kind"], "unproven");
    // Nothing is said about enforcement: observe.
    assert_eq!(said["action"]["kind"], "pass");
    assert_eq!(said["action"]["would"]["kind"], "block");
    assert_eq!(said["action"]["would"]["status"], 403);
    assert_eq!(said["x_robots_tag"], serde_json::json!(["noarchive"]));
}

#[test]
fn explain_of_an_unverified_client_names_the_next_flag() {
    let policies = directory(&[("shop.yaml", GOOD)]);
    let arguments = ["explain", "--policies", path(&policies), "--host"];
    let explained = |more: &[&str]| {
        let request = ["shop.example", "--user-agent", "Googlebot", "/"];
        text(&crawlgate(&[&arguments[..], &request, more].concat()).stdout)
    };
    let without = explained(&[]);
    assert!(
        without.contains("--ip") && !without.contains("--live"),
        "{without}"
    );
    let with = explained(&["--ip", "203.0.113.5"]);
    assert!(with.contains("--live") && !with.contains("--ip"), "{with}");
}

#[test]
fn explained_path_has_the_type_of_its_ending() {
    let indexing = "indexing:\n  - { types: application/pdf, tag: noindex }\n  - { types: text/html, tag: noarchive }\n";
    let policies = directory(&[("shop.yaml", &format!("{GOOD}{indexing}"))]);
    let arguments = [
        "explain",
        "--policies",
        path(&policies),
        "--host",
        "shop.example",
        "--user-agent",
        "Googlebot",
        "--json",
    ];
    for (more, tag) in [
        (&["/a.pdf?x=1"][..], serde_json::json!(["noindex"])),
        (&["/a"], serde_json::json!(["noarchive"])),
        (
            &["/a", "--type", "application/pdf"],
            serde_json::json!(["noindex"]),
        ),
        (&["/a.pdf", "--type", "image/png"], serde_json::json!([])),
    ] {
        let explained = json(&crawlgate(&[&arguments[..], more].concat()));
        assert_eq!(explained["x_robots_tag"], tag, "{more:?}");
    }
    let (_, arguments) = arguments.split_last().expect("arguments");
    for (more, is_guessed) in [
        (&["/download?id=7"][..], true),
        (&["/download?id=7", "--type", "text/html"], false),
        (&["/robots.txt"], false),
    ] {
        let explained = text(&crawlgate(&[arguments, more].concat()).stdout);
        assert_eq!(explained.contains("--type"), is_guessed, "{explained}");
    }
}

#[test]
fn an_address_of_ipv4_is_the_same_one_mapped_into_ipv6() {
    let policy = |networks: &str, ip: &str| {
        format!(
            "hosts: a.example\nrobots: {{ origin: replace, groups: [{{ agents: \"*\" }}] }}\nenforcement: {{ mode: enforce }}\n\
             crawlers: [{{ token: PartnerBot, networks: [\"{networks}\"] }}]\n\
             tests:\n  - {{ agent: PartnerBot, path: /, ip: \"{ip}\", expect: allowed }}\n  \
             - {{ agent: PartnerBot, path: /, ip: \"::ffff:203.0.113.7\", expect: {{ kind: impostor }} }}\n"
        )
    };
    for (networks, inside) in [
        ("198.51.100.0/24", "::ffff:198.51.100.7"),
        ("::ffff:198.51.100.0/120", "198.51.100.7"),
        ("::ffff:198.51.100.7", "198.51.100.7"),
    ] {
        let directory = directory(&[("a.yaml", &policy(networks, inside))]);
        let checked = crawlgate(&["check", path(&directory)]);
        assert!(
            checked.status.success(),
            "{networks}: {}",
            text(&checked.stdout)
        );
        for (ip, identity) in [
            (inside, "verified"),
            ("203.0.113.7", "impostor"),
            ("::ffff:203.0.113.7", "impostor"),
        ] {
            let question = [
                "explain",
                "--json",
                "--policies",
                path(&directory),
                "--host",
                "a.example",
                "--ip",
                ip,
            ];
            let explained = json(&crawlgate(
                &[&question[..], &["--user-agent", "PartnerBot/1", "/"]].concat(),
            ));
            assert_eq!(
                explained["identity"], identity,
                "{networks}, {ip}: {explained}"
            );
            let found = if identity == "verified" {
                "policy-inside"
            } else {
                "policy-outside"
            };
            let evidence = &explained["evidence"][0];
            let message = evidence["message"].as_str().expect("a message");
            assert!(
                evidence["id"] == found && message.contains("a.yaml"),
                "{networks}, {ip}: {evidence}"
            );
        }
    }
}

#[test]
fn explain_shows_origin_tags_in_sent_order() {
    let rules =
        "origin_tags: keep\nindexing: { tags: { '*': notranslate, googlebot: nosnippet } }\n";
    let policies = directory(&[("shop.yaml", &format!("{GOOD}{rules}"))]);
    let arguments = [
        "explain",
        "--policies",
        path(&policies),
        "--host",
        "shop.example",
        "--user-agent",
        "Googlebot",
        "--json",
    ];
    let said = json(&crawlgate(
        &[&arguments[..], &["--origin-tag", "googlebot: noindex", "/"]].concat(),
    ));
    let lines = ["notranslate", "googlebot: noindex", "googlebot: nosnippet"];
    assert_eq!(said["x_robots_tag"], serde_json::json!(lines));
}

#[test]
fn explain_for_a_host_that_no_policy_is_for_exits_1() {
    let policies = directory(&[("shop.yaml", GOOD)]);
    for more in [&[][..], &["--json"]] {
        let question = [
            "explain",
            "--policies",
            path(&policies),
            "--user-agent",
            "GPTBot",
            "/",
            "--host",
        ];
        let output = crawlgate(&[&question[..], &["other.example"], more].concat());
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        assert!(!output.stdout.is_empty());
        assert_eq!(
            crawlgate(&[&question[..], &["shop.example"], more].concat())
                .status
                .code(),
            Some(0)
        );
    }
}

const UNLISTED: &str = "FoozleBot/1.0 (+https://foozle.example)";

/// The lines that `check` and `explain` name are written into the policy and do what they promise.
#[test]
fn check_and_explain_name_the_lines_that_refuse_an_unlisted_bot() {
    let enforcing = format!("{GOOD}enforcement: {{ mode: enforce }}\n");
    let policies = directory(&[("shop.yaml", &enforcing)]);
    let explain = |policies: &tempfile::TempDir, more: &[&str]| {
        let question = [
            "explain",
            "--policies",
            path(policies),
            "--host",
            "shop.example",
            "--user-agent",
            UNLISTED,
        ];
        crawlgate(&[&question[..], &["/cart/"], more].concat())
    };
    let explained = json(&explain(&policies, &["--json"]));
    assert_eq!(
        (&explained["action"]["kind"], &explained["observed"]),
        (&"pass".into(), &"unlisted".into())
    );
    let lines: Vec<String> =
        serde_json::from_value(explained["to_enforce"].clone()).expect("lines");
    assert_eq!(lines.len(), 2, "{explained}");
    let shown = text(&explain(&policies, &[]).stdout);
    let checked = text(&crawlgate(&["check", path(&policies)]).stdout);
    assert!(
        lines.iter().all(|line| shown.contains(line.as_str())),
        "{shown}"
    );
    assert!(checked.contains(&lines[1]), "{checked}");
    assert_eq!(
        json(&crawlgate(&["check", "--json", path(&policies)]))["sites"][0]["unlisted_only_observed"],
        true
    );

    for line in lines {
        let mode = line.replace("enforcement: {", "enforcement: { mode: enforce,");
        let named = directory(&[("shop.yaml", &format!("{GOOD}{mode}\n"))]);
        assert_eq!(
            json(&explain(&named, &["--json"]))["action"]["kind"],
            "block",
            "{mode}"
        );
    }
    let observing = directory(&[("shop.yaml", GOOD)]);
    assert_eq!(
        json(&explain(&observing, &["--json"]))["observed"],
        "unlisted"
    );
    assert!(!text(&crawlgate(&["check", path(&observing)]).stdout).contains("unlisted"));
}

#[test]
fn check_says_that_rewritten_pages_come_uncompressed() {
    let policies = directory(&[("shop.yaml", &format!("{GOOD}html: meta\n"))]);
    let shown = text(&crawlgate(&["check", path(&policies)]).stdout);
    assert!(
        shown.lines().any(|line| line.starts_with("  html ")),
        "{shown}"
    );
}

#[test]
fn explain_shows_the_line_of_the_policy_that_decided() {
    let output = crawlgate(&[
        "explain",
        "--host",
        "any.example",
        "--user-agent",
        "GPTBot",
        "/",
    ]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let policy =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("policies/demo.yaml"))
            .expect("it");
    let line = policy
        .lines()
        .position(|line| line.starts_with("  training: disallow"))
        .expect("the line")
        + 1;
    assert!(
        shown.contains(&format!("policies/demo.yaml:{line}:13")),
        "{shown}"
    );
    assert!(shown.contains("training: disallow"), "{shown}");
    let explained = json(&crawlgate(&[
        "explain",
        "--json",
        "--host",
        "any.example",
        "--user-agent",
        "GPTBot",
        "/",
    ]));
    assert_eq!(
        explained["action"],
        serde_json::json!({ "kind": "block", "status": 403 })
    );
    assert_eq!(
        explained["rule"]["source"],
        format!("policies/demo.yaml:{line}:13")
    );
}

#[test]
fn crawlers_are_listed_found_and_identified() {
    let all = json(&crawlgate(&["crawlers", "--json"]));
    assert!(all.as_array().is_some_and(|all| all.len() > 100));
    let training = json(&crawlgate(&["crawlers", "--json", "--purpose", "training"]));
    assert!(
        training
            .as_array()
            .is_some_and(|all| all.iter().all(|crawler| crawler["purpose"] == "training"))
    );
    let table = crawlgate(&["crawlers", "--purpose", "training"]);
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    let is_marked = |id: &str| {
        let mut lines = table.lines();
        let line = lines.find(|line| line.starts_with(id));
        line.expect("a training crawler").contains("retired")
    };
    assert!(is_marked("facebookbot") && is_marked("anthropic-ai") && !is_marked("gptbot"));

    let known = "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)";
    let identified = json(&crawlgate(&["crawlers", "--json", "--identify", known]));
    assert_eq!(
        (
            identified["claim"].as_str(),
            identified["crawler"]["id"].as_str()
        ),
        (Some("known"), Some("bingbot"))
    );
    let person = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0";
    assert_eq!(
        json(&crawlgate(&["crawlers", "--json", "--user-agent", person]))["claim"],
        "visitor"
    );
    assert!(text(&crawlgate(&["crawlers", "--identify", person]).stdout).starts_with("visitor"));

    assert_eq!(
        json(&crawlgate(&["crawlers", "--json", "--identify", "-foo"]))["claim"],
        "tool",
        "not an option"
    );

    assert_eq!(
        crawlgate(&["crawlers", "--identify", "-"]).status.code(),
        Some(2)
    );

    assert!(text(&crawlgate(&["crawlers", "gptbot"]).stdout).contains("OpenAI"));
    let kept = text(&crawlgate(&["crawlers", "duckassistbot"]).stdout);
    assert!(
        kept.contains("72 hours"),
        "how long it may use a cached copy: {kept}"
    );
    let unknown = crawlgate(&["crawlers", "GTPBot"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(
        text(&unknown.stderr).to_lowercase().contains("gptbot"),
        "{}",
        text(&unknown.stderr)
    );
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

const ROBOTS_TXT: &str = "User-agent: Googlebot\nUser-agent: MJ12bot\nDisallow: /a%62c\nAllow: /a\n\nUser-agent: *\nDisallow: /private\n";

#[test]
fn tester_shows_verdict_group_line_and_googles_reading() {
    let files = directory(&[("robots.txt", ROBOTS_TXT)]);
    let file = files.path().join("robots.txt").display().to_string();
    let output = crawlgate(&[
        "tester",
        &file,
        "--agent",
        "Googlebot",
        "--agent",
        "GPTBot",
        "/abc",
        "https://x.example/private?q",
    ]);
    assert_eq!(output.status.code(), Some(1), "a URL is denied");
    let shown = text(&output.stdout);
    for part in [
        "allow Googlebot /abc\n",
        "> 4 | Allow: /a\n",
        "allow Googlebot https://x.example/private?q\n",
        "deny GPTBot https://x.example/private?q\n",
        "> 7 | Disallow: /private\n",
    ] {
        assert!(shown.contains(part), "{part:?} in {shown}");
    }
    // A crawler's own reading leads, unless one is asked for.
    for (agent, more, dialect, allowed, line) in [
        ("Googlebot", &[][..], "google", true, 4),
        ("Googlebot", &["--dialect", "google"], "google", true, 4),
        ("Googlebot", &["--dialect", "rfc9309"], "rfc9309", false, 3),
        ("MJ12bot", &[], "rfc9309", false, 3),
    ] {
        let answers = json(&crawlgate(
            &[&["tester", &file, "--agent", agent, "/abc", "--json"], more].concat(),
        ));
        let answer = &answers[0];
        assert_eq!(
            (&answer["dialect"], &answer["allowed"]),
            (&dialect.into(), &allowed.into()),
            "{agent} {more:?}"
        );
        assert_eq!(
            (&answer["line"], &answer["differs"]["allowed"]),
            (&line.into(), &(!allowed).into()),
            "{agent} {more:?}"
        );
    }
    assert_eq!(
        crawlgate(&["tester", &file, "--agent", "Googlebot", "/public"])
            .status
            .code(),
        Some(0)
    );
    assert_eq!(
        crawlgate(&["tester", &file, "--agent", "*", "/"])
            .status
            .code(),
        Some(2)
    );
    assert_eq!(
        crawlgate(&["tester", "no-such-file", "--agent", "a", "/"])
            .status
            .code(),
        Some(3)
    );
}

const GOOGLE_AND_STAR: &str = "User-agent: Googlebot\nDisallow: /images/\n\nUser-agent: AdsBot-Google\nUser-agent: Feedly\nDisallow: /ads/\n\n\
     User-agent: *\nDisallow: /\n";

/// (agent, `--literal`, group, token or `-`, allowed) of `/images/`.
const ASKED: &[(&str, bool, &str, &str, bool)] = &[
    ("Googlebot-Image", false, "named", "Googlebot", false),
    ("Applebot", false, "named", "Googlebot", false),
    ("Google-InspectionTool", false, "named", "Googlebot", false),
    ("Googlebot-Image", true, "star", "-", false),
    ("AdsBot-Google", false, "named", "AdsBot-Google", true),
    ("AdsBot-Google-Mobile", false, "not_bound", "-", true),
    ("AdsBot-Google-Mobile", true, "star", "-", false),
    ("Perplexity-User", false, "not_bound", "-", true),
    ("Feedly", false, "named", "Feedly", true),
    ("OurOwnBot", false, "star", "-", false),
    (
        "Mozilla/5.0 (compatible; Googlebot-Image/1.0; +http://www.google.com/bot.html)",
        false,
        "named",
        "Googlebot",
        false,
    ),
    (
        "OurOwnBot/1.0 (+https://own.example)",
        false,
        "star",
        "-",
        false,
    ),
];

#[test]
fn tester_answers_for_a_known_crawler_as_its_operator_documents() {
    let files = directory(&[("robots.txt", GOOGLE_AND_STAR)]);
    let file = files.path().join("robots.txt").display().to_string();
    for (agent, is_literal, group, token, allowed) in ASKED {
        let more: &[&str] = if *is_literal { &["--literal"] } else { &[] };
        let output = crawlgate(
            &[
                &["tester", &file, "--agent", agent, "/images/", "--json"],
                more,
            ]
            .concat(),
        );
        let answer = &json(&output)[0];
        assert_eq!(
            (&answer["group"], answer["token"].as_str().unwrap_or("-")),
            (&(*group).into(), *token),
            "{answer}"
        );
        assert_eq!(answer["allowed"], *allowed, "{agent} {more:?}: {answer}");
    }
    let shown = text(
        &crawlgate(&[
            "tester",
            &file,
            "--agent",
            "Googlebot-Image/1.0",
            "/images/",
        ])
        .stdout,
    );
    assert!(
        shown.contains("Googlebot-Image") && shown.contains("Googlebot's"),
        "{shown}"
    );
}

#[test]
fn tester_and_explain_judge_urls_as_crawlers_send_them() {
    let files = directory(&[
        ("robots.txt", "User-agent: *\nDisallow: /überuns\n"),
        ("shop.yaml", GOOD),
    ]);
    let file = files.path().join("robots.txt").display().to_string();
    for url in [
        "/überuns",
        "/%C3%BCberuns",
        "https://shop.example/überuns#top",
    ] {
        let output = crawlgate(&["tester", &file, "--agent", "Googlebot", url]);
        assert_eq!(output.status.code(), Some(1), "{url}");
        let arguments = ["explain", "--policies", path(&files), "--json"];
        let request = ["--host", "shop.example", "--user-agent", "Googlebot", url];
        let explained = json(&crawlgate(&[&arguments[..], &request].concat()));
        assert_eq!(explained["target"], "/%C3%BCberuns", "{url}");
    }
}

#[test]
fn explain_takes_host_of_url_unless_flag_contradicts() {
    let policies = directory(&[("shop.yaml", GOOD)]);
    let explain = |more: &[&str]| {
        let arguments = [
            "explain",
            "--policies",
            path(&policies),
            "--user-agent",
            "GPTBot",
        ];
        crawlgate(&[&arguments[..], more, &["--json"]].concat())
    };
    let explained = json(&explain(&["https://Shop.example/a?b"]));
    assert_eq!(explained["host"], "shop.example");
    assert_eq!(explained["target"], "/a?b");
    let url = "https://shop.example/a";
    assert_eq!(
        explain(&["--host", "SHOP.example", url]).status.code(),
        Some(0)
    );
    for wrong in [
        &["--host", "other.example", url][..],
        &["/a"],
        &["shop.example/a"],
    ] {
        assert_eq!(explain(wrong).status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn check_of_several_policies_shows_no_robots_txt() {
    let blog = GOOD.replace("shop.example", "blog.example");
    let policies = directory(&[("shop.yaml", GOOD), ("blog.yaml", &blog)]);
    let several = text(&crawlgate(&["check", path(&policies)]).stdout);
    assert!(!several.contains("Disallow: /cart/"), "{several}");
    let alone = format!("{}/shop.yaml", path(&policies));
    let alone = crawlgate(&["check", &alone]);
    assert!(text(&alone.stdout).contains("Disallow: /cart/"));
}

#[test]
fn shared_fields_apply_unless_a_policy_has_its_own() {
    let shared = "# For all.\npurposes:\n  training: disallow\n  seo: disallow\nenforcement: { mode: enforce }\n";
    let blog =
        "hosts: [blog.example]\nrobots: { origin: replace }\npurposes: { training: allow }\n";
    let policies = directory(&[
        ("defaults.yaml", shared),
        ("shop.yaml", GOOD),
        ("blog.yaml", blog),
    ]);
    let defaults = format!("{}/defaults.yaml", path(&policies));
    for (host, agent, action, line) in [
        ("shop.example", "GPTBot", "block", Some(3)),
        ("blog.example", "GPTBot", "pass", None),
        ("shop.example", "AhrefsBot", "block", Some(4)),
        ("blog.example", "AhrefsBot", "block", Some(4)),
    ] {
        let question = ["explain", "--json", "--policies", path(&policies)];
        let request = ["--host", host, "--user-agent", agent, "/"];
        let explained = json(&crawlgate(&[&question[..], &request].concat()));
        assert_eq!(explained["action"]["kind"], action, "{host} {agent}");
        if let Some(line) = line {
            let place = explained["rule"]["source"].as_str().unwrap_or_default();
            let expected = format!("{defaults}:{line}:");
            assert!(place.starts_with(&expected), "{host} {agent}: {place}");
        }
    }
    let wrong = "# For all.\nenforcement: { mode: forbid }\n";
    std::fs::write(&defaults, wrong).expect("a file");
    // It is one mistake, though both policies have it.
    for checked in [path(&policies), defaults.as_str()] {
        let output = crawlgate(&["check", checked]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let shown = text(&output.stdout);
        let place = format!("{defaults}:2:22");
        assert_eq!(shown.matches(&place).count(), 1, "{shown}");
    }
    // Neither a link to nowhere nor a second mark is overlooked.
    std::fs::write(&defaults, "--- # the defaults: x\n").expect("a file");
    let check = || crawlgate(&["check", path(&policies)]).status.code();
    assert_eq!(check(), Some(1));
    std::fs::remove_file(&defaults).expect("a file");
    std::os::unix::fs::symlink("nowhere", &defaults).expect("a link");
    assert_eq!(check(), Some(3));
    // Beside the settings the file is none of theirs.
    let lines = "origins: http://127.0.0.1:3000\npolicies: policies\n";
    let settings = directory(&[("crawlgate.yaml", lines), ("defaults.yaml", wrong)]);
    std::fs::create_dir(settings.path().join("policies")).expect("a directory");
    std::fs::write(settings.path().join("policies/shop.yaml"), GOOD).expect("a policy");
    let file = format!("{}/crawlgate.yaml", path(&settings));
    let output = crawlgate(&["check", "--config", &file]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn check_of_directory_names_robots_txt_in_it() {
    let files = directory(&[("robots.txt", ROBOTS_TXT)]);
    let output = crawlgate(&["check", path(&files)]);
    assert_eq!(output.status.code(), Some(3));
    let message = text(&output.stderr);
    assert!(message.contains("to check the robots.txt"), "{message}");
}

#[test]
fn check_of_robots_txt_names_its_sitemaps() {
    let sitemaps: String = (1..5)
        .map(|number| format!("Sitemap: https://shop.example/{number}.xml\n"))
        .collect();
    let files = directory(&[("robots.txt", &format!("{ROBOTS_TXT}\n{sitemaps}"))]);
    let file = files.path().join("robots.txt").display().to_string();
    let shown = text(&crawlgate(&["check", &file]).stdout);
    assert!(
        shown.contains("4 Sitemap lines") && shown.contains("https://shop.example/3.xml, ..."),
        "{shown}"
    );
    let quiet = text(&crawlgate(&["check", "--quiet", &file]).stdout);
    assert!(!quiet.contains("Sitemap lines"), "{quiet}");
}

#[test]
fn host_in_place_of_a_file_gets_its_url() {
    let files = directory(&[("robots.txt", ROBOTS_TXT)]);
    let file = files.path().join("robots.txt").display().to_string();
    for arguments in [
        &["check", "shop.example"][..],
        &["tester", "shop.example", "--agent", "GPTBot", "/"],
        &["diff", "shop.example", &file],
        &["diff", &file, &file, "--urls", "shop.example"],
        &["audit", "--robots", "shop.example", &file],
        &["check", &file, "--sitemap", "shop.example/sitemap.xml"],
        &["check", "shop.example/robots.txt"],
    ] {
        let output = crawlgate(arguments);
        assert_eq!(output.status.code(), Some(3), "{arguments:?}");
        let message = text(&output.stderr);
        assert!(message.contains("https://shop.example"), "{message}");
    }
    for missing in ["missing.txt", "/missing/shop.example"] {
        let missing = crawlgate(&["check", missing]);
        assert!(!text(&missing.stderr).contains("https://"), "{missing:?}");
    }
    let log = crawlgate(&["audit", "--robots", &file, "https://shop.example/a.log"]);
    assert!(text(&log.stderr).contains("download it"), "{log:?}");
}

#[test]
fn tester_reads_urls_from_a_list_or_a_sitemap() {
    let sitemap = "<urlset><url><loc>https://x.example/private?a=1&amp;b=2</loc></url></urlset>";
    let files = directory(&[
        ("robots.txt", ROBOTS_TXT),
        (
            "urls",
            "# paths\n/abc\n\nhttps://x.example/private # a note\n",
        ),
        ("sitemap.xml", sitemap),
        ("repeated", "/abc\n/b\n/abc#c\n"),
        ("wrong", "/abc\nprivate\n"),
        ("marked", "\u{feff}/first\n/private\n"),
        (
            "table",
            "\u{feff}\"Address\",\"Status\"\n\"/abc\",\"200\"\n\"https://x.example/private#a\",\"\"\n",
        ),
        ("export", "Top pages,Clicks\n/a,10\n\"/b,c\",2\n"),
        ("quoted_header", "\"Top pages\",\"Clicks\"\n/a,10\n"),
        ("semicolons", "Seite;Klicks\n/a,b;10\n"),
        ("tabs", "URL\tClicks\n/a,b\t10\n"),
        ("no_header.csv", "/a,10\n/b#x,2\n"),
        ("one_column.csv", "URL\n/a\n"),
        ("home.csv", "home,/\ncart,/cart\n"),
        (
            "quotes.csv",
            "/search?q=\"a\"\n/a\"b,5\n\"/q?\"\"c,d\"\"\",1\n",
        ),
        ("second_column.csv", "yes,https://x.example/a\n"),
        ("positions", "URL,Avg. position\n/a,1.5\n"),
        (
            "second_column",
            "Indexed,Note #,Address\nyes,#1,https://x.example/a\n\"no, not\",#2,/b\n",
        ),
        ("no_header_quoted", "\"/a,b\";\"10\"\n"),
        ("log", "192.0.2.1 GET / https://x.example/a\n"),
        ("blank", "/a\nhttps://x.example/ 200\n"),
        ("one_word", "private\n/abc\n"),
        ("mistyped", "shop/a,b\n/c,d\n"),
        ("list.txt", "# one, two\n/a,b\n/c;d=1,2\n"),
    ]);
    let path = |name: &str| files.path().join(name).display().to_string();
    let ask = |list: &str, more: &[&str]| {
        let file = path("robots.txt");
        let list = path(list);
        let flags = [
            "tester", &file, "--agent", "GPTBot", "--json", "--urls", &list,
        ];
        crawlgate(&[&flags[..], more].concat())
    };
    let urls = |output: &Output| {
        let answers = json(output);
        let answers = answers.as_array().expect("a list").iter();
        let urls: Vec<String> = answers
            .map(|answer| answer["url"].as_str().expect("a text").to_owned())
            .collect();
        urls
    };
    let output = ask("urls", &["/first"]);
    assert_eq!(output.status.code(), Some(1), "a URL is denied");
    assert_eq!(
        urls(&output),
        ["/first", "/abc", "https://x.example/private"]
    );
    let output = ask("sitemap.xml", &[]);
    assert_eq!(urls(&output), ["https://x.example/private?a=1&b=2"]);
    let output = ask("wrong", &[]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("wrong:2"));
    assert!(text(&ask("mistyped", &[]).stderr).contains("mistyped:1"));
    for (list, place) in [
        ("one_word", "one_word:1"),
        ("log", "log:1"),
        ("blank", "blank:2"),
    ] {
        assert!(text(&ask(list, &[]).stderr).contains(place), "{list}");
    }
    for (list, expected) in [
        ("table", &["/abc", "https://x.example/private"][..]),
        ("export", &["/a", "/b,c"]),
        ("quoted_header", &["/a"]),
        ("semicolons", &["/a,b"]),
        ("tabs", &["/a,b"]),
        ("no_header.csv", &["/a", "/b"]),
        ("one_column.csv", &["/a"]),
        ("home.csv", &["/", "/cart"]),
        ("quotes.csv", &["/search?q=\"a\"", "/a\"b", "/q?\"c,d\""]),
        ("second_column.csv", &["https://x.example/a"]),
        ("positions", &["/a"]),
        ("second_column", &["https://x.example/a", "/b"]),
        ("no_header_quoted", &["/a,b"]),
        ("list.txt", &["/a,b", "/c;d=1,2"]),
        ("repeated", &["/abc", "/b"]),
    ] {
        assert_eq!(urls(&ask(list, &[])), expected, "{list}");
    }
    let utf16 = "URL\tClicks\n/a\t10\n".encode_utf16();
    let utf16 = utf16.flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    std::fs::write(path("utf16.csv"), [&b"\xff\xfe"[..], &utf16].concat()).expect("a file");
    let output = ask("utf16.csv", &[]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("UTF-16"));
    let file = path("robots.txt");
    let list = path("marked");
    let output = crawlgate(&["tester", &file, "--agent", "GPTBot", "--urls", &list]);
    let shown = text(&output.stdout);
    let mut lines = shown.lines();
    let denied = format!("deny GPTBot /private  by {file}:7 Disallow: /private");
    assert_eq!(lines.next(), Some(&*denied), "{shown}");
    assert_eq!(lines.next(), Some("allow GPTBot /first"));
    assert_eq!(lines.next(), Some("Denied to GPTBot: 1 of 2 URLs"));
    let agents = ["--agent", "GPTBot", "--agent", "Googlebot"];
    let ask = ["tester", &file, "--urls", &list, "--denied"];
    let output = crawlgate(&[&ask[..], &agents, &["--csv"]].concat());
    assert_eq!(output.status.code(), Some(1), "a URL is denied");
    assert_eq!(
        text(&output.stdout),
        "url,agent,access,line,rule,misspelt_line\r\n/private,GPTBot,deny,7,Disallow: /private,\r\n"
    );
    // A crawler that is named twice is tested once, and one without a denied URL has its sum.
    let twice = ["--agent", "GPTBot"];
    let output = crawlgate(&[&ask[..], &agents, &twice].concat());
    let shown = text(&output.stdout);
    let sums = "Denied to GPTBot: 1 of 2 URLs\nDenied to Googlebot: 0 of 2 URLs\n";
    assert_eq!(shown, format!("{denied}\n{sums}"));
    let output = crawlgate(&["tester", "-", "--agent", "GPTBot", "--urls", "-"]);
    assert_eq!(output.status.code(), Some(2), "there is one standard input");
    let output = crawlgate(&["tester", &file, "--agent", "GPTBot"]);
    assert_eq!(output.status.code(), Some(2), "there is nothing to test");
    assert!(text(&output.stderr).contains("--urls"), "{output:?}");
}

/// Flags may give another address, and `decide` does not listen there.
#[test]
fn origin_at_the_default_listener_is_a_warning() {
    let origin = "origins: http://127.0.0.1:8080\n";
    for (listen, found, code) in [
        ("", "warning[bad-origin]", 0),
        ("listen: 127.0.0.1:8080\n", "error[bad-origin]", 1),
        ("listen: 127.0.0.1:80\n", "0 errors, 0 warnings", 0),
    ] {
        let settings = format!("{origin}{listen}");
        let files = directory(&[("crawlgate.yaml", settings.as_str())]);
        let config = files.path().join("crawlgate.yaml").display().to_string();
        let output = crawlgate(&["check", "--config", &config]);
        let shown = text(&output.stdout);
        assert!(shown.contains(found), "{listen}: {shown}");
        assert_eq!(output.status.code(), Some(code), "{listen}: {shown}");
    }
}

#[test]
fn tester_rejects_a_malformed_path() {
    let files = directory(&[("robots.txt", ROBOTS_TXT)]);
    let file = files.path().join("robots.txt").display().to_string();
    for (agent, url, remedy) in [
        ("Googlebot", "cart/", "write /cart/"),
        (
            "Googlebot",
            "shop.example/cart/",
            "https://shop.example/cart/",
        ),
    ] {
        let output = crawlgate(&["tester", &file, "--agent", agent, url]);
        assert_eq!(output.status.code(), Some(2), "{agent} {url}");
        assert!(
            text(&output.stderr).contains(remedy),
            "{}",
            text(&output.stderr)
        );
    }
}

/// The file names words of people's phones, as lists of bots do.
#[test]
fn tester_names_the_tokens_that_a_product_goes_by() {
    let files = directory(&[(
        "ai.txt",
        "User-agent: GPTBot\nUser-agent: Gogglebot\nUser-agent: OpenAI\nDisallow: /\n",
    )]);
    let file = files.path().join("ai.txt").display().to_string();
    let said = |agent: &str| text(&crawlgate(&["tester", &file, "--agent", agent, "/x"]).stderr);
    assert!(said("ChatGPT").contains("\"ChatGPT-User\""));
    let misspelt = crawlgate(&["tester", &file, "--agent", "Bingbott", "/x"]);
    assert_eq!(misspelt.status.code(), Some(2));
    assert!(text(&misspelt.stderr).contains("did you mean bingbot?"));
    let shortened = crawlgate(&["crawlers", "bing"]);
    assert!(text(&shortened.stderr).contains("did you mean bingbot?"));
    let literal = ["tester", &file, "--agent", "Bingbott", "--literal", "/x"];
    assert_eq!(crawlgate(&literal).status.code(), Some(0));
    // The file names a crawler with a name of its own.
    for agent in ["GPTBot", "OurOwnReader", "Gogglebot", "OpenAI"] {
        assert_eq!(said(agent), "", "{agent}");
    }
}

#[test]
fn tester_sees_a_person_where_the_gate_does() {
    let list =
        "User-agent: Spider\nUser-agent: CriOS\nUser-agent: bot\nUser-agent: Foozle\nDisallow: /\n";
    let files = directory(&[("ai.txt", list)]);
    let file = files.path().join("ai.txt").display().to_string();
    let person = "Mozilla/5.0 (Linux; Android 13; Spider 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36";
    let bot = "PriceHunter/2.0 (bot; +http://x.example)";
    let named = "Mozilla/5.0 (compatible; Foozle/1.0; bot; +http://x.example)";
    for (agent, group, code) in [
        (person, "person", 0),
        (bot, "nothing", 0),
        (named, "named", 1),
        ("Spider", "named", 1),
    ] {
        let output = crawlgate(&["tester", &file, "--agent", agent, "/x", "--json"]);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{agent}: {}",
            text(&output.stderr)
        );
        assert_eq!(json(&output)[0]["group"], group, "{agent}");
    }
    let policies = directory(&[]);
    let policy = policies.path().join("shop.yaml").display().to_string();
    assert_eq!(
        crawlgate(&["import", &file, "--host", "shop.example", "-o", &policy])
            .status
            .code(),
        Some(0)
    );
    let question = [
        "explain",
        "--policies",
        path(&policies),
        "--host",
        "shop.example",
        "/x",
        "--json",
        "--user-agent",
    ];
    for (agent, crawler) in [
        (person, None),
        (bot, Some("other")),
        (named, Some("Foozle")),
    ] {
        let explained = json(&crawlgate(&[&question[..], &[agent]].concat()));
        assert_eq!(
            explained["crawler"]["id"].as_str(),
            crawler,
            "{agent}: {explained}"
        );
    }
}

/// Backups have other endings. Crawlers read 500 KiB of a file.
#[test]
fn robots_txt_is_known_by_its_lines_and_cut_as_crawlers_do() {
    let rules = "# Rules\nUser-agent: *\nDisallow: /a\n";
    // The rule for /c is among the last bytes that crawlers read.
    let read = format!("{rules}{}Disallow: /c\n", "#\n".repeat(255_800));
    let large = format!("{read}{}Disallow: /b\n", "#\n".repeat(50_000));
    let files = directory(&[("robots.txt.bak", rules), ("robots.txt", &large)]);
    let path = |name: &str| files.path().join(name).display().to_string();
    let backup = path("robots.txt.bak");
    let file = path("robots.txt");
    assert_eq!(crawlgate(&["check", &backup]).status.code(), Some(0));
    let output = crawlgate(&["diff", &backup, &file]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text(&output.stderr).contains("larger than 500 KiB"));
    for dialect in ["rfc9309", "google"] {
        for (url, code) in [("/b", 0), ("/c", 1)] {
            let agent = ["--agent", "GPTBot", "--dialect", dialect];
            let output = crawlgate(&[&["tester", &file, url][..], &agent].concat());
            assert_eq!(output.status.code(), Some(code), "{output:?}");
        }
    }
}

#[test]
fn notes_are_counted_in_one_line_and_shown_when_asked_for() {
    let rules: String = (0..5)
        .map(|number| format!("Disallow: /{number}/private/\n"))
        .collect();
    let files = directory(&[(
        "robots.txt",
        &format!("User-agent: *\n{rules}Disallow: /open-ended\n"),
    )]);
    let file = files.path().join("robots.txt").display().to_string();
    let shown = text(&crawlgate(&["check", &file]).stdout);
    assert!(
        shown.contains("6 notes (5 private-path, 1 open-ended-path)")
            && shown.contains("--sitemap URL")
            && !shown.contains("note["),
        "{shown}"
    );
    assert!(shown.contains("0 errors, 0 warnings"), "{shown}");
    let shown = text(&crawlgate(&["check", "--notes", &file]).stdout);
    assert!(
        shown.contains("note[open-ended-path]") && shown.contains("and 2 more"),
        "{shown}"
    );
    assert_eq!(shown.matches("note[private-path]").count(), 3, "{shown}");
    let report = json(&crawlgate(&["check", "--json", &file]));
    assert_eq!(
        (
            &report["notes"],
            report["findings"].as_array().map(Vec::len)
        ),
        (&6.into(), Some(4)),
        "{report}"
    );
}

#[test]
fn check_reports_a_closed_site_first() {
    let files = directory(&[(
        "robots.txt",
        "User-agent: *\nCrawl-delay: 9\n\nUser-agent: 008\nDisallow: /\n",
    )]);
    let file = files.path().join("robots.txt").display().to_string();
    let output = crawlgate(&["check", "--deny-warnings", &file]);
    let shown = text(&output.stdout);
    assert!(
        shown.starts_with("warning[site-closed]: line 5 "),
        "{shown}"
    );
    assert_eq!(output.status.code(), Some(1));
    let deny = |id: &str| crawlgate(&["check", "--deny", id, &file, "--json"]);
    let denied = deny("site-closed");
    assert_eq!(denied.status.code(), Some(1));
    let report = json(&denied);
    assert_eq!(report["findings"][0]["severity"], "error");
    assert_eq!(report["errors"], 1);
    assert_eq!(deny("noindex-unseen").status.code(), Some(0));
    let unknown = deny("site-close");
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("'site-closed'"));
}

#[test]
fn tester_notes_a_misspelt_line_that_decides() {
    let robots_txt = "User-agent: *\nDisalow: /a\n\nUser agent: GPTBot\nDisallow: /b\n";
    let files = directory(&[("robots.txt", robots_txt)]);
    let file = files.path().join("robots.txt").display().to_string();
    for (agent, url, line) in [
        ("bingbot", "/a", Some(2)),
        ("GPTBot", "/b", Some(4)),
        ("Googlebot", "/c", None),
        ("bingbot", "/c", None),
    ] {
        let verdicts = crawlgate(&["tester", &file, "--agent", agent, url, "--json"]);
        let found = json(&verdicts)[0]["misspelt_line"].as_u64();
        assert_eq!(found, line, "{agent} {url}");
    }
}

#[test]
fn tester_names_the_deciding_line_in_both_dialects() {
    let verdict = |file: &str, dialect: &str, agent: &str, url: &str| {
        let files = directory(&[("robots.txt", file)]);
        let file = files.path().join("robots.txt").display().to_string();
        let output = crawlgate(&[
            "tester",
            &file,
            "--dialect",
            dialect,
            "--literal",
            "--agent",
            agent,
            url,
            "--json",
        ]);
        let verdict = &json(&output)[0];
        (
            verdict["allowed"].as_bool().expect("a verdict"),
            verdict["line"].as_u64(),
        )
    };
    for (agent, url, rfc, google) in [
        (
            "Googlebot",
            "https://x.example/abc",
            (false, Some(3)),
            (true, Some(4)),
        ),
        ("GPTBot", "/private", (false, Some(7)), (false, Some(7))),
        ("MJ12bot", "/abc", (false, Some(3)), (true, None)),
        ("MJ", "/abc", (true, None), (true, Some(4))),
    ] {
        assert_eq!(verdict(ROBOTS_TXT, "rfc9309", agent, url), rfc, "{agent}");
        assert_eq!(verdict(ROBOTS_TXT, "google", agent, url), google, "{agent}");
    }
    // An empty Disallow matches each URL, and allows it.
    for dialect in ["rfc9309", "google"] {
        let empty = "User-agent: *\nDisallow:\n";
        assert_eq!(verdict(empty, dialect, "a", "/"), (true, Some(2)));
    }
}

#[test]
fn imported_robots_txt_passes_check() {
    let files = directory(&[(
        "robots.txt",
        "User-agent: *\nDisalow: /a\nDisallow: private\nClean-param: ref /\n",
    )]);
    let file = files.path().join("robots.txt").display().to_string();
    let checked = crawlgate(&["check", &file]);
    assert_eq!(checked.status.code(), Some(0), "warnings");
    let shown = text(&checked.stdout);
    assert!(
        shown.contains("warning[misspelt-key]") && shown.contains("robots.txt:2:1"),
        "{shown}"
    );
    assert_eq!(
        crawlgate(&["check", &file, "--deny-warnings"])
            .status
            .code(),
        Some(1)
    );
    let report = json(&crawlgate(&["check", &file, "--json"]));
    assert!(report["findings"].as_array().is_some_and(|all| {
        all.iter()
            .any(|finding| finding["id"] == "path-without-slash")
    }));

    let policy = files.path().join("policies/shop.yaml");
    let policy = policy.display().to_string();
    let imported = crawlgate(&["import", &file, "-o", &policy, "--host", "shop.example"]);
    assert_eq!(
        imported.status.code(),
        Some(0),
        "{}",
        text(&imported.stderr)
    );
    let notes = text(&imported.stderr);
    assert!(
        notes.contains("robots.txt:4") && notes.contains("Clean-param: ref /"),
        "{notes}"
    );
    assert_eq!(
        crawlgate(&["check", &policy, "--deny-warnings"])
            .status
            .code(),
        Some(0)
    );
    let written = std::fs::read_to_string(&policy).expect("the policy");
    let before = written
        .lines()
        .take_while(|line| *line != "enforcement:")
        .last();
    assert!(
        before.is_some_and(|line| line.starts_with('#')),
        "{written}"
    );
    assert_eq!(
        crawlgate(&["import", &file, "-o", &policy]).status.code(),
        Some(3),
        "never over a file that is there"
    );
}

/// A site without a robots.txt, one that fails, one behind redirects: as crawlers take them.
#[test]
fn tester_takes_the_status_of_a_site_as_crawlers_do() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap_or(0);
            let request = String::from_utf8_lossy(&request[..length]).into_owned();
            let answer = match request.split(' ').nth(1).unwrap_or("") {
                "/robots.txt" => {
                    "HTTP/1.1 301 Moved\r\nLocation: /real.txt\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                        .to_owned()
                }
                "/real.txt" => format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{ROBOTS_TXT}",
                    ROBOTS_TXT.len()
                ),
                "/missing.txt" => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned(),
                "/busy.txt" => "HTTP/1.1 429 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned(),
                _ => "HTTP/1.1 503 Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned(),
            };
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    let ask_for = |path: &str, agent: &str| {
        let file = format!("http://{address}{path}");
        crawlgate(&["tester", &file, "--agent", agent, "/private"])
    };
    let ask = |path: &str| ask_for(path, "GPTBot");
    let redirected = ask("");
    assert_eq!(redirected.status.code(), Some(1));
    assert!(
        text(&redirected.stdout).contains("/real.txt:6"),
        "{}",
        text(&redirected.stdout)
    );
    let missing = ask("/missing.txt");
    assert_eq!(
        missing.status.code(),
        Some(0),
        "no file: everything is allowed"
    );
    assert!(text(&missing.stdout).contains(" 404"));
    assert_eq!(
        ask("/broken.txt").status.code(),
        Some(1),
        "unreachable: everything is denied"
    );
    // Google alone takes 429 for a closed site.
    assert_eq!(ask("/busy.txt").status.code(), Some(0));
    let google = ask_for("/busy.txt", "Googlebot");
    assert_eq!(google.status.code(), Some(1));
}

#[test]
fn tester_says_that_the_file_is_of_another_host() {
    let origin = crate::proxy::support::Origin::saying(
        "HTTP/1.1 200 OK\r\nContent-Length: 28\r\n\r\nUser-agent: *\nDisallow: /a/\n",
    );
    let file = format!("http://{}", origin.address);
    for (url, is_other) in [
        ("https://shop.example/a/".to_owned(), true),
        (format!("{file}/a/"), false),
        ("/a/".to_owned(), false),
    ] {
        let asked = crawlgate(&["tester", &file, "--agent", "GPTBot", &url]);
        assert_eq!(asked.status.code(), Some(1), "{url}");
        assert_eq!(
            text(&asked.stderr).contains("shop.example"),
            is_other,
            "{url}: {}",
            text(&asked.stderr)
        );
    }
}

#[test]
fn import_of_an_address_asks_for_the_host() {
    let origin = crate::proxy::support::Origin::saying(
        "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nUser-agent:*",
    );
    let port = origin.address.port();
    for url in [
        format!("http://{}", origin.address),
        format!("http://localhost:{port}/robots.txt"),
    ] {
        let refused = crawlgate(&["import", &url]);
        assert_eq!(refused.status.code(), Some(2), "{url}");
        assert!(
            text(&refused.stderr).contains("--host"),
            "{}",
            text(&refused.stderr)
        );
        let imported = crawlgate(&["import", &url, "--host", "shop.example"]);
        assert_eq!(
            imported.status.code(),
            Some(0),
            "{}",
            text(&imported.stderr)
        );
        assert!(
            text(&imported.stdout).contains("hosts: [shop.example]"),
            "{}",
            text(&imported.stdout)
        );
    }
    assert_eq!(
        crawlgate(&["import", "robots.txt", "--host", "http://shop.example/"])
            .status
            .code(),
        Some(2)
    );
}

#[test]
fn check_warns_of_a_site_that_no_public_name_leads_to() {
    let warns = |hosts: &str| {
        let policies = directory(&[(
            "shop.yaml",
            &format!("hosts: [{hosts}]\nrobots: {{ origin: replace }}\n"),
        )]);
        text(&crawlgate(&["check", path(&policies)]).stdout).contains("WARNING")
    };
    assert!(warns("\"127.0.0.1:3000\"") && warns("localhost") && warns("\"[::1]\""));
    assert!(!warns("shop.example") && !warns("localhost, shop.example"));
}

/// Of golang.org/x/mod/sumdb/note.
const KEY: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";

#[test]
fn input_without_an_end_is_read_up_to_a_bound() {
    let directory = directory(&[("a.yaml", GOOD), ("a.txt", "")]);
    std::fs::File::create(directory.path().join("case.tar"))
        .and_then(|case| case.set_len(1 << 32))
        .expect("a file");
    symlink("/dev/zero", directory.path().join("zero.txt")).expect("a link");
    let runs: [&[&str]; 9] = [
        &["tester", "-", "--agent", "GPTBot", "/"],
        &["tester", "/dev/zero", "--agent", "GPTBot", "/"],
        &["import", "-"],
        &["import", "/dev/zero"],
        &["check", "-"],
        &["diff", "a.txt", "-"],
        &["check", "a.yaml", "--origin-robots", "/dev/zero"],
        &["audit", "--robots", "zero.txt", "a.txt"],
        &["evidence", "verify", "case.tar", "--key", KEY],
    ];
    for arguments in runs {
        let output = Command::new(env!("CARGO_BIN_EXE_crawlgate"))
            .args(arguments)
            .current_dir(directory.path())
            .stdin(std::fs::File::open("/dev/zero").expect("a device"))
            .output()
            .expect("the binary runs");
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {output:?}");
    }
}

#[test]
fn tokens_of_a_robots_txt_reach_no_terminal() {
    let hostile = "User-agent: a\u{9b}2J\x1b[2Jb\nDisallow: /\x1b[2J\u{202e}x\nX\x1b[2J: \u{9b}\n# \u{202e}\x1b##[error]y\n";
    let directory = directory(&[("a.txt", hostile)]);
    let file = directory.path().join("a.txt");
    let file = file.to_str().expect("UTF-8");
    let runs: [&[&str]; 5] = [
        &["import", file],
        &["check", file],
        &["check", file, "--json"],
        &["check", file, "--format", "github"],
        &["tester", file, "--agent", "a\u{9b}", "/\x1b"],
    ];
    for arguments in runs {
        let output = crawlgate(arguments);
        let shown = text(&output.stdout) + &text(&output.stderr);
        assert!(
            !shown.contains(['\x1b', '\u{9b}', '\u{202e}']),
            "{arguments:?}: {shown:?}"
        );
    }
}
