//! Interlocks and lints: what the language allows and still is not what an owner wants.

use super::Site;
use crate::crawlers::Registry;
use crate::yaml::Diagnostics;

/// Looks at a compiled site. Interlocks are errors: a production site that keeps search engines out, or a long pause,
/// is refused unless the policy acknowledges it.
pub fn lint(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    let _ = (site, registry, diagnostics);
    todo!()
}
