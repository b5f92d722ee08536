//! The checks of the fuzz targets over their seeds: what `fuzz/` does at length, with the stable
//! toolchain and in a moment. The checks are the same file.

#[path = "../../../fuzz/src/lib.rs"]
mod checks;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Runs a check over every seed of a target, each also cut short and with a byte changed.
fn over_seeds(target: &str, check: fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/seeds")
        .join(target);
    let mut seeds = 0;
    for entry in fs::read_dir(&directory).expect("the seeds of the target") {
        let path = entry.expect("a directory entry").path();
        let seed = fs::read(&path).expect("a seed is readable");
        seeds += 1;
        let mut inputs = vec![seed.clone()];
        for place in (0..seed.len()).step_by(seed.len() / 16 + 1) {
            inputs.push(seed[..place].to_vec());
            for byte in *b"*:\n%\xFF" {
                let mut changed = seed.clone();
                changed[place] = byte;
                inputs.push(changed);
            }
        }
        for input in inputs {
            let held = catch_unwind(AssertUnwindSafe(|| check(&input)));
            assert!(
                held.is_ok(),
                "{target} failed on {:?}, of {}",
                String::from_utf8_lossy(&input),
                path.display()
            );
        }
    }
    assert!(seeds > 5, "only {seeds} seeds in {}", directory.display());
}

#[test]
fn any_file_is_read_losslessly_with_naive_verdicts() {
    over_seeds("robots_file", checks::robots_file);
}

#[test]
fn imported_files_keep_their_verdicts() {
    over_seeds("import", checks::import);
}

#[test]
fn rule_set_matches_like_each_pattern_alone() {
    over_seeds("robots_pattern", checks::robots_pattern);
}

#[test]
fn normal_targets_stay_as_they_are_and_within_bounds() {
    over_seeds("robots_target", checks::robots_target);
}

#[test]
fn lists_of_networks_are_read_alike_in_every_shape() {
    over_seeds("network_list", checks::network_list);
}

#[test]
fn policies_are_refused_in_their_place_or_judged_as_published() {
    over_seeds("policy", checks::policy);
}

#[test]
fn log_lines_are_refused_or_round_trip() {
    over_seeds("log_line", checks::log_line);
}

#[test]
fn forwarded_tags_keep_their_meaning() {
    over_seeds("tags", checks::tags);
}

#[test]
fn user_agents_are_claims_without_regard_to_case_and_length() {
    over_seeds("user_agent", checks::user_agent);
}

#[cfg(feature = "html")]
#[test]
fn rewritten_page_does_not_depend_on_chunks() {
    over_seeds("html", checks::html);
}

#[cfg(feature = "proxy")]
#[test]
fn heads_that_are_taken_are_understood_by_a_plain_reader_alike() {
    over_seeds("head", checks::head);
}

#[cfg(feature = "proxy")]
#[test]
fn bodies_in_chunks_end_where_a_plain_reader_ends() {
    over_seeds("chunks", checks::chunks);
}

#[cfg(feature = "proxy")]
#[test]
fn forwarded_trailers_were_sent_and_are_allowed() {
    over_seeds("trailers", checks::trailers);
}

#[cfg(feature = "proxy")]
#[test]
fn responses_in_pieces_are_read_as_in_one() {
    over_seeds("incoming", checks::incoming);
}

#[cfg(feature = "proxy")]
#[test]
fn responses_that_are_passed_on_end_where_a_plain_reader_ends() {
    over_seeds("origin_response", checks::origin_response);
}

#[cfg(feature = "proxy")]
#[test]
fn proxy_protocol_headers_round_trip() {
    over_seeds("proxy_header", checks::proxy_header);
}

#[cfg(feature = "proxy")]
#[test]
fn signatures_are_bound_to_their_host_and_agent() {
    over_seeds("signature", checks::signature);
}

#[cfg(feature = "proxy")]
#[test]
fn key_directories_are_read_alike_when_written_again() {
    over_seeds("key_directory", checks::key_directory);
}

#[cfg(feature = "proxy")]
#[test]
fn no_case_but_the_known_one_holds() {
    over_seeds("evidence_case", checks::evidence_case);
}

#[cfg(feature = "proxy")]
#[test]
fn urls_of_sitemaps_are_read_again() {
    over_seeds("sitemap", checks::sitemap);
}

#[cfg(feature = "proxy")]
#[test]
fn timestamps_round_trip() {
    over_seeds("timestamp", checks::timestamp);
}

#[test]
fn every_target_has_its_check_and_its_seeds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let names = |directory: &str| {
        let mut names: Vec<String> = fs::read_dir(root.join(directory))
            .expect("a directory of fuzz/")
            .map(|entry| {
                entry
                    .expect("a directory entry")
                    .path()
                    .file_stem()
                    .expect("a name")
                    .to_string_lossy()
                    .into()
            })
            .collect();
        names.sort();
        names
    };
    assert_eq!(
        names("fuzz_targets"),
        [
            "chunks",
            "evidence_case",
            "head",
            "html",
            "import",
            "incoming",
            "key_directory",
            "log_line",
            "network_list",
            "origin_response",
            "policy",
            "proxy_header",
            "robots_file",
            "robots_pattern",
            "robots_target",
            "signature",
            "sitemap",
            "tags",
            "timestamp",
            "trailers",
            "user_agent"
        ]
    );
    assert_eq!(names("seeds"), names("fuzz_targets"));
}
