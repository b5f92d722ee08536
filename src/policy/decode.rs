//! The sections of a policy, decoded.
