//! What a case costs that is taken from a large log: the time of the whole command, and the memory
//! of its process, beside those of a log that has the case and nothing else.
//!
//! `cargo bench --bench evidence -- --entries 10000000` writes a log of ten million entries into a
//! temporary directory (about 10 GB) and exports a case of 1,000. `--keep DIR` keeps the log there
//! and uses it again.

use crawlgate::internals::evidence::{
    CaseScope, ChainName, EvidenceRecorder, NewEntry, OpenEvidenceLog, build_case, format_time,
    open_existing,
};
use crawlgate::internals::hash::Hash;
use crawlgate::internals::settings::{AddressDetail, EvidenceSettings};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

const ROBOTS: &[u8] = b"User-agent: *\nDisallow: /private/\n";
const SITE: &str = "shop";
const CRAWLER: &str = "gptbot";
/// Entries of the case.
const CASE: u64 = 1_000;
/// Other chains, among which all other entries are.
const CHAINS: u64 = 200;
/// Entries of a transaction.
const BATCH: u64 = 50_000;

fn fields(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn served(at: &str) -> NewEntry {
    let hash = Hash::digest(&[ROBOTS]).to_string();
    let data = fields(json!({
        "arrived": at, "host": "shop.example", "status": 200, "version": hash[..16], "sha256": hash,
        "identity": "unverified",
    }));
    NewEntry {
        kind: "served",
        data,
        documents: vec![Arc::from(ROBOTS)],
        ..NewEntry::default()
    }
}

fn request(at: &str, number: u64) -> NewEntry {
    let hash = Hash::digest(&[ROBOTS]).to_string();
    let data = fields(json!({
        "arrived": at, "host": "shop.example", "method": "GET", "kind": "violation", "status": 403, "version": hash[..16],
        "sha256": hash, "cached_sha256": [], "tokens": ["GPTBot"], "binds": "star", "identity": "unverified",
        "rule": "Disallow: /private/", "action": "block",
    }));
    let address = format!("203.0.113.{}", number % 250);
    let personal = vec![
        ("client", address),
        ("target", format!("/private/{number}")),
    ];
    NewEntry {
        kind: "request",
        data,
        personal,
        ..NewEntry::default()
    }
}

/// A second of the log. All are later than the clock: the log has the time of its start.
fn moment(second: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(4_000_000_000 + second)
}

/// The log: half of the other entries, the case, and the other half, one entry a second in all.
fn build(directory: &Path, entries: u64) {
    let keep = Duration::from_secs(100 * 365 * 86_400);
    let settings = EvidenceSettings {
        keep,
        size: u64::MAX,
        ..EvidenceSettings::default()
    };
    EvidenceRecorder::open(directory, &settings, AddressDetail::Full).close();
    let mut log = open_existing(directory).expect("the log");
    let others = entries.saturating_sub(CASE);
    let mut written = 0;
    while written < entries {
        let until = (written + BATCH).min(entries);
        let write = log.database.write(|log| {
            let of_case = others / 2..others / 2 + CASE;
            let chain = |number: &u64| if of_case.contains(number) { CHAINS } else { number % CHAINS };
            // Chain by chain: rows of one chain lie together, and pages are written once.
            let mut numbers: Vec<u64> = (written..until).collect();
            numbers.sort_by_key(chain);
            for number in numbers {
                let at = format_time(moment(number));
                let name = match chain(&number) {
                    CHAINS => CRAWLER.to_owned(),
                    other => format!("crawler-{other}"),
                };
                if number == 0 {
                    let hash = Hash::digest(&[ROBOTS]).to_string();
                    let data = fields(json!({
                        "version": hash[..16], "sha256": hash, "hosts": ["shop.example"], "answer": 200,
                    }));
                    let documents = vec![Arc::from(ROBOTS)];
                    let record = NewEntry { kind: "published", data, documents, ..NewEntry::default() };
                    log.append(&ChainName::of_site(SITE), record, &at)?;
                }
                let record = if number == others / 2 { served(&at) } else { request(&at, number) };
                log.append(&ChainName::of_crawler(SITE, &name), record, &at)?;
            }
            Ok(())
        });
        write.expect("written");
        checkpoint(&mut log, until);
        written = until;
    }
}

fn checkpoint(log: &mut OpenEvidenceLog, second: u64) {
    let OpenEvidenceLog { database, key, .. } = log;
    database
        .write(|log| log.create_checkpoint(key, &format_time(moment(second))))
        .expect("a checkpoint");
}

/// Exports the case and prints the most memory that this process had, in KiB.
fn export(directory: &Path, entries: u64, case: &Path) {
    let others = entries.saturating_sub(CASE);
    let (from, to) = (moment(others / 2), moment(others / 2 + CASE));
    let span = CaseScope {
        site: SITE.into(),
        crawler: CRAWLER.into(),
        from,
        to,
    };
    let mut logs = [open_existing(directory).expect("the log")];
    let (archive, findings) =
        build_case(&mut logs, Vec::new(), &span, moment(entries)).expect("a case");
    std::fs::write(case, archive).expect("written");
    assert_eq!(findings.faults, []);
    assert_eq!(findings.logs[0].requests.len() as u64, CASE - 1);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    println!("{}", most.unwrap_or("0").trim().trim_end_matches(" kB"));
}

/// Measures exports, each in a process of its own.
fn measure(directory: &Path, entries: u64) {
    let case = directory.join("case.tar");
    let me = std::env::current_exe().expect("this program");
    let mut times = Vec::new();
    let mut memory = String::new();
    for _ in 0..5 {
        let began = Instant::now();
        let mut command = Command::new(&me);
        command
            .arg("--export")
            .arg(directory)
            .arg(entries.to_string())
            .arg(&case);
        let done = command.output().expect("the export");
        times.push(began.elapsed());
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        memory = String::from_utf8_lossy(&done.stdout).trim().to_owned();
    }
    times.sort();
    let of = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
    println!(
        "{entries:>10} entries, {:>6} MiB: a case of {CASE} ({} KiB) in {:.2} s (the longest {:.2} s), {memory} KiB of memory",
        of(&directory.join("evidence.db")) >> 20,
        of(&case) >> 10,
        times[2].as_secs_f64(),
        times[4].as_secs_f64(),
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let value = |name: &str| {
        let place = arguments.iter().position(|argument| argument == name)?;
        arguments.get(place + 1).cloned()
    };
    if let [first, directory, entries, case] = arguments.as_slice()
        && first == "--export"
    {
        export(
            Path::new(directory),
            entries.parse().expect("a number"),
            Path::new(case),
        );
        return;
    }
    let most: u64 = value("--entries").map_or(100_000, |number| number.parse().expect("a number"));
    for entries in [CASE, most] {
        let temporary = tempfile::tempdir().expect("a directory");
        let kept =
            value("--keep").map(|directory| PathBuf::from(directory).join(entries.to_string()));
        let directory = kept.as_deref().unwrap_or(temporary.path());
        std::fs::create_dir_all(directory).expect("made");
        if !directory.join("evidence.db").exists() {
            let began = Instant::now();
            build(directory, entries);
            let seconds = began.elapsed().as_secs_f64();
            println!(
                "{entries:>10} entries were written in {seconds:.0} s, {:.0} a second",
                entries as f64 / seconds
            );
        }
        measure(directory, entries);
    }
}
