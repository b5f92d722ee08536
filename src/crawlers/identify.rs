//! Finding marks in a user agent: without regard to case, on token boundaries, without allocation.

/// Tokens that a policy names and the registry does not know, ready to be found in user agents.
#[derive(Clone, Debug, Default)]
pub struct TokenMarks {
    tokens: Vec<String>,
}

impl TokenMarks {
    /// Prepares tokens. Their index is the one in `Claim::Token`.
    pub fn new(tokens: Vec<String>) -> TokenMarks {
        TokenMarks { tokens }
    }

    /// The tokens, by index.
    pub fn tokens(&self) -> &[String] {
        &self.tokens
    }
}
