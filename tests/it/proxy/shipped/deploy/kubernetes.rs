//! The manifests: valid by Kubernetes' schemas, and fitting to each other, to the settings and to
//! the running binary.

use super::files::{below, json, path, settings, text, texts, yaml};
use super::running::{Running, get};
use super::schema;
use crate::proxy::support::eventually;
use crawlgate::crawlers::Registry;
use crawlgate::yaml::SourceFile;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

const SETTINGS: &str = "deploy/kubernetes/crawlgate.yaml";

fn manifest(name: &str) -> Value {
    yaml(&format!("deploy/kubernetes/{name}.yaml"))
}

fn find<'v>(list: &'v Value, name: &str) -> &'v Value {
    let list = list.as_array().expect("a list");
    list.iter()
        .find(|item| item["name"] == name)
        .unwrap_or_else(|| panic!("no `{name}` in {list:?}"))
}

#[test]
fn kubernetes_knows_every_field_of_every_manifest() {
    let schemas = json("tests/it/proxy/shipped/deploy/kubernetes-1.30.json");
    let mut resources = texts(&yaml("deploy/kubernetes/kustomization.yaml")["resources"])
        .into_iter()
        .map(|name| format!("deploy/kubernetes/{name}"))
        .collect::<Vec<_>>();
    for name in &resources {
        let found = schema::findings(&schemas, &yaml(name));
        assert!(found.is_empty(), "{name}:\n{}", found.join("\n"));
    }
    resources.extend(
        ["kustomization", "crawlgate"].map(|name| format!("deploy/kubernetes/{name}.yaml")),
    );
    let mut files = below("deploy/kubernetes");
    files.retain(|name| !name.contains("/policies/") && !name.contains("/examples/"));
    resources.sort();
    assert_eq!(
        files, resources,
        "what the kustomization names is what is there"
    );
    // The schemas see what they are for.
    let mut wrong = manifest("deployment");
    wrong["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]["httpget"] = Value::Null;
    wrong["spec"]["replicas"] = "2".into();
    assert_eq!(schema::findings(&schemas, &wrong).len(), 2);
}

#[test]
fn selectors_ports_and_volumes_fit_together() {
    let deployment = manifest("deployment");
    let (spec, service, budget) = (
        &deployment["spec"],
        manifest("service"),
        manifest("poddisruptionbudget"),
    );
    let labels = &spec["template"]["metadata"]["labels"];
    assert!(labels.as_object().is_some_and(|labels| !labels.is_empty()));
    for selector in [
        &spec["selector"]["matchLabels"],
        &service["spec"]["selector"],
        &budget["spec"]["selector"]["matchLabels"],
    ] {
        assert_eq!(selector, labels);
    }
    assert_eq!(spec["replicas"], 2);

    let pod = &spec["template"]["spec"];
    let container = &pod["containers"][0];
    let settings = settings(SETTINGS);
    let port = |name: &str| {
        find(&container["ports"], name)["containerPort"]
            .as_u64()
            .map(|port| port as u16)
    };
    assert_eq!(port("http"), Some(settings.listen[0].address.port()));
    assert_eq!(port("admin"), settings.admin.map(|admin| admin.port()));
    // The kubelet and other pods come from outside.
    assert!(
        settings.listen[0].address.ip().is_unspecified()
            && settings
                .admin
                .is_some_and(|admin| admin.ip().is_unspecified())
    );
    assert_eq!(service["spec"]["ports"][0]["targetPort"], "http");
    let annotated = &spec["template"]["metadata"]["annotations"]["prometheus.io/port"];
    assert_eq!(
        annotated.as_str().map(str::to_owned),
        port("admin").map(|port| port.to_string())
    );

    let kustomization = manifest("kustomization");
    let mount = |name: &str| {
        let mount = find(&container["volumeMounts"], name);
        assert!(
            mount["subPath"].is_null(),
            "a file that is mounted by subPath never changes"
        );
        (
            mount["mountPath"].as_str().expect("a path").to_owned(),
            find(&pod["volumes"], name).clone(),
        )
    };
    for name in ["settings", "policies"] {
        let (_, volume) = mount(name);
        let config_map = find(
            &kustomization["configMapGenerator"],
            volume["configMap"]["name"].as_str().unwrap(),
        );
        for file in texts(&config_map["files"]) {
            assert!(
                path(&format!("deploy/kubernetes/{file}")).is_file(),
                "{file}"
            );
        }
        // Only what is read at run time may change under the pods.
        assert_eq!(
            config_map["options"]["disableNameSuffixHash"]
                .as_bool()
                .unwrap_or(false),
            name == "policies"
        );
    }
    let arguments = texts(&container["args"]);
    assert_eq!(
        arguments,
        [
            "run",
            "--config",
            &format!("{}/crawlgate.yaml", mount("settings").0)
        ]
    );
    assert_eq!(settings.policies, path(&mount("policies").0));
    // Everything that is written is in a volume that can be written.
    for (volume, file) in [
        ("state", settings.state.unwrap()),
        ("run", settings.control.unwrap()),
    ] {
        let (directory, volume) = mount(volume);
        assert!(
            file.starts_with(&directory) && volume["emptyDir"].is_object(),
            "{} is not in it",
            file.display()
        );
    }
}

#[test]
fn examples_name_ports_labels_and_namespace_of_the_manifests() {
    let (ingress, monitor) = (
        manifest("examples/ingress"),
        manifest("examples/podmonitor"),
    );
    let (service, deployment) = (manifest("service"), manifest("deployment"));
    let namespace = &manifest("kustomization")["namespace"];
    for example in [&ingress, &monitor] {
        assert_eq!(&example["metadata"]["namespace"], namespace);
    }
    let backend = &ingress["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"];
    assert_eq!(backend["name"], service["metadata"]["name"]);
    assert_eq!(backend["port"]["name"], service["spec"]["ports"][0]["name"]);
    let pod = &deployment["spec"]["template"];
    assert_eq!(
        monitor["spec"]["selector"]["matchLabels"],
        pod["metadata"]["labels"]
    );
    let endpoint = &monitor["spec"]["podMetricsEndpoints"][0];
    find(
        &pod["spec"]["containers"][0]["ports"],
        endpoint["port"].as_str().expect("a port"),
    );
    assert_eq!(endpoint["path"], "/metrics");
    assert_eq!(endpoint["relabelings"][0]["replacement"], "crawlgate");
}

#[test]
fn the_kustomization_names_the_image_that_the_page_builds() {
    let image = &manifest("kustomization")["images"][0];
    assert_eq!(
        image["name"],
        manifest("deployment")["spec"]["template"]["spec"]["containers"][0]["image"]
    );
    let name = format!(
        "{}:{}",
        image["newName"].as_str().unwrap(),
        image["newTag"].as_str().unwrap()
    );
    for file in ["docs/kubernetes.md", "deploy/kubernetes/kustomization.yaml"] {
        assert!(
            text(file).contains(&format!("docker push {name}\n")),
            "{file}"
        );
    }
}

/// Pods share no record of who was served what, so one would call a violator who fetched robots.txt
/// from another.
#[test]
fn pods_share_served_versions() {
    if manifest("deployment")["spec"]["replicas"]
        .as_u64()
        .expect("a number")
        > 1
    {
        let policies = below("deploy/kubernetes/policies");
        assert!(!policies.is_empty());
        for name in policies {
            let source = SourceFile {
                name: name.as_str().into(),
                text: text(&name).into(),
            };
            let (site, _) =
                crawlgate::internals::verdict::load_site("site", &source, Registry::builtin());
            let site = site.unwrap_or_else(|| panic!("{name} is refused"));
            assert!(
                site.behind_cache.is_some(),
                "{name}: more than one replica needs `behind_cache`"
            );
        }
    }
}

#[test]
fn the_pod_may_do_nothing_that_it_does_not_need() {
    let deployment = manifest("deployment");
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert!(
        pod["securityContext"]["runAsUser"]
            .as_u64()
            .is_some_and(|user| user > 0)
    );
    assert_eq!(
        pod["securityContext"]["seccompProfile"]["type"],
        "RuntimeDefault"
    );
    assert_eq!(pod["automountServiceAccountToken"], false);
    let context = &container["securityContext"];
    assert_eq!(context["allowPrivilegeEscalation"], false);
    assert_eq!(context["readOnlyRootFilesystem"], true);
    assert_eq!(texts(&context["capabilities"]["drop"]), ["ALL"]);
    assert!(container["resources"]["limits"]["memory"].is_string());
    // The user of the image, whose volumes these are.
    let user = format!(
        "USER {}:{}",
        pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsGroup"]
    );
    assert!(
        text("deploy/docker/Dockerfile")
            .lines()
            .any(|line| line == user),
        "{user}"
    );
}

#[test]
fn a_pod_has_time_to_drain() {
    let pod = manifest("deployment")["spec"]["template"]["spec"].clone();
    let seconds = |value: &Value| Duration::from_secs(value.as_u64().expect("seconds"));
    let grace = seconds(&pod["terminationGracePeriodSeconds"]);
    let before = seconds(&pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]);
    // Two seconds for the logs.
    assert!(
        grace > before + settings(SETTINGS).limits.drain + Duration::from_secs(2),
        "{grace:?}"
    );
}

#[test]
fn the_probes_are_answered_as_the_kubelet_asks_them() {
    let running = Running::start(SETTINGS, &path("deploy/kubernetes/policies"));
    let container = manifest("deployment")["spec"]["template"]["spec"]["containers"][0].clone();
    for probe in ["readinessProbe", "livenessProbe"] {
        let ask = &container[probe]["httpGet"];
        assert_eq!(ask["port"], "admin", "{probe}");
        assert!(
            ask["host"].is_null() && ask["httpHeaders"].is_null(),
            "{probe}: the kubelet sends the pod's address"
        );
        let target = ask["path"].as_str().expect("a path");
        for host in ["10.244.1.7:9190", "[fd00:10:244::7]:9190"] {
            // Ready a moment after the addresses are known.
            eventually(&format!("{probe} with {host}"), || {
                (get(
                    running.admin,
                    host,
                    target,
                    "User-Agent: kube-probe/1.30\r\n",
                )
                .status
                    == 200)
                    .then_some(())
            });
        }
    }
    // Pages are for the names of the machine alone.
    let page = get(running.admin, "crawlgate.crawlgate.svc:9190", "/", "");
    assert_eq!(page.status, 421);
}

/// A ConfigMap is mounted as links to files in a directory behind a link, and that link is
/// replaced.
#[test]
fn a_changed_config_map_is_in_force_without_a_restart() {
    let mounted = tempfile::tempdir().expect("a directory");
    let mounted = mounted.path();
    let publish = |version: &str, policy: &str| {
        fs::create_dir(mounted.join(version)).expect("a version");
        fs::write(mounted.join(version).join("site.yaml"), policy).expect("a policy");
        symlink(version, mounted.join("..data_tmp")).expect("a link");
        fs::rename(mounted.join("..data_tmp"), mounted.join("..data"))
            .expect("the link in its place");
    };
    let policy = text("deploy/kubernetes/policies/site.yaml");
    publish("..2026_11_21_01", &policy);
    symlink("..data/site.yaml", mounted.join("site.yaml")).expect("a link");
    let running = Running::start(SETTINGS, mounted);
    let robots_txt = || {
        get(running.address, "any.example", "/robots.txt", "")
            .text()
            .to_owned()
    };
    assert!(!robots_txt().contains("/new/"));
    let changed = policy.replace("disallow: [/search]", "disallow: [/search, /new/]");
    assert_ne!(changed, policy);
    publish("..2026_11_21_02", &changed);
    eventually("the new robots.txt", || {
        robots_txt().contains("Disallow: /new/").then_some(())
    });
}
