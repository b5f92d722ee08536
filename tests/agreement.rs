//! For every case of every shipped policy's `tests:`, what `explain` says is what the running proxy does.

mod support;

use std::io::Write;
use std::path::Path;
use support::{Origin, Setup, run};

/// One case, as `crawlgate check --json` lists it.
#[derive(serde::Deserialize, Debug)]
struct Case {
    agent: String,
    user_agent: String,
    host: String,
    path: String,
    #[serde(rename = "type")]
    content_type: Option<String>,
    status: u16,
    at: Option<String>,
}

#[test]
fn explain_and_the_proxy_agree_on_every_shipped_case() {
    let policies = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies");
    // The origin answers with the status and type that the case is about, carried in fields of our own.
    let origin = Origin::start(|request, stream| {
        let status = request.field("x-test-status").unwrap_or("200");
        let content_type = request.field("x-test-type").unwrap_or("text/html");
        let body = "from the origin";
        write!(
            stream,
            "HTTP/1.1 {status} Whatever\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .is_ok()
    });
    let mut setup = Setup::before(origin.address);
    for entry in std::fs::read_dir(&policies).expect("the shipped policies").flatten() {
        let path = entry.path();
        if let (Some(name), true) = (
            path.file_stem().and_then(|name| name.to_str()),
            path.extension().is_some_and(|extension| extension == "yaml"),
        ) {
            setup = setup.policy(name, &std::fs::read_to_string(&path).expect("a policy"));
        }
    }
    let gate = setup.start();
    let listed = run(&["check", "--json", &policies.display().to_string()]);
    let report: serde_json::Value = serde_json::from_slice(&listed.stdout).expect("check --json prints JSON");
    let mut compared = 0;
    for site in report["sites"].as_array().expect("a list of sites") {
        let cases: Vec<Case> = serde_json::from_value(site["tests"].clone()).expect("a list of cases");
        for case in cases.iter().filter(|case| case.at.is_none()) {
            let status = case.status.to_string();
            let mut arguments =
                vec!["explain", "--json", "--host", &case.host, "--user-agent", &case.user_agent, "--status", &status];
            let policies = policies.display().to_string();
            arguments.extend(["--policies", &policies]);
            arguments.extend(["--type", case.content_type.as_deref().unwrap_or("text/html")]);
            arguments.push(&case.path);
            let explained = run(&arguments);
            let explained: serde_json::Value = serde_json::from_slice(&explained.stdout)
                .unwrap_or_else(|error| panic!("{case:?}: {error}: {explained:?}"));
            let content_type = case.content_type.as_deref().unwrap_or("text/html");
            let fields = format!(
                "User-Agent: {}\r\nX-Test-Status: {status}\r\nX-Test-Type: {content_type}\r\n",
                case.user_agent
            );
            let response = gate.get(&case.host, &case.path, &fields);
            let forwarded = response.body == b"from the origin";
            match explained["action"]["kind"].as_str() {
                Some("pass") => {
                    assert!(forwarded, "{case:?}: {explained}");
                    assert_eq!(response.status, case.status, "{case:?}");
                    let tags: Vec<String> = serde_json::from_value(explained["x_robots_tag"].clone()).expect("lines");
                    assert_eq!(response.fields("x-robots-tag"), tags, "{case:?}");
                }
                Some("block" | "pause") => {
                    assert!(!forwarded, "{case:?}: {explained}");
                    assert_eq!(Some(u64::from(response.status)), explained["action"]["status"].as_u64(), "{case:?}");
                }
                Some("robots_txt") => assert!(response.text().contains("User-agent:"), "{case:?}"),
                other => panic!("{case:?}: an action without a name: {other:?}"),
            }
            compared += 1;
        }
    }
    assert!(compared >= 10, "only {compared} cases were compared");
}
