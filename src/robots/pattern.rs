//! A path pattern of an Allow or Disallow line.

/// A pattern, normalised as a request target is (RFC 9309 section 2.2.2), so that both sides compare as bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pattern {
    normalised: Box<str>,
}

impl Pattern {
    /// Normalises `written`.
    pub fn new(written: &str) -> Pattern {
        let _ = written;
        todo!()
    }

    /// The normalised pattern, as it is rendered.
    pub fn as_str(&self) -> &str {
        &self.normalised
    }

    /// Whether this is an empty pattern, which matches nothing.
    pub fn is_empty(&self) -> bool {
        self.normalised.is_empty()
    }

    /// What decides between matching rules: the length in octets.
    pub fn priority(&self) -> usize {
        self.normalised.len()
    }

    /// Whether the pattern matches a target normalised by [`TargetScratch`](super::TargetScratch).
    pub fn matches(&self, target: &[u8]) -> bool {
        let _ = target;
        todo!()
    }
}
