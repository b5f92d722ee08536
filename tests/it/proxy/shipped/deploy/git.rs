//! The files for a repository with policies: the job and the hook run with a real git.

use super::files::{path, yaml};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const OLD: &str = "hosts: [shop.example]\nrobots: { origin: replace, groups: [{ agents: \"*\", disallow: [/cart/] }] }\n";

/// A repository with a policy, and a directory beside it where the job keeps its files.
struct Repository {
    directory: TempDir,
}

impl Repository {
    fn new() -> Repository {
        let repository = Repository {
            directory: tempfile::tempdir().expect("a directory"),
        };
        fs::create_dir(repository.temp()).expect("a directory");
        fs::create_dir_all(repository.temp().join("bin")).expect("a directory");
        fs::create_dir_all(repository.root().join("policies")).expect("a directory");
        // As it is installed.
        let program = repository.temp().join("bin/crawlgate");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_crawlgate"), program).expect("a link");
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        repository.write("policies/shop.yaml", OLD);
        repository.git(&["add", "."]);
        repository.git(&["commit", "--quiet", "--message=old"]);
        repository
    }

    fn root(&self) -> PathBuf {
        self.directory.path().join("repository")
    }

    fn temp(&self) -> PathBuf {
        self.directory.path().join("temp")
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.root().join(name), text).expect("a file");
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let search = format!(
            "{}:{}",
            self.temp().join("bin").display(),
            std::env::var("PATH").unwrap_or_default()
        );
        command
            .current_dir(self.root())
            .env("PATH", search)
            .env("HOME", self.directory.path());
        for (name, value) in [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_AUTHOR_NAME", "A"),
            ("GIT_AUTHOR_EMAIL", "a@shop.example"),
            ("GIT_COMMITTER_NAME", "A"),
            ("GIT_COMMITTER_EMAIL", "a@shop.example"),
        ] {
            command.env(name, value);
        }
        // A git that runs the tests, as in a hook, has its own ideas of the repository.
        for name in [
            "GIT_DIR",
            "GIT_INDEX_FILE",
            "GIT_WORK_TREE",
            "GITHUB_WORKSPACE",
        ] {
            command.env_remove(name);
        }
        command
    }

    fn try_git(&self, arguments: &[&str]) -> Output {
        self.command("git")
            .args(arguments)
            .output()
            .expect("git runs")
    }

    fn git(&self, arguments: &[&str]) -> String {
        let output = self.try_git(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Runs a step of the job as a runner does.
    fn step(&self, name: &str, more: &[(&str, &str)]) -> Output {
        let job = yaml("deploy/git/crawlgate.yml");
        let steps = job["jobs"]["policies"]["steps"].as_array().expect("steps");
        let step = steps
            .iter()
            .find(|step| step["name"] == name)
            .unwrap_or_else(|| panic!("no step {name}"));
        let mut bash = self.command("bash");
        bash.args(["-e", "-c", step["run"].as_str().expect("a script")]);
        bash.env("RUNNER_TEMP", self.temp())
            .env("GITHUB_STEP_SUMMARY", self.temp().join("summary.md"));
        bash.env("GITHUB_PATH", self.temp().join("path"));
        bash.envs(more.iter().copied()).output().expect("bash runs")
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_job_installs_a_release_that_has_the_checksum() {
    let repository = Repository::new();
    let release = repository
        .directory
        .path()
        .join("crawlgate-0.1.0-x86_64-linux");
    fs::create_dir_all(release.join("bin")).expect("a directory");
    fs::write(release.join("bin/crawlgate"), "#!/bin/sh\necho installed\n").expect("a program");
    fs::set_permissions(
        release.join("bin/crawlgate"),
        fs::Permissions::from_mode(0o755),
    )
    .expect("a program");
    fs::remove_dir_all(repository.temp().join("bin")).expect("nothing is installed yet");
    let archive = repository.directory.path().join("crawlgate.tar.gz");
    let mut tar = Command::new("tar");
    tar.arg("-czf")
        .arg(&archive)
        .arg("-C")
        .arg(repository.directory.path())
        .arg(release.file_name().expect("a name"));
    assert!(tar.status().expect("tar runs").success());
    let sum = Command::new("sha256sum")
        .arg(&archive)
        .output()
        .expect("sha256sum runs");
    let sum = stdout(&sum)
        .split(' ')
        .next()
        .expect("a checksum")
        .to_owned();
    let url = format!("file://{}", archive.display());
    let wrong = repository.step(
        "Install crawlgate",
        &[
            ("CRAWLGATE_URL", &url),
            ("CRAWLGATE_SHA256", &"0".repeat(64)),
        ],
    );
    assert!(!wrong.status.success());
    let right = repository.step(
        "Install crawlgate",
        &[("CRAWLGATE_URL", &url), ("CRAWLGATE_SHA256", &sum)],
    );
    assert!(
        right.status.success(),
        "{}",
        String::from_utf8_lossy(&right.stderr)
    );
    let added = fs::read_to_string(repository.temp().join("path")).expect("the search path");
    let installed = Command::new(Path::new(added.trim()).join("crawlgate"))
        .output()
        .expect("the program");
    assert_eq!(stdout(&installed), "installed\n");
}

#[test]
fn the_job_fails_on_a_broken_policy_and_names_its_line() {
    let repository = Repository::new();
    assert!(repository.step("Check", &[]).status.success());
    repository.write("policies/shop.yaml", &OLD.replace("hosts", "hots"));
    let failed = repository.step("Check", &[]);
    let shown = stdout(&failed);
    assert!(
        !failed.status.success() && shown.contains("file=policies/shop.yaml,line=1,"),
        "{shown}"
    );
}

#[test]
fn job_comments_the_effect_on_crawlers() {
    let repository = Repository::new();
    let base = repository.git(&["rev-parse", "HEAD"]);
    repository.write(
        "policies/shop.yaml",
        &OLD.replace("[/cart/]", "[/private/]"),
    );
    let compared = repository.step("Compare", &[("BASE", &base)]);
    assert!(
        compared.status.success(),
        "{}",
        String::from_utf8_lossy(&compared.stderr)
    );
    let changes = fs::read_to_string(repository.temp().join("changes.md")).expect("the comment");
    assert_eq!(
        fs::read_to_string(repository.temp().join("summary.md")).expect("the summary"),
        changes
    );
    let places = ["### shop.example", "`/private/`", "`/cart/`"].map(|part| changes.find(part));
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "the site, what crawlers lose and what they gain: {changes}"
    );
}

#[test]
fn the_job_compares_the_first_policies_with_none() {
    let repository = Repository::new();
    repository.git(&["checkout", "--quiet", "--orphan", "empty"]);
    repository.git(&["rm", "--quiet", "-r", "--force", "policies"]);
    repository.git(&["commit", "--quiet", "--allow-empty", "--message=empty"]);
    let base = repository.git(&["rev-parse", "HEAD"]);
    repository.git(&["checkout", "--quiet", "main"]);
    let compared = repository.step("Compare", &[("BASE", &base)]);
    assert!(
        compared.status.success(),
        "{}",
        String::from_utf8_lossy(&compared.stderr)
    );
    let changes = fs::read_to_string(repository.temp().join("changes.md")).expect("the comment");
    assert!(changes.contains("`/cart/`"), "{changes}");
}

#[test]
fn the_job_asks_for_no_more_than_it_needs() {
    let job = yaml("deploy/git/crawlgate.yml");
    assert_eq!(
        job["permissions"],
        serde_json::json!({ "contents": "read" })
    );
    let policies = &job["jobs"]["policies"];
    assert_eq!(
        policies["permissions"],
        serde_json::json!({ "contents": "read", "pull-requests": "write" })
    );
    // Text of a change within a script would be run.
    let steps = policies["steps"].as_array().expect("steps");
    assert!(
        steps
            .iter()
            .filter_map(|step| step["run"].as_str())
            .all(|script| !script.contains("${{"))
    );
    assert_eq!(steps[0]["with"]["persist-credentials"], Value::Bool(false));
}

#[test]
fn hook_checks_staged_files_alone() {
    let repository = Repository::new();
    let hook = repository.root().join(".git/hooks/pre-commit");
    fs::copy(path("deploy/git/pre-commit"), &hook).expect("the hook");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("a program");
    let broken = OLD.replace("hosts", "hots");
    // Broken beside a good one that is staged.
    repository.write("policies/shop.yaml", &OLD.replace("/cart/", "/basket/"));
    repository.git(&["add", "."]);
    repository.write("policies/shop.yaml", &broken);
    let good = repository.try_git(&["commit", "--quiet", "--message=good"]);
    assert!(
        good.status.success() && good.stdout.is_empty() && good.stderr.is_empty(),
        "nothing to say: {good:?}"
    );
    repository.git(&["add", "."]);
    repository.write("policies/shop.yaml", OLD);
    let refused = repository.try_git(&["commit", "--message=broken"]);
    let said = stdout(&refused) + &String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && said.contains("policies/shop.yaml:1:1"),
        "{said}"
    );
    // A change of something else is no matter of the hook.
    repository.git(&["reset", "--quiet", "--hard"]);
    fs::remove_file(repository.temp().join("bin/crawlgate")).expect("uninstalled");
    repository.write("README", "a site\n");
    repository.git(&["add", "README"]);
    repository.git(&["commit", "--quiet", "--message=other"]);
}

#[test]
fn the_hook_lets_the_last_policy_go() {
    let repository = Repository::new();
    let hook = repository.root().join(".git/hooks/pre-commit");
    fs::copy(path("deploy/git/pre-commit"), &hook).expect("the hook");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("a program");
    repository.git(&["rm", "--quiet", "policies/shop.yaml"]);
    repository.git(&["commit", "--quiet", "--message=gone"]);
}
