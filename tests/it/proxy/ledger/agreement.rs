//! For every case of every shipped policy's `tests:`, what `explain` says is what the running proxy
//! does.

use crate::proxy::support::{Origin, Setup, run};
use crawlgate::crawlers::Registry;
use crawlgate::internals::verdict;
use crawlgate::yaml::SourceFile;
use std::io::Write;
use std::path::Path;

const BODY: &str = "from the origin";

#[test]
fn explain_and_the_proxy_agree_on_every_shipped_case() {
    // The origin answers with the status and type that the case is about, carried in fields of our
    // own.
    let origin = Origin::start(|request, stream| {
        let status = request.field("x-test-status").unwrap_or("200");
        let content_type = request.field("x-test-type").unwrap_or("text/html");
        let head = format!(
            "HTTP/1.1 {status} Whatever\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
            BODY.len()
        );
        stream.write_all(format!("{head}{BODY}").as_bytes()).is_ok()
    });
    let policies = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies");
    let mut compared = 0;
    for directory in [policies.clone(), policies.join("presets")] {
        for entry in std::fs::read_dir(directory).expect("the shipped policies") {
            let path = entry.expect("an entry").path();
            if path
                .extension()
                .is_some_and(|extension| extension == "yaml")
            {
                compared += compare(&path, &origin);
            }
        }
    }
    assert!(compared >= 40, "only {compared} cases were compared");
}

fn compare(path: &Path, origin: &Origin) -> usize {
    let name = path
        .file_stem()
        .and_then(|name| name.to_str())
        .expect("a name");
    let text = std::fs::read_to_string(path).expect("a policy");
    let source = SourceFile {
        name: path.display().to_string().into(),
        text: text.as_str().into(),
    };
    let (site, findings) = verdict::load_site(name, &source, Registry::builtin());
    let site = site.unwrap_or_else(|| panic!("{findings:?}"));
    let worth =
        |finding: &crawlgate::yaml::Diagnostic| finding.severity > crawlgate::yaml::Severity::Note;
    assert!(
        !findings.items.iter().any(worth),
        "a policy to start from gives no warning: {findings:?}"
    );
    let gate = Setup::before(origin.address).policy(name, &text).start();
    // A case with a moment of its own is about a pause; the running proxy knows only now.
    let cases = site.policy.tests.iter().filter(|case| case.at.is_none());
    for case in cases.clone() {
        let host = verdict::test_host(case, &site.policy);
        let agent = &case.agent.value;
        let known = Registry::builtin()
            .find(agent)
            .map(|index| Registry::builtin().get(index));
        // The crawler's own user agent, where the registry has it.
        let user_agent = known
            .and_then(|crawler| crawler.user_agent.clone())
            .unwrap_or_else(|| agent.clone());
        let (status, content_type) = (
            case.status.to_string(),
            case.content_type.as_deref().unwrap_or("text/html"),
        );
        let policies = gate.setup.policies().display().to_string();
        let output = run(&[
            "explain",
            "--json",
            "--policies",
            &policies,
            "--host",
            &host,
            "--user-agent",
            &user_agent,
            "--status",
            &status,
            "--type",
            content_type,
            &case.path.value,
        ]);
        let explained: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {output:?}"));
        let fields = format!(
            "User-Agent: {user_agent}\r\nX-Test-Status: {status}\r\nX-Test-Type: {content_type}\r\n"
        );
        let response = gate.get(&host, &case.path.value, &fields);
        let forwarded = response.body == BODY.as_bytes();
        let what = format!(
            "{} asks for {}: {explained}, and got {response:?}",
            case.agent.value, case.path.value
        );
        match explained["action"]["kind"].as_str() {
            Some("pass") => {
                assert!(forwarded && response.status == case.status, "{what}");
                let lines: Vec<&str> = explained["x_robots_tag"]
                    .as_array()
                    .expect("lines")
                    .iter()
                    .filter_map(|line| line.as_str())
                    .collect();
                assert_eq!(response.fields("x-robots-tag"), lines, "{what}");
                for line in explained["signals"].as_array().expect("lines") {
                    let (name, value) = line
                        .as_str()
                        .and_then(|line| line.split_once(": "))
                        .expect("a field");
                    assert_eq!(response.fields(name), [value], "{what}");
                }
            }
            Some("block" | "pause" | "license") => {
                assert!(!forwarded, "{what}");
                assert_eq!(
                    Some(u64::from(response.status)),
                    explained["action"]["status"].as_u64(),
                    "{what}"
                );
            }
            Some("tdmrep") => assert_eq!(
                response.body,
                &*site.signals.tdmrep.as_ref().expect("a file").body,
                "{what}"
            ),
            Some("robots_txt") => assert_eq!(response.body, &*site.robots_txt.body, "{what}"),
            _ => panic!("{what}"),
        }
    }
    cases.count()
}
