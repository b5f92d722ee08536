//! Pages of the site's own, and the robots.txt from before crawlgate.

use crate::yaml::{Located, Span};
use std::sync::Arc;

/// A file that a policy names.
#[derive(Clone, Debug)]
pub struct Included {
    /// Its name, and where the policy says it.
    pub name: Located<String>,
    /// What stands in it. `None` until it is found.
    pub bytes: Option<Arc<[u8]>>,
}

impl Included {
    /// A file whose content is not known yet.
    pub fn named(name: Located<String>) -> Included {
        Included { name, bytes: None }
    }
}

/// Pages of the site's own, in place of crawlgate's, for clients that ask for HTML.
#[derive(Clone, Debug, Default)]
pub struct AnswerPages {
    /// During a pause.
    pub pause: Option<Included>,
    /// Where the origin does not answer: 502 and 504.
    pub failure: Option<Included>,
    /// For a crawler that is refused.
    pub refusal: Option<Included>,
}

/// The robots.txt that all hosts of the site served, through every cache, before crawlgate did.
#[derive(Clone, Debug)]
pub enum PreviousRobots {
    /// This file.
    File(Included),
    /// The origin's own file, as crawlgate first reads it.
    Origin(Span),
}

impl PreviousRobots {
    /// The file that has to be read.
    pub(in crate::policy) fn file_mut(&mut self) -> Option<&mut Included> {
        match self {
            PreviousRobots::File(file) => Some(file),
            PreviousRobots::Origin(_) => None,
        }
    }
}
