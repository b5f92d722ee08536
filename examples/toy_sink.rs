//! A log of your own (a sink): it prints a line for each request that breaks the rules, with the
//! fields that `FIELDS` lists. Requests are lines on standard input, as for `toy_entry_point`. The
//! example uses crawlgate's inner modules, which change without notice. An application behind
//! crawlgate's layer needs none of them: `GateBuilder::on_record` gives it the same records.
//!
//! ```sh
//! echo 'GET shop.example /private/ GPTBot/1.2' |
//!     cargo run --no-default-features --features gate --example toy_sink -- examples/policies
//! ```

#[path = "toy_entry_point/gate.rs"]
mod gate;

use crawlgate::internals::judge::RequestLogs;
use crawlgate::internals::record::{RecordField, RecordLine, RequestRecord, Sink};
use crawlgate::internals::settings::AddressDetail;
use std::sync::Arc;

/// The fields that are printed. A new field is a variant of [`RecordField`].
const FIELDS: &[RecordField] = &[
    RecordField::Crawler,
    RecordField::Target,
    RecordField::Kind,
    RecordField::Rule,
    RecordField::Would,
];

struct Printed;

impl Sink for Printed {
    fn record(&self, record: &RequestRecord) {
        let breaks_rules = record
            .judged()
            .is_some_and(|judged| judged.decision.is_logged_event());
        if breaks_rules {
            let line = RecordLine {
                record,
                fields: FIELDS,
                addresses: AddressDetail::None,
            };
            println!("{}", serde_json::to_string(&line).unwrap_or_default());
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let logs = RequestLogs {
        sinks: vec![Arc::new(Printed)],
        ..RequestLogs::off()
    };
    gate::answer_lines(logs, |_| {})
}
