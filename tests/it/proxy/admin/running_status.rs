//! What `status` says of a running crawlgate, and its exit code: origins that fail, hosts without
//! an origin or a policy, a proxy that was not declared, and what is enforced for whom. The log
//! says the same once, or once a second.

use crate::proxy::support::{BINGBOT, BROWSER, GPTBOT, Gate, Origin, Setup, eventually, read, run};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Command;
use std::time::Instant;

const POLICY: &str =
    "hosts: [shop.example]\nrobots: { origin: replace }\nenforcement: { behind_cache: no }\n";

/// The status as JSON, and the exit code.
fn status(gate: &Gate) -> (Value, Option<i32>) {
    let output = gate.command(&["status", "--json"]);
    (
        serde_json::from_slice(&output.stdout).expect("JSON"),
        output.status.code(),
    )
}

fn text(gate: &Gate) -> String {
    String::from_utf8(gate.command(&["status"]).stdout).expect("text")
}

/// The kinds of its problems.
fn problems(status: &Value) -> Vec<&str> {
    let problems = status["problems"].as_array().expect("problems");
    problems
        .iter()
        .map(|found| found["problem"].as_str().expect("a kind"))
        .collect()
}

/// Waits for a problem, which needs exit code 1.
fn wait_for_problem(gate: &Gate, kind: &str) -> Value {
    let found = eventually(kind, || {
        Some(status(gate)).filter(|(status, _)| problems(status).contains(&kind))
    });
    assert_eq!(found.1, Some(1));
    found.0
}

fn message(status: &Value, kind: &str) -> String {
    let problems = status["problems"].as_array().expect("problems");
    let found = problems
        .iter()
        .find(|found| found["problem"] == kind)
        .expect("the problem");
    found["message"].as_str().expect("a message").to_owned()
}

fn lines(gate: &Gate, wanted: &str) -> Vec<String> {
    gate.log
        .text()
        .lines()
        .filter(|line| line.contains(wanted))
        .map(str::to_owned)
        .collect()
}

/// Sends the same request many times on one connection each; returns for how many seconds.
fn flood(gate: &Gate, count: usize, host: &str, target: &str, headers: &str) -> u64 {
    let began = Instant::now();
    for _ in 0..count {
        gate.get(host, target, headers);
    }
    began.elapsed().as_secs()
}

#[test]
fn healthy_instance_has_no_problem_and_exits_0() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).policy("shop", POLICY).start();
    for number in 0..20 {
        gate.get(
            "shop.example",
            &format!("/{number}"),
            &format!("User-Agent: {GPTBOT}\r\n"),
        );
    }
    let (status, code) = status(&gate);
    assert_eq!(
        (problems(&status).len(), code),
        (0, Some(0)),
        "{}",
        status["problems"]
    );
    let seen = &status["origins"][0];
    assert_eq!(seen["origin"], format!("http://{}", origin.address));
    assert_eq!(
        (&seen["requests"], &seen["failures"]),
        (&20.into(), &0.into())
    );
    assert!(
        gate.metrics()
            .contains("crawlgate_problems{problem=\"origin_failing\"} 0")
    );
}

#[test]
fn origin_that_is_down_is_a_problem_with_its_last_failure() {
    let nowhere = Origin::nowhere();
    let mut gate = Setup::before(nowhere)
        .policy("shop", POLICY)
        .with_clock()
        .start();
    let seconds = flood(&gate, 40, "shop.example", "/cart?id=1", "");
    let logged = lines(&gate, "target=\"/cart?id=1\"");
    assert!(
        (1..=seconds as usize + 1).contains(&logged.len()),
        "{seconds} seconds: {logged:#?}"
    );
    for word in ["shop.example", "connect_refused", &nowhere.to_string()] {
        assert!(logged[0].contains(word), "{}", logged[0]);
    }
    eventually("a line that counts those that were left out", || {
        gate.get("shop.example", "/", "");
        lines(&gate, "left_out=")
            .into_iter()
            .find(|line| !line.contains("left_out=0"))
    });
    let found = wait_for_problem(&gate, "origin_failing");
    let origin = &found["origins"][0];
    assert_eq!(
        origin["failures"], origin["requests"],
        "a request counts once, however often it was tried"
    );
    assert_eq!(origin["last_failure"]["reason"], "connect_refused");
    assert_eq!(origin["last_failure"]["host"], "shop.example");
    gate.wait_for_metric("crawlgate_problems{problem=\"origin_failing\"}", 1.0);
    assert!(
        text(&gate).contains("problem (origin_failing): "),
        "{}",
        text(&gate)
    );
    let problems = gate.command(&["status", "--problems"]);
    let problems = String::from_utf8(problems.stdout).expect("text");
    assert!(problems.contains("problem (origin_failing): ") && !problems.contains("\n  mode "));
    let alive = gate.command(&["status", "--alive"]);
    let line = String::from_utf8(alive.stdout).expect("text");
    assert_eq!(
        (alive.status.code(), line.lines().count()),
        (Some(0), 1),
        "for health checks it runs: {line}"
    );
    let control = gate.control().display().to_string();
    assert!(line.contains(env!("CARGO_PKG_VERSION")) && line.contains(&control));
    gate.live_through(600);
    assert_eq!(status(&gate).1, Some(0), "it counts the last five minutes");
    assert!(text(&gate).contains("connect_refused"), "{}", text(&gate));
}

#[test]
fn origin_that_answers_5xx_only_is_a_problem() {
    let origin = Origin::saying("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n");
    let gate = Setup::before(origin.address).policy("shop", POLICY).start();
    gate.get("shop.example", "/", "");
    let found = wait_for_problem(&gate, "origin_failing");
    let origin = &found["origins"][0];
    assert_eq!(
        (&origin["failures"], &origin["server_errors"]),
        (&0.into(), &1.into())
    );
}

/// From now on the process may open files up to this number; those that are open stay open.
fn limit_open_files(gate: &Gate, limit: &str) {
    let pid = gate.pid().to_string();
    let set = Command::new("prlimit")
        .args(["--pid", &pid, &format!("--nofile={limit}:")])
        .status();
    assert!(set.expect("prlimit").success());
}

#[test]
fn exhausted_file_limit_is_a_problem_of_crawlgate_alone() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).policy("shop", POLICY).start();
    let mut client = gate.connect();
    let mut page = |target: &str| {
        client.send(&format!(
            "GET {target} HTTP/1.1\r\nHost: shop.example\r\n\r\n"
        ));
        client.response("GET").status
    };
    // crawlgate answers this itself.
    assert_eq!(page("/robots.txt"), 200);
    limit_open_files(&gate, "3");
    assert_eq!(page("/"), 503);
    limit_open_files(&gate, "1024");
    let found = wait_for_problem(&gate, "file_limit");
    assert!(!problems(&found).contains(&"origin_failing"));
    assert!(message(&found, "file_limit").contains("LimitNOFILE"));
    assert_eq!(found["origins"][0]["unopened"], 1);
    assert_eq!(lines(&gate, "reason=\"file_limit\"").len(), 1);
    gate.wait_for_metric("crawlgate_problems{problem=\"file_limit\"}", 1.0);
    gate.wait_for_metric(
        "crawlgate_upstream_failures_total{origin=\"*\",reason=\"file_limit\",server=\"1\"}",
        1.0,
    );
    assert_eq!(gate.get("shop.example", "/", "").status, 200);
}

#[test]
fn connection_that_cannot_be_accepted_is_a_problem() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).policy("shop", POLICY).start();
    // A start that is not over would end without descriptors.
    eventually("the start is over", || {
        (status(&gate).1 == Some(0)).then_some(())
    });
    assert_eq!(gate.get("shop.example", "/", "").status, 200);
    limit_open_files(&gate, "3");
    let _client = gate.connect();
    eventually("a line of the log", || {
        (!lines(&gate, "cannot accept connections").is_empty()).then_some(())
    });
    limit_open_files(&gate, "1024");
    let found = wait_for_problem(&gate, "file_limit");
    assert!(found["traffic"]["unaccepted"].as_u64() > Some(0));
    assert_eq!(gate.get("shop.example", "/", "").status, 200);
}

#[test]
fn log_that_cannot_be_opened_is_a_problem_until_it_can() {
    let origin = Origin::plain();
    let parent = tempfile::tempdir().expect("a directory");
    let logs = parent.path().join("logs");
    let settings = format!(
        "logs: {{ access: {0}/access.log, events: {0}/events.log }}",
        logs.display()
    );
    let gate = Setup::before(origin.address)
        .policy("shop", POLICY)
        .settings(&settings)
        .start();
    assert_eq!(gate.get("shop.example", "/lost", "").status, 200);
    let found = wait_for_problem(&gate, "warning");
    for (number, log) in ["event-log", "access-log"].into_iter().enumerate() {
        let problem = &found["problems"][number];
        assert_eq!(problem["finding"], log);
        let message = problem["message"].to_string();
        assert!(message.contains(&logs.display().to_string()), "{message}");
    }
    gate.wait_for_metric("crawlgate_problems{problem=\"warning\"}", 2.0);
    let access = logs.join("access.log").display().to_string();
    assert_eq!(lines(&gate, &access).len(), 1, "{}", gate.log.text());
    std::fs::create_dir(&logs).expect("a directory");
    // Both are opened without a line.
    eventually("no problem", || (status(&gate).1 == Some(0)).then_some(()));
    gate.get("shop.example", "/kept", "");
    eventually("a line", || {
        read(&logs.join("access.log"))
            .contains("/kept")
            .then_some(())
    });
}

#[test]
fn changed_settings_file_is_a_problem_until_it_is_restored() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .policy("shop", POLICY)
        .settings("strict: yes")
        .start();
    let file = gate.path("crawlgate.yaml");
    let write = |text: &str| std::fs::write(&file, text).expect("written");
    let text = read(&file);
    write(&format!("# The same settings\n{text}"));
    assert_eq!(status(&gate).1, Some(0));
    // A field that is gone has its default at the next start.
    write(&text.replace("strict: yes", ""));
    wait_for_problem(&gate, "settings");
    write(&format!("{text}limits: {{ connections: 50 }}\n"));
    let found = wait_for_problem(&gate, "settings");
    assert!(message(&found, "settings").contains("crawlgate upgrade"));
    gate.wait_for_metric("crawlgate_problems{problem=\"settings\"}", 1.0);
    write(&format!("{text}limitts: {{ connections: 50 }}\n"));
    let found = wait_for_problem(&gate, "settings");
    let check = format!("crawlgate check --config {}", file.display());
    assert!(message(&found, "settings").contains(&check));
    std::fs::remove_file(&file).expect("removed");
    wait_for_problem(&gate, "settings");
    write(&text);
    assert_eq!(status(&gate).1, Some(0));
}

#[test]
fn policy_that_names_no_cache_behind_a_proxy_is_a_problem() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .policy(
            "shop",
            "hosts: [shop.example]\nrobots: { origin: replace }\n",
        )
        .settings("trusted_proxies: [127.0.0.1]")
        .start();
    let crawler = format!("User-Agent: {GPTBOT}\r\nX-Forwarded-For: 198.51.100.7\r\n");
    gate.get("shop.example", "/", &crawler);
    let found = wait_for_problem(&gate, "behind_cache");
    assert_eq!(found["problems"][0]["subject"], "shop");
    // A second site with the same problem makes no second one.
    gate.write_policy(
        "blog",
        "hosts: [blog.example]\nrobots: { origin: replace }\n",
    );
    assert_eq!(gate.command(&["reload"]).status.code(), Some(0));
    gate.get("blog.example", "/", &crawler);
    eventually("one problem of two sites", || {
        let found = status(&gate).0;
        let problem = &found["problems"][0];
        (problems(&found) == ["behind_cache"] && problem.get("subject").is_none()).then_some(())
    });
    std::fs::remove_file(gate.setup.policies().join("blog.yaml")).expect("deleted");
    gate.command(&["reload", "--remove", "blog"]);
    gate.write_policy("shop", POLICY);
    eventually("no problem", || (status(&gate).1 == Some(0)).then_some(()));
}

/// The report of a process that hangs comes from its state directory, and says so.
#[test]
fn report_of_a_process_that_hangs_is_from_its_directory() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).policy("shop", POLICY).start();
    let config = gate.path("crawlgate.yaml").display().to_string();
    let report = || run(&["report", "--config", &config]);
    let running = report();
    assert!(running.stderr.is_empty(), "{running:?}");
    gate.signal("STOP");
    let hanging = report();
    gate.signal("CONT");
    let notes = String::from_utf8_lossy(&hanging.stderr).into_owned();
    assert_eq!(hanging.status.code(), Some(0), "{notes}");
    assert!(notes.contains("hangs"), "{notes}");
    assert!(notes.contains(&gate.path("state").display().to_string()));
}

#[test]
fn one_request_for_a_site_without_an_origin_is_a_problem() {
    let origin = Origin::plain();
    let origins = format!(
        "origins: {{ hosts: [shop.example], servers: http://{} }}",
        origin.address
    );
    let gate = Setup::before("")
        .with_origins(&origins)
        .policy("blog", "hosts: blog.example\nrobots: { origin: replace }\n")
        .start();
    for _ in 0..30 {
        assert_eq!(gate.get("shop.example", "/", "").status, 200);
    }
    assert_eq!(gate.get("blog.example", "/", "").status, 502);
    let found = wait_for_problem(&gate, "no_origin");
    assert!(message(&found, "no_origin").contains("blog.example: 1"));
}

#[test]
fn host_without_an_origin_is_a_502_that_names_it() {
    let origin = Origin::plain();
    let origins = format!(
        "origins: {{ hosts: [shop.example], servers: http://{} }}",
        origin.address
    );
    let gate = Setup::before("")
        .with_origins(&origins)
        .policy("shop", POLICY)
        .start();
    let answer = gate.get("forgotten.example", "/", "Accept: application/json\r\n");
    assert_eq!(
        (answer.status, answer.field("cache-control")),
        (502, Some("no-store"))
    );
    let body: Value = serde_json::from_slice(&answer.body).expect("JSON");
    assert_eq!(body["error"], "no_origin");
    assert!(
        body["message"]
            .as_str()
            .is_some_and(|said| said.contains("forgotten.example")),
        "{body}"
    );
    let seconds = flood(&gate, 30, "forgotten.example", "/a", "");
    let logged = lines(&gate, "host=\"forgotten.example\"");
    assert!(
        (1..=seconds as usize + 2).contains(&logged.len()),
        "{seconds} seconds: {logged:#?}"
    );
    let found = wait_for_problem(&gate, "no_origin");
    let hosts = &found["without_origin"]["hosts"][0];
    assert_eq!(hosts[0], "forgotten.example");
    assert!(message(&found, "no_origin").contains(&format!("forgotten.example: {}", hosts[1])));
    gate.wait_for_metric(
        "crawlgate_upstream_failures_total{origin=\"none\",reason=\"no_origin\",server=\"none\"}",
        31.0,
    );
    assert_eq!(gate.get("shop.example", "/", "").status, 200);
}

#[test]
fn policies_claiming_few_requests_are_one_logged_problem() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).policy("shop", POLICY).start();
    gate.get("shop.example", "/", "");
    flood(&gate, 12, "WWW.shop.example", "/", "");
    let found = wait_for_problem(&gate, "unclaimed_hosts");
    // The number beside the host leaves out requests that were counted while another thread read or
    // counted hosts.
    assert_eq!(
        found["traffic"]["unclaimed_hosts"][0][0],
        "www.shop.example"
    );
    let shown = text(&gate);
    assert!(shown.contains("hosts without a policy, in the"), "{shown}");
    gate.log.wait_for("problem=\"unclaimed_hosts\"");
    flood(&gate, 12, "www.shop.example", "/", "");
    gate.write_policy(
        "shop",
        &POLICY.replace("[shop.example]", "[shop.example, www.shop.example]"),
    );
    eventually("the new policy", || {
        (status(&gate).0["generation"] == 2).then_some(())
    });
    flood(&gate, 30, "www.shop.example", "/", "");
    eventually("no problem", || {
        problems(&status(&gate).0).is_empty().then_some(())
    });
    assert_eq!(lines(&gate, "problem=\"unclaimed_hosts\"").len(), 1);
}

#[test]
fn undeclared_proxy_is_a_problem_with_its_setting() {
    let origin = Origin::plain();
    let through_proxy = "X-Forwarded-For: 198.51.100.7\r\nX-Forwarded-Proto: https\r\n";
    let gate = Setup::before(origin.address).policy("shop", POLICY).start();
    flood(&gate, 9, "shop.example", "/", through_proxy);
    assert_eq!(
        status(&gate).1,
        Some(0),
        "a few may be clients that send such fields"
    );
    flood(&gate, 9, "shop.example", "/", through_proxy);
    let found = wait_for_problem(&gate, "undeclared_proxy");
    assert!(message(&found, "undeclared_proxy").contains("trusted_proxies: [\"127.0.0.1\"]"));
    gate.log.wait_for("trusted_proxies: [\"127.0.0.1\"]");
    let trusting = Setup::before(origin.address)
        .policy("shop", POLICY)
        .settings("trusted_proxies: [127.0.0.1]")
        .start();
    flood(&trusting, 18, "shop.example", "/", through_proxy);
    assert_eq!(status(&trusting).1, Some(0));
}

#[test]
fn field_that_is_not_configured_is_a_problem_that_names_it() {
    let origin = Origin::plain();
    let behind = |settings: &str| {
        let settings = format!("trusted_proxies: [127.0.0.1]\n{settings}");
        Setup::before(origin.address)
            .policy("shop", POLICY)
            .settings(&settings)
            .start()
    };
    let gate = behind("");
    let named = "X-Real-IP: 198.51.100.7\r\n";
    gate.get(
        "shop.example",
        "/",
        &format!("X-Forwarded-For: 198.51.100.7\r\n{named}"),
    );
    gate.get(
        "shop.example",
        "/",
        &format!("X-Forwarded-For: 127.0.0.1\r\n{named}"),
    );
    gate.get("shop.example", "/", "Via: 1.1 a\r\n");
    assert_eq!(
        status(&gate).1,
        Some(0),
        "the field that counts has a client, or the proxy's own check has no other"
    );
    gate.get("shop.example", "/", "Forwarded: for=198.51.100.7\r\n");
    let found = wait_for_problem(&gate, "client_address");
    assert_eq!(
        found["traffic"]["unread_fields"],
        serde_json::json!([["forwarded", 1]])
    );
    assert!(message(&found, "client_address").contains("client_address: forwarded"));
    let configured = behind("client_address: forwarded");
    configured.get("shop.example", "/", "Forwarded: for=198.51.100.7\r\n");
    assert_eq!(status(&configured).1, Some(0));
    configured.get("shop.example", "/", named);
    wait_for_problem(&configured, "client_address");
}

#[test]
fn clients_with_forwarding_fields_among_others_are_no_proxy() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).policy("shop", POLICY).start();
    for number in 0..40 {
        let field = if number % 4 == 0 {
            "Via: 1.1 office\r\n"
        } else {
            ""
        };
        gate.get(
            "shop.example",
            "/",
            &format!("User-Agent: {BROWSER}\r\n{field}"),
        );
    }
    assert_eq!(status(&gate).1, Some(0));
}

#[test]
fn status_shows_enforcement_by_site() {
    let policy = "hosts: [shop.example]\nrobots: { origin: replace }\nenforcement:\n  mode: enforce\n  exempt: [Bingbot]\n  \
                  purposes: { training: { mode: observe } }\n  agents: { Bytespider: { mode: \"off\" } }\n";
    let gate = Setup::before(Origin::nowhere())
        .policy("shop", policy)
        .start();
    let (found, _) = status(&gate);
    let site = &found["sites"][0];
    assert_eq!(site["mode"], "enforce");
    let mode = |name: &str, mode: &str| serde_json::json!({ "name": name, "mode": mode });
    let expected = [
        mode("training", "observe"),
        mode("Bytespider", "off"),
        mode("other", "observe"),
    ];
    assert_eq!(site["modes"], serde_json::json!(expected));
    assert_eq!(site["exempt"], serde_json::json!(["Bingbot"]));
    let text = text(&gate);
    for name in ["enforce", "training", "Bytespider"] {
        assert!(text.contains(name), "{text}");
    }
}

#[test]
fn status_of_one_site_leaves_out_the_others() {
    let gate = Setup::before(Origin::nowhere())
        .policy("shop", POLICY)
        .policy(
            "blog",
            "hosts: [blog.example]\nrobots: { origin: replace }\n",
        )
        .start();
    let shown = gate.command(&["status", "--site", "shop"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("hosts       shop.example"), "{shown}");
    assert!(!shown.contains("blog.example"), "{shown}");
    let unknown = gate.command(&["status", "--site", "shopp"]);
    assert_eq!(unknown.status.code(), Some(2));
    let said = String::from_utf8_lossy(&unknown.stderr);
    assert!(said.contains("no site shopp"), "{said}");
}

#[test]
fn pause_of_many_sites_is_short_and_a_problem_for_everyone() {
    let mut setup = Setup::before(Origin::nowhere());
    for number in 1..=11 {
        let name = format!("site{number}");
        setup = setup.policy(&name, &POLICY.replace("shop", &name));
    }
    let gate = setup.start();
    let unknown = gate.command(&["pause", "--site", "site0"]);
    let said = String::from_utf8_lossy(&unknown.stderr);
    assert!(said.contains("site1?") && !said.contains("site2"), "{said}");

    assert!(gate.command(&["pause", "--all"]).status.success());
    let shown = text(&gate);
    let paused = "\n11 sites (site1, site10, site11, site2, site3, and 6 more) are paused for crawlers until ";
    assert!(shown.contains(paused), "{shown}");
    assert!(
        shown.contains("\nsite9: ") && !shown.contains("hosts  "),
        "{shown}"
    );
    assert_eq!(status(&gate).1, Some(0));

    assert!(
        gate.command(&["pause", "--all", "--everyone"])
            .status
            .success()
    );
    let found = wait_for_problem(&gate, "paused_for_everyone");
    assert_eq!(problems(&found).len(), 1);
    gate.wait_for_metric("crawlgate_problems{problem=\"paused_for_everyone\"}", 1.0);
    assert!(gate.command(&["resume", "--all"]).status.success());
    assert_eq!(status(&gate).1, Some(0));
}

#[test]
fn empty_policy_directory_is_a_problem_until_a_policy_is_there() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).start();
    let found = wait_for_problem(&gate, "warning");
    assert_eq!(found["problems"][0]["finding"], "no-policy");
    let directory = gate.setup.policies().display().to_string();
    assert!(message(&found, "warning").contains(&directory));
    gate.write_policy("shop", POLICY);
    eventually("no problem", || (status(&gate).1 == Some(0)).then_some(()));
    let unnamed = Setup::before(origin.address)
        .without_policy_directory()
        .start();
    assert!(!problems(&status(&unnamed).0).contains(&"warning"));
}

#[test]
fn decision_service_has_no_heading_for_origins() {
    let gate = Setup::deciding().policy("shop", POLICY).start();
    assert!(
        !text(&gate).contains("last five minutes"),
        "{}",
        text(&gate)
    );
}

#[test]
fn rejected_policy_is_a_problem_until_it_is_repaired() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).policy("shop", POLICY).start();
    gate.write_policy("shop", "hots: [shop.example]\n");
    let found = wait_for_problem(&gate, "policy_rejected");
    assert_eq!(found["problems"][0]["subject"], "shop");
    gate.write_policy("shop", POLICY);
    eventually("no problem", || (status(&gate).1 == Some(0)).then_some(()));
}

#[test]
fn new_policy_with_a_mistake_keeps_no_other_site_from_starting() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .policy("shop", POLICY)
        .policy("new", "hots: [new.example]\n")
        .start();
    let found = wait_for_problem(&gate, "policy_rejected");
    assert_eq!(found["problems"][0]["subject"], "new");
    assert_eq!(gate.get("shop.example", "/robots.txt", "").status, 200);
    assert_eq!(gate.get("new.example", "/", "").status, 200);
}

#[test]
fn deleted_policy_is_enforced_until_its_end_is_confirmed() {
    let enforcing = "hosts: [b.example]\nrobots: { origin: replace, groups: [{ agents: '*', disallow: /private/ }] }\n\
                     enforcement: { mode: enforce }\n";
    let origin = Origin::plain();
    let mut gate = Setup::before(origin.address)
        .policy("shop", POLICY)
        .policy("b", enforcing)
        .start();
    let page = |gate: &Gate| {
        gate.get(
            "b.example",
            "/private/",
            &format!("User-Agent: {GPTBOT}\r\n"),
        )
        .status
    };
    assert_eq!(
        gate.get(
            "b.example",
            "/robots.txt",
            &format!("User-Agent: {GPTBOT}\r\n")
        )
        .status,
        200
    );
    let before = page(&gate);
    assert_eq!(before, 403);
    std::fs::remove_file(gate.setup.policies().join("b.yaml")).expect("deleted");
    let found = wait_for_problem(&gate, "policy_removed");
    assert_eq!(
        (&found["problems"][0]["subject"], page(&gate)),
        (&"b".into(), before)
    );
    assert!(message(&found, "policy_removed").contains("crawlgate reload --remove"));
    gate.signal("HUP");
    assert_eq!(gate.command(&["reload"]).status.code(), Some(1));
    gate.wait_for_metric("crawlgate_problems{problem=\"policy_removed\"}", 1.0);
    gate.wait_until_stored();
    gate.restart("KILL", |_| ());
    let found = wait_for_problem(&gate, "policy_removed");
    assert_eq!(
        (&found["sites"][0]["removed"], page(&gate)),
        (&true.into(), before)
    );
    assert_eq!(
        gate.command(&["reload", "--remove", "shop"]).status.code(),
        Some(1),
        "its file is there"
    );
    assert_eq!(
        gate.command(&["reload", "--remove", "b"]).status.code(),
        Some(0)
    );
    assert_eq!((status(&gate).1, page(&gate)), (Some(0), 200));
}

#[test]
fn second_process_on_a_control_socket_learns_the_first_pid() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).policy("shop", POLICY).start();
    let refused = |gate: &Gate| {
        let second = Setup::before(origin.address)
            .argument("--control")
            .argument(gate.control().display());
        let (said, code) = second.fail();
        assert_eq!(code.code(), Some(3), "{said}");
        assert!(
            said.contains(&format!("(process {})", gate.pid())),
            "{said}"
        );
    };
    refused(&gate);
    assert_eq!(
        gate.command(&["status"]).status.code(),
        Some(0),
        "the first one goes on"
    );
    // Without its name nobody answers at the socket, and it is taken all the same.
    std::fs::remove_file(gate.control()).expect("the socket");
    refused(&gate);
    let gate = gate.killed_and_started_again();
    assert_eq!(
        gate.command(&["status"]).status.code(),
        Some(0),
        "a dead process holds nothing"
    );
}

/// Where the front page is sent with this tag, the problem has the engines that drop it. Other pages
/// and redirects do not count.
#[test]
fn front_page_with_noindex_needs_a_person() {
    let origin = Origin::start(|request, stream| {
        let answer = match (request.target(), request.field("x-tag")) {
            ("/", Some(tag)) => format!("200 OK\r\nX-Robots-Tag: {tag}"),
            ("/", None) => "302 Found\r\nLocation: /other\r\nX-Robots-Tag: noindex".to_owned(),
            (_, _) => "200 OK\r\nX-Robots-Tag: noindex".to_owned(),
        };
        write!(stream, "HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n").is_ok()
    });
    let policy = "hosts: [shop.example, www.shop.example]\nrobots: { origin: replace }\n";
    let gate = Setup::before(origin.address).policy("shop", policy).start();
    let kept_from = |gate: &Gate, tag: &str| {
        gate.get("www.shop.example", "/", &format!("X-Tag: {tag}\r\n"));
        gate.get("shop.example", "/", "");
        gate.get("shop.example", "/other", "");
        let (status, code) = status(gate);
        assert_eq!(
            problems(&status).contains(&"front_page_noindex"),
            code == Some(1),
            "{status}"
        );
        status["sites"][0]["front_page_kept_from"].clone()
    };
    for (tag, engines) in [
        ("noindex", json!(["Googlebot", "bingbot"])),
        ("bingbot: noindex", json!(["bingbot"])),
        ("nofollow", json!([])),
        ("none", json!(["Googlebot", "bingbot"])),
    ] {
        eventually("the last page is judged", || {
            (kept_from(&gate, tag) == engines).then_some(())
        });
    }
    for meant in ["acknowledge: [site_noindex]\n", "environment: staging\n"] {
        gate.write_policy("shop", &format!("{policy}{meant}"));
        assert!(gate.command(&["reload"]).status.success());
        for _ in 0..3 {
            assert_eq!(kept_from(&gate, "noindex"), json!([]), "{meant}");
        }
    }
}

/// On its first day a host is shown with the end of that day: by status, explain and both logs.
#[test]
fn first_day_and_a_stale_copy_say_until_when() {
    const HOST: &str = "shop.example";
    let origin = Origin::plain();
    let policy = |path| {
        POLICY.replace(
            "replace",
            &format!("replace, groups: [{{ agents: '*', disallow: [{path}] }}]"),
        )
    };
    let setup = Setup::before(origin.address).policy("shop", &policy("/cart/"));
    let mut gate = setup
        .settings("logs: { events: events.log, access: access.log }")
        .with_clock()
        .start();
    let bingbot = format!("User-Agent: {BINGBOT}\r\n");
    gate.get(HOST, "/cart/", &bingbot);
    let logged = |gate: &Gate, log: &str, target: &str| {
        eventually("a line of the log", || {
            let text = read(&gate.path(log));
            let mut lines = text
                .lines()
                .filter_map(|line| serde_json::from_str::<Value>(line).ok());
            lines
                .rfind(|line| line["target"] == target)
                .map(|line| line["older_until"].clone())
        })
    };
    let explained = |gate: &Gate, target: &str| -> Value {
        let output = gate.command(&[
            "explain",
            "--live",
            "--json",
            "--host",
            HOST,
            "--user-agent",
            "bingbot",
            target,
        ]);
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let unproven = |gate: &Gate| status(gate).0["sites"][0]["unproven"].clone();
    let until = eventually("the host", || {
        Some(unproven(&gate)[0]["until"].clone()).filter(Value::is_string)
    });
    assert_eq!(unproven(&gate)[0]["history"], "unknown");
    let gauge = "crawlgate_site_unproven_hosts{site=\"shop\"}";
    gate.wait_for_metric(gauge, 1.0);
    assert_eq!(
        (
            logged(&gate, "events.log", "/cart/"),
            logged(&gate, "access.log", "/cart/")
        ),
        (until.clone(), until.clone())
    );
    assert_eq!(
        (
            &explained(&gate, "/cart/")["older_until"],
            &explained(&gate, "/cart/")["history"]
        ),
        (&until, &"unknown".into())
    );
    for _ in 0..26 {
        gate.live_through(3_600);
        gate.get(HOST, "/", &bingbot);
    }
    gate.get(HOST, "/robots.txt", &bingbot);
    eventually("the first day is over", || {
        (unproven(&gate) == json!([])).then_some(())
    });
    gate.wait_for_metric(gauge, 0.0);
    assert_eq!(explained(&gate, "/cart/")["older_until"], Value::Null);
    gate.write_policy("shop", &policy("/new/"));
    assert!(gate.command(&["reload"]).status.success());
    gate.get(HOST, "/new/", &bingbot);
    let told = explained(&gate, "/new/");
    assert_eq!(
        (&told["kind"], told["older_until"].is_string()),
        (&"stale_copy".into(), true)
    );
    assert_eq!(logged(&gate, "access.log", "/new/"), told["older_until"]);
    assert!(status(&gate).0["sites"][0]["cached_until"].as_str() >= told["older_until"].as_str());
}
