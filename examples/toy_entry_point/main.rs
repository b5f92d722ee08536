//! Another protocol in front of crawlgate: requests are lines on standard input, and the status of each
//! answer is a line on standard output. The entry point is in `gate.rs`. It uses crawlgate's inner modules,
//! which change without notice.
//!
//! ```sh
//! echo 'GET shop.example /private/ GPTBot/1.2' |
//!     cargo run --no-default-features --features gate --example toy_entry_point -- examples/policies
//! ```

mod gate;

use crawlgate::internals::judge::RequestLogs;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    gate::answer_lines(RequestLogs::off(), |status| println!("{status}"))
}
