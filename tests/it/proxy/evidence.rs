//! The evidence log of the real binary: a case is exported while crawlgate runs, checked by
//! crawlgate and by the scripts in it, and holds after any number of crashes and
//! after a full disk.

use crate::proxy::support::random::Random;
use crate::proxy::support::{GPTBOT, Gate, Origin, Setup, eventually, read};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const HOST: &str = "shop.example";
const BYSTANDER: &str = "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)";
const HOUR: i64 = 3_600;
const POLICY: &str = "hosts: [shop.example]\nrobots: { origin: replace, groups: [{ agents: [GPTBot, \"*\"], disallow: [/cart/] }] }\n\
                      enforcement: { mode: enforce, behind_cache: no }\n";

fn setup(origin: &Origin) -> Setup {
    Setup::before(origin.address)
        .policy("shop", POLICY)
        .settings("evidence: on")
        .with_clock()
}

fn visit(gate: &Gate, path: &str) -> u16 {
    gate.get(HOST, path, &format!("User-Agent: {GPTBOT}\r\n"))
        .status
}

/// More than a day passes, so that what a crawler may have cached is known.
fn observe(gate: &mut Gate) {
    for _ in 0..6 {
        gate.get(HOST, "/", &format!("User-Agent: {BYSTANDER}\r\n"));
        gate.live_through(5 * HOUR);
    }
}

fn evidence(gate: &Gate, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crawlgate"));
    command.arg("evidence").args(arguments);
    if arguments[0] != "verify" {
        command.arg("--state").arg(gate.path("state"));
    }
    command.output().expect("the binary runs")
}

fn status(gate: &Gate) -> Value {
    let output = evidence(gate, &["status", "--json"]);
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn key(gate: &Gate) -> String {
    status(gate)["key"].as_str().expect("a key").to_owned()
}

/// How many entries the chain of the crawler has. They are written within about a second.
fn entries(gate: &Gate) -> u64 {
    let status = status(gate);
    let chains = status["chains"].as_array().expect("chains");
    let chain = chains.iter().find(|chain| chain["crawler"] == "gptbot");
    chain
        .and_then(|chain| chain["entries"].as_u64())
        .unwrap_or_default()
}

fn wait_for_entries(gate: &Gate, number: u64) {
    eventually("the entries are written", || {
        (entries(gate) >= number).then_some(())
    });
}

/// A case of everything so far, and what its check says.
fn case(gate: &Gate, name: &str) -> Value {
    let file = gate.path(name).display().to_string();
    let export = evidence(
        gate,
        &[
            "export",
            "--site",
            "shop",
            "--crawler",
            "gptbot",
            "--from",
            "2020-01-01",
            "-o",
            &file,
        ],
    );
    assert!(
        export.status.success(),
        "{}",
        String::from_utf8_lossy(&export.stderr)
    );
    let verified = evidence(gate, &["verify", &file, "--key", &key(gate), "--json"]);
    let mut findings: Value = serde_json::from_slice(&verified.stdout).expect("JSON");
    assert_eq!(
        (verified.status.code(), &findings["faults"]),
        (Some(0), &Value::from(Vec::<Value>::new()))
    );
    findings["logs"][0].take()
}

/// The directory of a case that was unpacked.
fn unpacked(case: &Path) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let done = Command::new("tar")
        .arg("-xf")
        .arg(case)
        .arg("-C")
        .arg(directory.path())
        .status();
    assert!(done.expect("tar").success());
    directory
}

/// Runs the scripts of a case, or of one of its logs, as its report says. What they print.
fn check_by_hand(directory: &Path, arguments: &[&str]) -> Result<String, String> {
    let checked = Command::new("sh")
        .arg("check.sh")
        .args(arguments)
        .current_dir(directory)
        .output()
        .expect("sh");
    if checked.status.success() {
        Ok(String::from_utf8_lossy(&checked.stdout).into_owned())
    } else {
        Err(format!("{checked:?}"))
    }
}

#[test]
fn case_verifies_with_and_without_crawlgate() {
    let origin = Origin::plain();
    let mut gate = setup(&origin).start();
    observe(&mut gate);
    let own_copy = format!("User-Agent: {GPTBOT}\r\nIf-None-Match: \"0123456789abcdef\"\r\n");
    assert_eq!(gate.get(HOST, "/robots.txt", &own_copy).status, 200);
    let licensed = format!("User-Agent: {GPTBOT}\r\nAuthorization: License secret\r\n");
    assert_eq!(gate.get(HOST, "/cart/1?a=b", &licensed).status, 403);
    assert_eq!(visit(&gate, "/"), 200);
    wait_for_entries(&gate, 2);

    let findings = case(&gate, "case.tar");
    let (served, request) = (&findings["served"][0], &findings["requests"][0]);
    assert_eq!(served["if_none_match"], "\"0123456789abcdef\"");
    assert_eq!(
        (&request["kind"], &request["rejudged"]),
        (&"violation".into(), &"disallowed".into()),
        "{request}"
    );
    assert_eq!(
        (&request["target"], &request["served_at"]),
        (&"/cart/1?a=b".into(), &served["time"])
    );
    assert_eq!(request["identity"], "unverified");

    let directory = unpacked(&gate.path("case.tar"));
    let said = check_by_hand(directory.path(), &[&key(&gate)]).expect("the case holds");
    assert!(
        [
            "/cart/1?a=b",
            "disallowed",
            "unverified",
            "with a licence token"
        ]
        .iter()
        .all(|value| said.contains(value)),
        "{said}"
    );
    let entries = read(&directory.path().join("chains/crawler.jsonl"));
    assert!(entries.contains("\"license_token\":true") && !entries.contains("secret"));
    let page = read(&directory.path().join("report.html"));
    assert!(page.contains("/cart/1?a=b") && !page.contains("<script") && !page.contains("src="));
    // The log did not exist at the time of `--from`.
    assert!(!page.contains("2020-01-01"), "{page}");

    // A changed byte is noticed on both ways.
    let mut changed = fs::read(gate.path("case.tar")).expect("the case");
    let place = changed
        .windows(9)
        .position(|bytes| bytes == b"violation")
        .expect("the word");
    changed[place] = b'V';
    let tampered = gate.path("tampered.tar");
    fs::write(&tampered, &changed).expect("written");
    let verified = evidence(
        &gate,
        &[
            "verify",
            &tampered.display().to_string(),
            "--key",
            &key(&gate),
        ],
    );
    assert_eq!(verified.status.code(), Some(1));
    check_by_hand(unpacked(&tampered).path(), &[&key(&gate)]).expect_err("the case was changed");

    // What is forgotten is gone, and the chain holds.
    assert!(
        evidence(&gate, &["forget", "--address", "127.0.0.1"])
            .status
            .success()
    );
    let findings = case(&gate, "later.tar");
    assert_eq!(
        (&findings["requests"][0]["target"], &findings["withdrawn"]),
        (&Value::Null, &5.into())
    );
}

#[test]
fn case_has_the_list_that_proves_the_crawler() {
    let directory = case_with_list("full", "198.51.100.7");
    let page = read(&directory.path().join("report.html"));
    assert!(page.contains("2 requests came from GPTBot, by"), "{page}");
}

#[test]
fn proof_by_a_network_alone_is_the_sites_word() {
    let directory = case_with_list("network", "198.51.100.0/24");
    let page = read(&directory.path().join("report.html"));
    let word = "Only the site says that 2 requests came from GPTBot.";
    assert!(page.contains(word), "{page}");
}

/// The unpacked case of a crawler that a list proves. With `privacy: { evidence: DETAIL }` the case
/// has this client.
fn case_with_list(detail: &str, client: &str) -> tempfile::TempDir {
    const LIST: &str = r#"{"prefixes": [{"ipv4Prefix": "198.51.100.0/24"}]}"#;
    let origin = Origin::plain();
    let lists = tempfile::tempdir().expect("a directory");
    fs::create_dir(lists.path().join("openai.com")).expect("made");
    fs::write(lists.path().join("openai.com/gptbot.json"), LIST).expect("written");
    let settings = format!(
        "evidence: on\ntrusted_proxies: [127.0.0.1]\nidentity: {{ lists: '{}', outgoing: no }}\n\
         privacy: {{ evidence: {detail} }}",
        lists.path().display()
    );
    let gate = Setup::before(origin.address)
        .policy("shop", POLICY)
        .settings(&settings)
        .start();
    gate.wait_for_metric(
        "crawlgate_identity_list_networks{list=\"openai.com/gptbot.json\"}",
        1.0,
    );
    let from = |client: &str| format!("User-Agent: {GPTBOT}\r\nX-Forwarded-For: {client}\r\n");
    gate.get(HOST, "/robots.txt", &from("198.51.100.7"));
    gate.get(HOST, "/cart/1", &from("198.51.100.7"));
    gate.get(HOST, "/cart/2", &from("198.51.100.7"));
    wait_for_entries(&gate, 3);
    let findings = case(&gate, "case.tar");
    let proofs = findings["proofs"].as_array().expect("a list");
    assert_eq!(proofs.len(), 1, "{proofs:?}");
    assert_eq!(
        (&proofs[0]["means"], &proofs[0]["identity"]),
        (&"list".into(), &"verified".into())
    );
    assert_eq!(proofs[0]["client"], client);
    assert_eq!(proofs[0]["is_complete"], detail == "full");
    assert!(findings["requests"].as_array().is_some_and(|all| {
        all.iter()
            .all(|one| one["proof_entry"] == proofs[0]["number"] && one["client"] == client)
    }));
    let directory = unpacked(&gate.path("case.tar"));
    let said = check_by_hand(directory.path(), &[&key(&gate)]).expect("the case holds");
    let checked = "198.51.100.7 is in 198.51.100.0/24";
    assert_eq!(said.contains(checked), detail == "full", "{said}");
    let supplied = said.contains("from a file that the site supplied");
    assert_eq!(supplied, detail == "full", "{said}");
    let unchecked = "list: not checked, because";
    assert_eq!(said.contains(unchecked), detail != "full", "{said}");
    let kept = fs::read_dir(directory.path().join("lists"))
        .expect("lists")
        .map(|file| read(&file.expect("a file").path()));
    assert_eq!(kept.collect::<Vec<_>>(), [LIST]);
    directory
}

#[test]
fn case_of_two_instances_is_checked_with_both_keys() {
    let origin = Origin::plain();
    let (one, other) = (setup(&origin).start(), setup(&origin).start());
    assert_eq!(
        (visit(&one, "/robots.txt"), visit(&other, "/cart/1")),
        (200, 403)
    );
    wait_for_entries(&one, 1);
    wait_for_entries(&other, 1);
    let path = |gate: &Gate, name: &str| gate.path(name).display().to_string();
    let export = |gate: &Gate, name: &str, more: &[&str]| {
        let output = path(gate, name);
        let span = [
            "export",
            "--site",
            "shop",
            "--crawler",
            "gptbot",
            "--from",
            "2020-01-01",
            "-o",
            &output,
        ];
        let done = evidence(gate, &[&span, more].concat());
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        output
    };
    let beside = export(&one, "beside.tar", &["--state", &path(&other, "state")]);
    let joined = export(
        &one,
        "joined.tar",
        &["--join", &export(&other, "elsewhere.tar", &[])],
    );
    let keys = [key(&one), key(&other)];
    let verify = |file: &str, keys: &[&str]| {
        let keys: Vec<&str> = keys.iter().flat_map(|key| ["--key", *key]).collect();
        evidence(
            &one,
            &[&["verify", file, "--json"], keys.as_slice()].concat(),
        )
    };
    for file in [&beside, &joined] {
        let verified = verify(file, &[&keys[0], &keys[1]]);
        let findings: Value = serde_json::from_slice(&verified.stdout).expect("JSON");
        assert_eq!(
            (verified.status.code(), &findings["faults"]),
            (Some(0), &Value::from(Vec::<Value>::new()))
        );
        let request = findings["logs"]
            .as_array()
            .expect("logs")
            .iter()
            .find_map(|log| log["requests"].get(0));
        let name = keys[0].split('+').next().expect("a name");
        assert_eq!(request.expect("a request")["served_by"], name);
        assert_eq!(verify(file, &[&keys[0]]).status.code(), Some(1));
    }
    let directory = unpacked(Path::new(&joined));
    for (number, key) in (1..).zip(&keys) {
        check_by_hand(&directory.path().join(format!("logs/{number}")), &[key])
            .expect("the log holds");
    }
}

#[test]
fn log_holds_after_crashes_at_any_moment() {
    let origin = Origin::plain();
    let mut gate = setup(&origin).start();
    let mut random = Random::seeded(u64::from(gate.pid()));
    for _ in 0..6 {
        // As long as the process runs, some milliseconds more or less than its rounds.
        let end = Instant::now() + Duration::from_millis(200 + random.next() % 1_500);
        while Instant::now() < end {
            visit(&gate, "/robots.txt");
            visit(&gate, "/cart/1");
        }
        gate.restart("KILL", |_| {});
    }
    let before = entries(&gate);
    visit(&gate, "/robots.txt");
    wait_for_entries(&gate, before + 1);
    let findings = case(&gate, "case.tar");
    let unknown = findings["unknown"].as_array().expect("a list");
    let crashes = unknown.iter().filter(|gap| gap["id"] == "gap-crash");
    assert_eq!(crashes.count(), 6, "{unknown:?}");
    gate.restart("TERM", |_| {});
    case(&gate, "after-a-stop.tar");
}

#[test]
fn log_has_the_requests_of_both_processes_of_an_upgrade() {
    let origin = Origin::plain();
    let mut gate = setup(&origin).replaceable().start();
    let mut kept = gate.connect();
    let mut ask = |path: &str| {
        kept.send(&format!(
            "GET {path} HTTP/1.1\r\nHost: {HOST}\r\nUser-Agent: {GPTBOT}\r\n\r\n"
        ));
        kept.response("GET").status
    };
    assert_eq!((ask("/"), visit(&gate, "/cart/1")), (200, 403));
    gate.upgrade();
    assert_eq!((visit(&gate, "/cart/2"), ask("/cart/3")), (403, 403));
    assert!(gate.ended().success());
    assert_eq!(visit(&gate, "/cart/4"), 403);
    wait_for_entries(&gate, 4);
    let findings = case(&gate, "case.tar");
    let requests = findings["requests"].as_array().expect("a list");
    let mut targets: Vec<_> = requests
        .iter()
        .filter_map(|request| request["target"].as_str())
        .collect();
    targets.sort_unstable();
    assert_eq!(targets, ["/cart/1", "/cart/2", "/cart/3", "/cart/4"]);
}

/// A process under this does not die when a file grows beyond its limit: writing fails, as on a
/// full disk.
const MAY_FILL: [&str; 4] = ["sh", "-c", "trap '' XFSZ; exec \"$@\"", "sh"];

fn limit_files(gate: &Gate, limit: &str) {
    let pid = gate.pid().to_string();
    let set = Command::new("prlimit")
        .args(["--pid", &pid, &format!("--fsize={limit}:unlimited")])
        .status();
    assert!(set.expect("prlimit").success());
}

fn complains_of_evidence(gate: &Gate) -> bool {
    let status: Value =
        serde_json::from_slice(&gate.command(&["status", "--json"]).stdout).expect("JSON");
    let warnings = status["warnings"].as_array().expect("a list");
    warnings.iter().any(|warning| warning["id"] == "evidence")
}

#[test]
fn full_disk_stops_evidence_and_no_request() {
    let origin = Origin::plain();
    let gate = setup(&origin).under(&MAY_FILL).start();
    visit(&gate, "/robots.txt");
    wait_for_entries(&gate, 1);
    limit_files(&gate, "0");
    assert_eq!((visit(&gate, "/robots.txt"), visit(&gate, "/")), (200, 200));
    eventually("the problem is in the status", || {
        complains_of_evidence(&gate).then_some(())
    });
    limit_files(&gate, "unlimited");
    let before = entries(&gate);
    visit(&gate, "/robots.txt");
    wait_for_entries(&gate, before + 1);
    assert!(!complains_of_evidence(&gate));
    let findings = case(&gate, "case.tar");
    let unknown = findings["unknown"].as_array().expect("a list");
    assert!(
        unknown.iter().any(|gap| gap["id"] == "gap-not-written"),
        "{unknown:?}"
    );
}

#[test]
fn forget_needs_an_option_and_a_time_that_has_passed() {
    let origin = Origin::plain();
    let gate = setup(&origin).start();
    let forget = evidence(&gate, &["forget"]);
    let message = String::from_utf8_lossy(&forget.stderr);
    assert_eq!(forget.status.code(), Some(2), "{message}");
    assert!(
        message.contains("--address <ADDRESS>|--before <TIME>"),
        "{message}"
    );
    let future = evidence(&gate, &["forget", "--before", "2999-01-01"]);
    assert_eq!(future.status.code(), Some(2), "{future:?}");
}

#[test]
fn evidence_without_a_state_directory_is_refused() {
    let origin = Origin::plain();
    let setup = Setup::before(origin.address)
        .policy("shop", POLICY)
        .settings("evidence: on")
        .argument("--state");
    let (said, status) = setup.argument("off").fail();
    assert!(!status.success());
    assert!(said.contains("evidence"), "{said}");
}

/// An authority for timestamps: `openssl ts`, on loopback.
struct Authority {
    directory: tempfile::TempDir,
    url: String,
}

const AUTHORITY: &str = "[tsa]\ndefault_tsa = it\n[it]\nserial = serial\ndefault_policy = 1.2.3.4\ndigests = sha256\n\
                         signer_digest = sha256\naccuracy = secs:1\ness_cert_id_alg = sha256\n";

impl Authority {
    fn start() -> Authority {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("tsa.cnf"), AUTHORITY).expect("written");
        fs::write(directory.path().join("serial"), "01\n").expect("written");
        let made = openssl(
            directory.path(),
            "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out ca.pem -subj /CN=tsa -days 2 -addext extendedKeyUsage=critical,timeStamping",
        );
        assert!(made.status.success(), "{made:?}");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let url = format!("http://{}/tsr", listener.local_addr().expect("an address"));
        let place = directory.path().to_owned();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                answer(stream, &place);
            }
        });
        Authority { directory, url }
    }
}

fn openssl(directory: &Path, arguments: &str) -> Output {
    Command::new("openssl")
        .args(arguments.split(' '))
        .current_dir(directory)
        .output()
        .expect("openssl")
}

/// Answers one request for a timestamp.
fn answer(mut stream: TcpStream, directory: &Path) {
    let mut reader = BufReader::new(stream.try_clone().expect("the stream"));
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line).is_ok_and(|bytes| bytes > 2) {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        line.clear();
    }
    let mut query = vec![0; length];
    if reader.read_exact(&mut query).is_err() {
        return;
    }
    fs::write(directory.join("query.tsq"), query).expect("written");
    let reply = "ts -reply -config tsa.cnf -queryfile query.tsq -signer ca.pem -inkey key.pem -out reply.tsr";
    let made = openssl(directory, reply);
    assert!(made.status.success(), "{made:?}");
    let reply = fs::read(directory.join("reply.tsr")).expect("a reply");
    let head = format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        reply.len()
    );
    let _ = stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(&reply));
}

#[test]
fn checkpoints_have_timestamps_that_openssl_verifies() {
    let (origin, authority) = (Origin::plain(), Authority::start());
    let settings = format!("evidence: {{ timestamps: ['{}'] }}", authority.url);
    let gate = Setup::before(origin.address)
        .policy("shop", POLICY)
        .settings(&settings)
        .start();
    visit(&gate, "/robots.txt");
    wait_for_entries(&gate, 1);
    let findings = case(&gate, "case.tar");
    let holds = findings["holds"].as_array().expect("a list");
    assert!(
        holds.iter().any(|held| held["id"] == "timestamp"),
        "{holds:?}"
    );
    assert_eq!(findings["timestamps"][0]["authority"], "CN=tsa");
    assert_eq!(status(&gate)["last_checkpoint"][2], authority.url);
    let directory = unpacked(&gate.path("case.tar"));
    check_by_hand(directory.path(), &[&key(&gate)]).expect("the case holds");
    let check = |authority: &Authority| {
        let certificate = authority.directory.path().join("ca.pem");
        check_by_hand(
            directory.path(),
            &[&key(&gate), &certificate.display().to_string()],
        )
    };
    let said = check(&authority).expect("the authority made the timestamps");
    assert!(said.contains("subject"), "{said}");
    check(&Authority::start()).expect_err("another authority made the timestamps");
}

#[test]
fn export_without_crawler_has_a_case_of_each_and_signals() {
    let origin = Origin::plain();
    let policy = "hosts: [shop.example]\nrobots: { origin: replace, content_usage: { train-ai: no } }\n\
                  tdm: [{ paths: [/press/], reservation: no }, { reservation: yes, policy: https://shop.example/t.json }]\n";
    let gate = Setup::before(origin.address)
        .policy("shop", policy)
        .settings("evidence: on")
        .start();
    let bystander = format!("User-Agent: {BYSTANDER}\r\n");
    gate.get(HOST, "/robots.txt", &bystander);
    visit(&gate, "/robots.txt");
    wait_for_entries(&gate, 1);
    let output = gate.path("").display().to_string();
    let span = [
        "export",
        "--site",
        "shop",
        "--from",
        "2020-01-01",
        "-o",
        &output,
    ];
    let done = evidence(&gate, &span);
    assert!(done.status.success(), "{done:?}");
    let directory = unpacked(&gate.path("gptbot.tar"));
    let entries = read(&directory.path().join("chains/site.jsonl"));
    let page = read(&directory.path().join("report.html"));
    for signal in ["Content-Usage: train-ai=n (/*)", "tdm-reservation: 1 (/*)"] {
        assert!(entries.contains(signal) && page.contains(signal), "{page}");
    }
    assert!(entries.contains("tdmrep.json: "), "{entries}");
    assert!(!entries.contains("tdm-policy:  ("), "{entries}");
    // A case that is there already does not stop the others.
    fs::remove_file(gate.path("yandexbot.tar")).expect("a case");
    let again = evidence(&gate, &span);
    assert_eq!(again.status.code(), Some(3), "{again:?}");
    assert!(gate.path("yandexbot.tar").is_file());
    // What fails before a case is written signs nothing.
    let signed = status(&gate)["last_checkpoint"].clone();
    assert_eq!(evidence(&gate, &span).status.code(), Some(3));
    let exists = evidence(&gate, &[&span[..], &["--crawler", "GPTBot"]].concat());
    assert_eq!(exists.status.code(), Some(3), "{exists:?}");
    let empty = evidence(&gate, &[&span[..], &["--crawler", ""]].concat());
    assert_eq!(empty.status.code(), Some(2));
    let unknown = evidence(&gate, &[&span[..], &["--crawler", "gtpbot"]].concat());
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("GPTBot"));
    let nowhere = [&span[..1], &["--site", "nope"], &span[3..]].concat();
    assert_eq!(evidence(&gate, &nowhere).status.code(), Some(2));
    assert_eq!(status(&gate)["last_checkpoint"], signed);
}

#[test]
fn request_with_a_licence_token_is_in_the_case() {
    let origin = Origin::plain();
    let policy = "hosts: [shop.example]\nrobots: { origin: replace, license: https://shop.example/l.xml }\n\
                  enforcement: { mode: enforce, purposes: { training: { unlicensed: 401 } } }\n";
    let gate = Setup::before(origin.address)
        .policy("shop", policy)
        .settings("evidence: on")
        .start();
    let forged = format!("User-Agent: {GPTBOT}\r\nAuthorization: License forged\r\n");
    assert_eq!(gate.get(HOST, "/story", &forged).status, 200);
    // Entries are written after their responses, so the next one could overtake this one.
    wait_for_entries(&gate, 1);
    assert_eq!(visit(&gate, "/story"), 401);
    wait_for_entries(&gate, 2);
    let findings = case(&gate, "token.tar");
    let requests = findings["requests"].as_array().expect("requests");
    let actions: Vec<&Value> = requests.iter().map(|one| &one["action"]).collect();
    assert_eq!(actions, ["pass", "license"]);
    let directory = unpacked(&gate.path("token.tar"));
    let page = read(&directory.path().join("report.html"));
    for part in [
        "(or slowed down, or asked for a licence)</td><td data-h=\"not verified\">1</td>",
        "with a licence token",
        "without a licence",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let checked = check_by_hand(directory.path(), &[&key(&gate)]).expect("the case holds");
    assert!(checked.contains("with a licence token"), "{checked}");
}

#[test]
fn training_crawler_on_a_reserved_page_is_in_the_case() {
    // The origin knows that this page is not reserved.
    let origin = Origin::start(|received, stream| {
        let field = match received.target() {
            "/permitted" => "TDM-Reservation: 0\r\n",
            _ => "",
        };
        let head = format!("HTTP/1.1 200 OK\r\n{field}Content-Length: 5\r\n\r\nhello");
        stream.write_all(head.as_bytes()).is_ok()
    });
    let policy = "hosts: [shop.example]\ntdm: [{ paths: /free/, reservation: no }, { reservation: yes, policy: https://shop.example/tdm.json }]\n\
                  robots: { origin: replace, groups: [{ agents: [\"*\"], disallow: [/cart/] }, \
                  { agents: [ClaudeBot], content_signal: { ai-train: no } }] }\n\
                  enforcement: { mode: enforce, behind_cache: no, agents: { CCBot: off } }\n";
    let gate = Setup::before(origin.address)
        .policy("shop", policy)
        .settings("evidence: on")
        .start();
    let browser = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0";
    for (agent, path) in [
        (GPTBOT, "/free/1"),
        (GPTBOT, "/tdm.json"),
        (GPTBOT, "/permitted"),
        (GPTBOT, "/.well-known/tdmrep.json"),
        (BYSTANDER, "/story"),
        (browser, "/story"),
        ("CCBot/2.0 (https://commoncrawl.org/faq/)", "/story"),
        ("ClaudeBot/1.0", "/free/2"),
        (GPTBOT, "/story"),
        (GPTBOT, "/cart/1"),
    ] {
        gate.get(HOST, path, &format!("User-Agent: {agent}\r\n"));
    }
    let forged = format!("User-Agent: {GPTBOT}\r\nAuthorization: License forged\r\n");
    assert_eq!(gate.get(HOST, "/token", &forged).status, 200);
    wait_for_entries(&gate, 3);
    let status = status(&gate);
    let chains = status["chains"].as_array().expect("chains").iter();
    let crawlers: Vec<&str> = chains
        .filter_map(|chain| chain["crawler"].as_str())
        .filter(|crawler| !crawler.is_empty())
        .collect();
    // For ClaudeBot, too, the rule of `tdm` counts before its group.
    assert_eq!(crawlers, ["gptbot"]);
    let findings = case(&gate, "reserved.tar");
    let requests = findings["requests"].as_array().expect("requests");
    let mut found: Vec<_> = requests
        .iter()
        .map(|one| [&one["target"], &one["reserved"], &one["action"]])
        .collect();
    // Entries are written after their responses, so they may overtake each other.
    found.sort_by_key(|[target, ..]| target.as_str());
    assert_eq!(
        found,
        [
            [&json!("/cart/1"), &json!(null), &json!("block")],
            [&json!("/story"), &json!(true), &json!("pass")],
            [&json!("/token"), &json!(true), &json!("pass")]
        ]
    );
    let directory = unpacked(&gate.path("reserved.tar"));
    let page = read(&directory.path().join("report.html"));
    for part in [
        "to a page with a published reservation (TDM, Content-Signal or Content-Usage)</td><td data-h=\"not verified\">2</td>",
        "not disallowed by robots.txt; to a page with a published reservation",
        "not disallowed by robots.txt; with a licence token; to a page with a published reservation",
        "(or slowed down, or asked for a licence)</td><td data-h=\"not verified\">1</td>",
        "whether the operator mined a page",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let checked = check_by_hand(directory.path(), &[&key(&gate)]).expect("the case holds");
    let reserved = checked.matches("page with a published reservation").count();
    assert_eq!(reserved, 2, "{checked}");
    // The case of a crawler goes into a directory, too.
    let output = gate.path("cases/").display().to_string() + "/";
    let export = "export --site shop --from 2020-01-01 --crawler GPTBot -o";
    let export: Vec<&str> = export.split(' ').chain([output.as_str()]).collect();
    assert!(evidence(&gate, &export).status.success());
    assert!(gate.path("cases/gptbot.tar").is_file());
}

/// The policy corrects the registry: `*` does not bind the crawler, and a group that names it only
/// blocks it. Its reservation is still public.
#[test]
fn crawler_that_is_not_bound_is_not_accused() {
    for (agents, status, rejudged, words) in [
        ("*", 200, "allowed", "not disallowed by robots.txt"),
        (
            "GPTBot",
            403,
            "disallowed",
            "may be no violation: robots.txt does not bind this crawler",
        ),
    ] {
        assert_not_bound(agents, status, rejudged, words);
    }
}

/// With a group for these agents, `/private/` gets this status, and all statements on the request
/// have these words.
fn assert_not_bound(agents: &str, status: u16, rejudged: &str, words: &str) {
    let origin = Origin::plain();
    let policy = "hosts: [shop.example]\ncrawlers: [{ token: GPTBot, binds: never }]\n\
                  robots: { origin: replace, license: https://shop.example/l.xml, content_signal: { ai-train: no }, \
                  groups: [{ agents: AGENTS, disallow: [/private/] }] }\n\
                  enforcement: { mode: enforce, behind_cache: no }\n";
    let gate = Setup::before(origin.address)
        .policy("shop", &policy.replace("AGENTS", &format!("'{agents}'")))
        .settings("evidence: on")
        .start();
    assert_eq!(visit(&gate, "/.well-known/tdmrep.json"), 200);
    let licensed = format!("User-Agent: {GPTBOT}\r\nAuthorization: License forged\r\n");
    assert_eq!(gate.get(HOST, "/private/1", &licensed).status, status);
    wait_for_entries(&gate, 1);
    let findings = case(&gate, "unbound.tar");
    let requests = findings["requests"].as_array().expect("requests");
    let found: Vec<_> = requests
        .iter()
        .map(|one| [&one["target"], &one["kind"], &one["rejudged"]])
        .collect();
    let expected = ["/private/1", "not_bound", rejudged].map(Value::from);
    assert_eq!(found, [expected.each_ref()]);
    let directory = unpacked(&gate.path("unbound.tar"));
    let checked = check_by_hand(directory.path(), &[&key(&gate)]).expect("the case holds");
    let page = read(&directory.path().join("report.html"));
    for text in [&checked, &page] {
        assert!(text.contains(words), "{words}: {text}");
        assert!(text.contains("with a licence token"), "{text}");
    }
    let is_not_bound = checked.contains("/private/1 not bound by");
    assert_eq!(is_not_bound, status == 200, "{checked}");
}

#[test]
fn export_takes_a_token_and_names_hosts_of_the_first_day() {
    let origin = Origin::plain();
    let mut gate = setup(&origin).start();
    assert_eq!(visit(&gate, "/cart/1"), 403);
    gate.live_through(2 * 60);
    assert_eq!(visit(&gate, "/cart/1"), 403);
    wait_for_entries(&gate, 2);
    let export = |crawler: &str, from: &str| {
        let file = gate
            .path(&format!("{crawler}-{from}.tar"))
            .display()
            .to_string();
        let arguments = [
            "export",
            "--site",
            "shop",
            "--crawler",
            crawler,
            "--from",
            from,
            "-o",
            &file,
        ];
        let output = evidence(&gate, &arguments);
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).contains(HOST),
        )
    };
    eventually("the host is stored", || {
        (export("Bingbot", "2020-01-01") == (Some(3), true)).then_some(())
    });
    assert_eq!(export("GPTBot", "2020-01-01"), (Some(0), true));
}
