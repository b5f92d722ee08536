//! A request target as rules see it.

/// A target normalised for matching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// Path and query as sent, in the normal form of RFC 9309 section 2.2.2.
    pub sent: &'a [u8],
    /// The same with dot segments and doubled slashes of the path resolved, as many origins do; `None` when that
    /// changes nothing.
    pub resolved: Option<&'a [u8]>,
}

impl Target<'_> {
    /// Whether this is `/robots.txt` with any query, which is always allowed (RFC 9309 section 2.2.2).
    pub fn is_robots_txt(&self) -> bool {
        todo!()
    }
}

/// Buffers that normalisation writes into, kept between requests so that it does not allocate.
#[derive(Debug, Default)]
pub struct TargetScratch {
    sent: Vec<u8>,
    resolved: Vec<u8>,
}

impl TargetScratch {
    /// Buffers with room for targets of up to `capacity` bytes.
    pub fn with_capacity(capacity: usize) -> TargetScratch {
        TargetScratch { sent: Vec::with_capacity(3 * capacity), resolved: Vec::with_capacity(3 * capacity) }
    }

    /// Normalises a path with optional query (or an absolute URL, of which scheme and authority are dropped).
    pub fn normalise<'a>(&'a mut self, raw: &'a [u8]) -> Target<'a> {
        let _ = (raw, &self.sent, &self.resolved);
        todo!()
    }
}
