//! A door of its own: requests are lines on standard input, and the status of each answer is a line
//! on standard output. The door itself is in `gate.rs`.
//!
//! ```sh
//! echo 'GET shop.example /private/ GPTBot/1.2' | cargo run --example toy_door -- examples/axum-policies
//! ```

mod gate;

use crawlgate::internals::judge::Logs;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    gate::answer_lines(Logs::off(), |status| println!("{status}"))
}
