//! [`RobotsMetaPaths`]: the compiled section `html` of a policy. The path of an HTML page decides
//! whether crawlgate writes robots meta tags into the page.

use super::RobotsVersionId;
use super::signals::paths_match;
use crate::policy::model::{HtmlPolicy, patterns};
use crate::robots::{PathPattern, RequestTarget};
use crate::yaml::located_values;

/// The pages that robots metas are written into.
#[derive(Debug)]
pub struct RobotsMetaPaths {
    paths: Vec<PathPattern>,
    not_paths: Vec<PathPattern>,
}

impl RobotsMetaPaths {
    /// Compiles the section; `None` where nothing is written into pages.
    pub fn new(policy: &HtmlPolicy) -> Option<RobotsMetaPaths> {
        policy.meta.then(|| RobotsMetaPaths {
            paths: patterns(&policy.paths),
            not_paths: patterns(&policy.not_paths),
        })
    }

    /// A number that equal `html` sections share, to find out whether a reload changed it.
    pub fn fingerprint(policy: &HtmlPolicy) -> u64 {
        let lists = [&policy.paths, &policy.not_paths].map(|list| located_values(list));
        RobotsVersionId::from_body(format!("html {:?}", (policy.meta, lists)).as_bytes()).as_u64()
    }

    /// Whether the path matters. Otherwise the target need not be normalised.
    pub fn depends_on_path(&self) -> bool {
        !self.paths.is_empty() || !self.not_paths.is_empty()
    }

    /// Whether metas are written into the page of this target. One of its readings is enough,
    /// because the origin decides how to resolve the path.
    pub fn applies_to(&self, target: RequestTarget<'_>) -> bool {
        target.forms().any(|path| {
            paths_match(&self.paths, path) && !self.not_paths.iter().any(|own| own.matches(path))
        })
    }
}
