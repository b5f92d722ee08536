//! Interlocks and lints: what is allowed by the language and still not what an owner wants.
