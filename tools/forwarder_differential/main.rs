//! Sends generated requests through the forwarder and through Pingora's proxy, and compares what origins
//! and clients see:
//!
//! ```sh
//! cargo run --release --example forwarder_differential -- --minutes 10
//! ```
//!
//! It runs two crawlgates of the same build, which has to be there (`cargo build --release`). The
//! first difference that docs/internals/direct-forwarding.md does not list ends it with exit code 1. `--from N` begins
//! with another case.

mod cases;
mod drive;
mod http2;

use drive::{Origin, POLICY, Pair};
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const WORKERS: u64 = 4;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |name: &str, default: u64| match arguments.iter().position(|argument| argument == name) {
            Some(at) => arguments
                .get(at + 1)
                .and_then(|value| value.parse().ok())
                .ok_or(format!("{name} needs a number")),
            None => Ok(default),
        };
    let (minutes, from) = (number("--minutes", 1)?, number("--from", 0)?);
    let directory = tempfile::tempdir()?;
    let origins = [Origin::start(), Origin::start()];
    let mut gates = Vec::new();
    for (direct, origin) in ["on", "off"].into_iter().zip(&origins) {
        gates.push(Gate::start(directory.path(), direct, origin.address)?);
    }
    let pair = Pair {
        gates: [gates[0].address, gates[1].address],
        origins,
    };
    let until = Instant::now() + Duration::from_secs(minutes * 60);
    let (alike, documented, stop) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let next = AtomicU64::new(from);
    let failures: Vec<String> = std::thread::scope(|scope| {
        let work = || {
            let cases = std::iter::from_fn(|| {
                let goes_on = Instant::now() < until && !stop.load(Ordering::Relaxed);
                goes_on.then(|| next.fetch_add(1, Ordering::Relaxed))
            });
            let count = pair
                .compare(cases)
                .inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
            alike.fetch_add(count.alike, Ordering::Relaxed);
            documented.fetch_add(count.stricter + count.never_asked, Ordering::Relaxed);
            Ok(())
        };
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .filter_map(|worker| worker.join().expect("a worker does not panic").err())
            .collect()
    });
    let (alike, documented) = (alike.into_inner(), documented.into_inner());
    println!(
        "cases {from} to {}: {alike} alike, {documented} different as documented",
        next.into_inner()
    );
    if let Some(failure) = failures.first() {
        eprintln!("{failure}");
        // The processes end with their owners.
        drop(gates);
        std::process::exit(1);
    }
    Ok(())
}

/// A running crawlgate, ended when dropped.
struct Gate {
    child: Child,
    address: SocketAddr,
}

impl Gate {
    fn start(directory: &Path, direct: &str, origin: SocketAddr) -> Result<Gate, Box<dyn Error>> {
        let policies = directory.join(format!("policies-{direct}"));
        std::fs::create_dir(&policies)?;
        std::fs::write(policies.join("site.yaml"), POLICY)?;
        let settings = directory.join(format!("{direct}.yaml"));
        let text = format!(
            "listen: 127.0.0.1:0\norigins: http://{origin}\npolicies: {}\ndirect_forwarding: {direct}\nadmin: off\ncontrol: off\nstate: off\n",
            policies.display()
        );
        std::fs::write(&settings, text)?;
        let examples = std::env::current_exe()?;
        let build = examples
            .parent()
            .and_then(Path::parent)
            .ok_or("no directory of the build")?;
        let mut command = Command::new(build.join("crawlgate"));
        let command = command
            .arg("run")
            .arg("--config")
            .arg(&settings)
            .stdout(Stdio::piped())
            .env("RUST_LOG", "off");
        let mut child = command
            .spawn()
            .map_err(|error| format!("{}: {error}", build.join("crawlgate").display()))?;
        let output = child.stdout.take().ok_or("no output")?;
        let mut lines = BufReader::new(output).lines();
        let address = lines.find_map(|line| {
            line.ok()?
                .strip_prefix("listening on http://")?
                .trim()
                .parse()
                .ok()
        });
        let gate = address
            .map(|address| (address, lines))
            .ok_or("crawlgate does not start")?;
        // Read to the end: a full pipe would stop the process.
        std::thread::spawn(move || gate.1.for_each(drop));
        Ok(Gate {
            child,
            address: gate.0,
        })
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
