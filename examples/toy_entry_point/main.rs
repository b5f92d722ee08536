//! An entry point of its own: requests are lines on standard input, and the status of each answer is a line
//! on standard output. The entry point itself is in `gate.rs`.
//!
//! ```sh
//! echo 'GET shop.example /private/ GPTBot/1.2' | cargo run --example toy_entry_point -- examples/axum-policies
//! ```

mod gate;

use crawlgate::internals::judge::RequestLogs;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    gate::answer_lines(RequestLogs::off(), |status| println!("{status}"))
}
