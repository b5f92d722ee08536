//! The image and the composition: what they name exists, and what they run answers.

use super::files::{below, json, path, settings, text, texts, yaml};
use super::running::{Running, get};
use crate::proxy::support::eventually;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const SETTINGS: &str = "deploy/compose/crawlgate.yaml";

fn dockerfile() -> String {
    text("deploy/docker/Dockerfile").replace("\\\n", " ")
}

/// What follows an instruction, each time that it stands there.
fn instructions(name: &str) -> Vec<String> {
    let lines = dockerfile();
    let values = lines
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    values
        .map(|value| value.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

/// What .dockerignore lets through: it shuts everything out and then names what is needed.
fn context() -> Vec<String> {
    let text = text(".dockerignore");
    let mut lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    assert_eq!(lines.next(), Some("*"));
    lines
        .map(|line| {
            line.strip_prefix('!')
                .expect("what is let through")
                .to_owned()
        })
        .collect()
}

fn copied_from_context() -> Vec<String> {
    let mut sources = Vec::new();
    for copy in instructions("COPY")
        .iter()
        .filter(|copy| !copy.contains("--from"))
    {
        let words: Vec<&str> = copy.split(' ').collect();
        sources.extend(
            words[..words.len() - 1]
                .iter()
                .map(|source| (*source).to_owned()),
        );
    }
    sources
}

fn cargo(directory: &Path) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(directory)
        .env("CARGO_NET_OFFLINE", "true");
    cargo
}

#[test]
fn the_build_gets_everything_it_reads_and_nothing_else() {
    let (mut allowed, mut copied) = (context(), copied_from_context());
    allowed.sort();
    copied.sort();
    assert_eq!(allowed, copied);
    let context = tempfile::tempdir().expect("a directory");
    for name in &copied {
        let files = if path(name).is_dir() {
            below(name)
        } else {
            vec![name.clone()]
        };
        for file in files {
            let target = context.path().join(&file);
            fs::create_dir_all(target.parent().expect("a directory")).expect("a directory");
            fs::copy(path(&file), target).expect("a copy");
        }
    }
    let metadata = cargo(context.path())
        .args(["metadata", "--format-version", "1", "--no-deps", "--locked"])
        .output()
        .expect("cargo");
    assert!(
        metadata.status.success(),
        "{}",
        String::from_utf8_lossy(&metadata.stderr)
    );
    // `metadata` does not miss the files of targets; a build does, before it compiles anything. So
    // the build runs as far as its first compilation, which is a script that leaves a file.
    let (compiler, reached) = (
        context.path().join("compiler"),
        context.path().join("reached"),
    );
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *-vV*|*--print*) exec \"$@\";; esac\ntouch '{}'\nexit 1\n",
        reached.display()
    );
    fs::write(&compiler, script).expect("a script");
    fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755)).expect("a program");
    let build = instructions("RUN")
        .into_iter()
        .find(|run| run.contains("cargo build"))
        .expect("a build");
    let (_, build) = build.split_once("cargo build ").expect("a build");
    let build = cargo(context.path())
        .arg("build")
        .args(build.split(' ').take_while(|word| *word != "&&"))
        .env("RUSTC_WRAPPER", &compiler)
        .env("CARGO_TARGET_DIR", context.path().join("target"))
        .output()
        .expect("cargo");
    assert!(
        reached.exists(),
        "{}",
        String::from_utf8_lossy(&build.stderr)
    );
    // And so does the source, by the paths that it includes.
    let mut included = 0;
    for file in below("src").iter().filter(|file| file.ends_with(".rs")) {
        for part in text(file).split("include_str!(\"").skip(1) {
            let name = part.split('"').next().expect("a name");
            if name.ends_with(".md") {
                // Pages of the documentation: only `cargo test --doc` reads them.
                continue;
            }
            let target = context
                .path()
                .join(file)
                .parent()
                .expect("a directory")
                .join(name);
            assert!(target.exists(), "{file} includes {name}");
            included += 1;
        }
    }
    assert!(included >= 2, "{included}");
}

#[test]
fn image_runs_as_numeric_user_owning_its_state() {
    let user = instructions("USER").pop().expect("a user");
    let numbers: Vec<u32> = user
        .split(':')
        .map(|number| number.parse().expect("a number"))
        .collect();
    assert!(
        numbers.len() == 2 && numbers.iter().all(|number| *number > 0),
        "{user}"
    );
    assert_eq!(instructions("VOLUME"), ["/var/lib/crawlgate"]);
    let owned = format!("--from=builder --chown={user} /out/state /var/lib/crawlgate");
    assert!(instructions("COPY").contains(&owned), "{owned}");
    assert_eq!(
        instructions("ENTRYPOINT"),
        ["[\"/usr/local/bin/crawlgate\"]"]
    );
    assert!(
        instructions("COPY")
            .contains(&"--from=builder /out/crawlgate /usr/local/bin/crawlgate".into())
    );
    // Both stages are Debian 12: a C library that is newer than the one it meets would not start.
    assert!(
        instructions("FROM")
            .iter()
            .all(|image| image.contains("bookworm") || image.contains("debian12"))
    );
}

/// The words of a health check in exec form: there is no shell in the image.
fn words(list: &Value) -> Vec<String> {
    texts(list).into_iter().map(str::to_owned).collect()
}

#[test]
fn the_health_check_knows_a_running_server_from_none() {
    let image = instructions("HEALTHCHECK").pop().expect("a health check");
    let (_, command) = image.split_once(" CMD ").expect("a command");
    let image = words(&serde_json::from_str(command).expect("exec form"));
    let compose =
        words(&yaml("deploy/compose.yaml")["services"]["crawlgate"]["healthcheck"]["test"]);
    assert_eq!(compose[0], "CMD");
    assert_eq!(&compose[1..], image);
    let command: Vec<&str> = image.iter().map(String::as_str).collect();
    let running = Running::start(SETTINGS, &path("deploy/compose/policies"));
    assert_eq!(running.command(&command).status.code(), Some(0));
    fs::remove_file(running.control()).expect("the socket");
    assert_eq!(running.command(&command).status.code(), Some(3));
}

#[test]
fn compose_file_names_existing_files() {
    let compose = yaml("deploy/compose.yaml");
    let services = compose["services"].as_object().expect("services");
    let mut files = 0;
    for (name, service) in services {
        assert!(
            service["image"]
                .as_str()
                .is_some_and(|image| name == "crawlgate" || image.contains(':')),
            "{name}"
        );
        for volume in service["volumes"].as_array().into_iter().flatten() {
            let volume = volume.as_str().expect("a volume");
            let (source, _) = volume.split_once(':').expect("source and target");
            match source.strip_prefix("./") {
                Some(file) => {
                    assert!(path("deploy").join(file).exists(), "{name}: {source}");
                    assert!(volume.ends_with(":ro"), "{name}: {volume}");
                    files += 1;
                }
                None => assert!(compose["volumes"].get(source).is_some(), "{name}: {source}"),
            }
        }
        for network in texts(&service["networks"]) {
            assert!(
                compose["networks"].get(network).is_some(),
                "{name}: {network}"
            );
        }
        for other in service["depends_on"].as_array().into_iter().flatten() {
            assert!(
                services.contains_key(other.as_str().expect("a name")),
                "{name}: {other}"
            );
        }
        for port in service["ports"].as_array().into_iter().flatten() {
            assert!(
                port.as_str()
                    .is_some_and(|port| port.starts_with("127.0.0.1:")),
                "{name}: {port}"
            );
        }
    }
    assert!(files >= 7, "only {files} files are mounted");
    let build = &services["crawlgate"]["build"];
    let context = path("deploy").join(build["context"].as_str().expect("a context"));
    assert!(context.join("Cargo.toml").exists());
    assert!(
        context
            .join(build["dockerfile"].as_str().expect("a file"))
            .exists()
    );
}

#[test]
fn container_is_confined_and_finds_its_files() {
    let compose = yaml("deploy/compose.yaml");
    let services = &compose["services"];
    let gate = &services["crawlgate"];
    assert_eq!(gate["read_only"], true);
    assert_eq!(texts(&gate["cap_drop"]), ["ALL"]);
    assert!(texts(&gate["security_opt"]).contains(&"no-new-privileges:true"));
    let settings = settings(SETTINGS);
    let published = texts(&gate["ports"])[0]
        .rsplit(':')
        .next()
        .and_then(|port| port.parse().ok());
    assert_eq!(published, Some(settings.listen[0].address.port()));
    let mounts: Vec<&str> = texts(&gate["volumes"])
        .iter()
        .filter_map(|volume| volume.split(':').nth(1))
        .collect();
    assert!(
        mounts.contains(&"/etc/crawlgate/crawlgate.yaml"),
        "what the image reads"
    );
    let policies = Path::new("/etc/crawlgate").join(&settings.policies);
    assert!(mounts.contains(&policies.to_str().unwrap()));
    assert!(mounts.contains(&settings.state.as_deref().and_then(Path::to_str).unwrap()));
    let user = instructions("USER")[0].clone();
    let (user, group) = user.split_once(':').expect("user and group");
    let runtime = settings
        .control
        .as_deref()
        .and_then(Path::parent)
        .and_then(Path::to_str)
        .expect("a directory");
    assert_eq!(
        texts(&gate["tmpfs"]),
        [format!("{runtime}:uid={user},gid={group},mode=0700")]
    );
    let origin = &settings.origins[0].servers[0].address;
    assert!(services.get(&origin.host).is_some(), "{}", origin.host);
    let shared = texts(&services[&origin.host]["networks"]);
    assert!(
        texts(&gate["networks"])
            .iter()
            .any(|network| shared.contains(network))
    );
    let grace = gate["stop_grace_period"]
        .as_str()
        .and_then(|grace| grace.strip_suffix('s')?.parse().ok());
    assert!(grace.map(Duration::from_secs) > Some(settings.limits.drain + Duration::from_secs(2)));
}

#[test]
fn prometheus_and_grafana_find_whom_they_ask() {
    let services = yaml("deploy/compose.yaml")["services"].clone();
    let prometheus = yaml("deploy/prometheus/prometheus.yml");
    let target = &prometheus["scrape_configs"][0]["static_configs"][0]["targets"][0];
    let target = target.as_str().expect("a target");
    let (host, port) = target.split_once(':').expect("host and port");
    assert!(services.get(host).is_some(), "{host}");
    assert_eq!(
        port.parse().ok(),
        settings(SETTINGS).admin.map(|admin| admin.port())
    );
    // The admin listener answers to this name.
    let running = Running::start(SETTINGS, &path("deploy/compose/policies"));
    eventually("metrics", || {
        (get(running.admin, target, "/metrics", "").status == 200).then_some(())
    });

    let sources = yaml("deploy/grafana/provisioning/datasources/prometheus.yml");
    assert_eq!(sources["datasources"][0]["url"], "http://prometheus:9090");
    let provider = yaml("deploy/grafana/provisioning/dashboards/crawlgate.yml");
    let directory = provider["providers"][0]["options"]["path"]
        .as_str()
        .expect("a directory")
        .to_owned();
    let mounted = format!("./grafana/crawlgate.json:{directory}/crawlgate.json:ro");
    assert!(texts(&services["grafana"]["volumes"]).contains(&mounted.as_str()));
    assert_eq!(json("deploy/grafana/crawlgate.json")["uid"], "crawlgate");
}
