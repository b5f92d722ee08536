//! The program `crawlgate`: picks the memory allocator and runs the command line (`cli`).

#![forbid(unsafe_code)]
#![deny(clippy::expect_used, clippy::unwrap_used)]

use std::process::ExitCode;

/// The system allocator keeps freed pages of many short connections (pingora issue 372); mimalloc
/// returns them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    crawlgate::main()
}
