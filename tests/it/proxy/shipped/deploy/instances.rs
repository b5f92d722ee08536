//! What is shipped for several instances: the composition and the overlay for Kubernetes run with a
//! real Redis in the place of Valkey, and fit to each other.

use super::files::{json, path, settings, text, texts, yaml};
use super::running::{Running, get};
use super::schema;
use crate::proxy::support::eventually;
use crate::proxy::support::program::Program;
use crate::proxy::support::redis::RedisServer;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const OVERLAY: &str = "deploy/kubernetes-instances";

fn overlay(name: &str) -> Value {
    yaml(&format!("{OVERLAY}/{name}.yaml"))
}

/// Three crawlgates with shipped settings come to know each other.
fn meet(file: &str, store: &str, redis: &RedisServer, policies: &Path) {
    assert!(text(file).contains(store), "{file} has no `{store}`");
    let url = format!("redis://127.0.0.1:{}", redis.program.address.port());
    let words = [(store, url.as_str())];
    let running: Vec<Running> = (0..3)
        .map(|_| Running::with(file, policies, &words))
        .collect();
    for one in &running {
        eventually("three instances that report", || {
            let said = one.command(&["/usr/local/bin/crawlgate", "instances", "--json"]);
            let store: Value = serde_json::from_slice(&said.stdout).ok()?;
            let present = store["members"]
                .as_array()?
                .iter()
                .filter(|found| found["standing"] == "present")
                .count();
            (present == 3 && said.status.success()).then_some(())
        });
        assert_eq!(
            get(one.address, "any.example", "/robots.txt", "").status,
            200
        );
    }
}

/// The command of the store in a shipped file, as the program of the tests.
fn redis(words: &[&str]) -> RedisServer {
    assert_eq!(words[0], "valkey-server");
    RedisServer::with(&words[1..])
}

#[test]
fn instances_of_the_composition_meet() {
    let compose = yaml("deploy/compose.instances.yaml");
    let services = &compose["services"];
    let store = redis(&texts(&services["store"]["command"]));
    meet(
        "deploy/compose/instances/crawlgate.yaml",
        "redis://store:6379",
        &store,
        &path("deploy/compose/policies"),
    );
}

#[test]
fn services_of_the_composition_fit_together() {
    let compose = yaml("deploy/compose.instances.yaml");
    let services = compose["services"].as_object().expect("services");
    let settings = settings("deploy/compose/instances/crawlgate.yaml");
    let store = settings.store.expect("a store");
    assert!(services.contains_key(&store.url.host));
    assert!(services.contains_key(&settings.origins[0].servers[0].address.host));
    let balancer = text("deploy/compose/instances/nginx.conf");
    let mut states = Vec::new();
    let instances: Vec<_> = services
        .iter()
        .filter(|(name, _)| name.starts_with("crawlgate"))
        .collect();
    assert_eq!(instances.len(), 3);
    for (name, service) in instances {
        assert!(
            balancer.contains(&format!(
                "server {name}:{} max_fails=0;",
                settings.listen[0].address.port()
            )),
            "{name}"
        );
        for volume in texts(&service["volumes"]) {
            let (source, target) = volume.split_once(':').expect("source and target");
            match source.strip_prefix("./") {
                Some(file) => assert!(path("deploy").join(file).exists(), "{source}"),
                None => {
                    assert_eq!(Some(Path::new(target)), settings.state.as_deref());
                    assert!(compose["volumes"].get(source).is_some(), "{source}");
                    states.push(source);
                }
            }
        }
    }
    states.dedup();
    assert_eq!(states.len(), 3, "each has a state directory of its own");
}

#[test]
fn pods_of_the_overlay_meet() {
    let directory = tempfile::tempdir().expect("a directory");
    let password = directory.path().join("password");
    std::fs::write(&password, "of-the-pods").expect("a password");
    let container = overlay("store")["spec"]["template"]["spec"]["containers"][0].clone();
    let words = texts(&container["command"]);
    assert_eq!(words[..2], ["sh", "-c"]);
    let script = words[2]
        .replace("valkey-server", "redis-server")
        .replace("/run/store/password", &password.display().to_string());
    let program = Program::start(|prepared| {
        let script = script.replace(
            "port 6379",
            &format!("port {}\nbind 127.0.0.1", prepared.address.port()),
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]);
        shell
    });
    let store = RedisServer::of(program, "of-the-pods");
    let policy: String = store
        .command::<Vec<String>>(&["CONFIG", "GET", "maxmemory-policy"])
        .swap_remove(1);
    assert_eq!(policy, "noeviction");
    let file = format!("{OVERLAY}/crawlgate.yaml");
    let with_password = text(&file).replace(
        "/etc/crawlgate/store/password",
        &password.display().to_string(),
    );
    let copy = directory.path().join("crawlgate.yaml");
    std::fs::write(&copy, with_password).expect("settings");
    let policies = path(&format!("{OVERLAY}/policies"));
    meet(
        copy.to_str().expect("a path"),
        "redis://crawlgate-store:6379",
        &store,
        &policies,
    );
}

#[test]
fn overlay_patches_existing_objects() {
    let schemas = json("tests/it/proxy/shipped/deploy/kubernetes-1.30.json");
    let kustomization = overlay("kustomization");
    let resources: Vec<&str> = texts(&kustomization["resources"])
        .into_iter()
        .filter(|name| *name != "../kubernetes")
        .collect();
    for name in &resources {
        let found = schema::findings(&schemas, &yaml(&format!("{OVERLAY}/{name}")));
        assert!(found.is_empty(), "{name}:\n{}", found.join("\n"));
    }
    let (base, below) = (
        yaml("deploy/kubernetes/deployment.yaml"),
        yaml("deploy/kubernetes/kustomization.yaml"),
    );
    let name = &base["metadata"]["name"];
    assert_eq!(
        (
            &kustomization["replicas"][0]["name"],
            &kustomization["replicas"][0]["count"]
        ),
        (name, &3.into())
    );
    let patch = overlay("deployment-patch");
    assert_eq!(
        (&patch["metadata"]["name"], &patch["kind"]),
        (name, &base["kind"])
    );
    let container = &patch["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        container["name"],
        base["spec"]["template"]["spec"]["containers"][0]["name"]
    );
    let generated = |kustomization: &Value| -> Vec<String> {
        let maps = kustomization["configMapGenerator"]
            .as_array()
            .expect("maps");
        maps.iter()
            .map(|map| map["name"].as_str().expect("a name").to_owned())
            .collect()
    };
    assert_eq!(generated(&kustomization), generated(&below));
    let settings = settings(&format!("{OVERLAY}/crawlgate.yaml"));
    let store = settings.store.expect("a store");
    let (service, deployment) = (overlay("store-service"), overlay("store"));
    assert_eq!(service["metadata"]["name"], store.url.host);
    assert_eq!(service["spec"]["ports"][0]["port"], store.url.port);
    assert_eq!(
        service["spec"]["selector"],
        deployment["spec"]["template"]["metadata"]["labels"]
    );
    let mounted = container["volumeMounts"][0]["mountPath"]
        .as_str()
        .expect("a path");
    assert!(
        store
            .password_file
            .is_some_and(|file| file.starts_with(mounted))
    );
    // But for the store they are the settings and the policy of two pods.
    let lines = |text: String, kept: fn(&&str) -> bool| {
        text.lines()
            .filter(kept)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let is_setting = |line: &&str| {
        !line.contains("store")
            && !line.trim_start().starts_with(['#'])
            && !line.contains("password")
    };
    let (with, without) = (
        text(&format!("{OVERLAY}/crawlgate.yaml")),
        text("deploy/kubernetes/crawlgate.yaml"),
    );
    assert_eq!(lines(with, is_setting), lines(without, is_setting));
    assert!(!text(&format!("{OVERLAY}/policies/site.yaml")).contains("behind_cache"));
}
