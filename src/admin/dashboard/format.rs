//! Numbers, moments and names as the pages write them.

use crate::time::Timestamp;

/// With commas between thousands.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A share of a hundred, with one digit where it is small.
pub fn percent(share: f64) -> String {
    match share {
        share if share > 99.9 && share < 100.0 => "99.9 %".to_owned(),
        share if share > 0.0 && share < 0.1 => "0.1 %".to_owned(),
        share if share == share.trunc() => format!("{share:.0} %"),
        share => format!("{share:.1} %"),
    }
}

/// The day and the minute: `2026-11-22 10:00`.
pub fn minute(moment: Timestamp) -> String {
    moment.to_string().chars().take(16).map(|sign| if sign == 'T' { ' ' } else { sign }).collect()
}

/// A value of a query.
pub fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
