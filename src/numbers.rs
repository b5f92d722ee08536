//! Formats numbers for people: [`plural`] (`2 lines`), [`thousands`] (`1,234`), [`byte_size`]
//! (`1.4 GiB`), [`percent`] (`38 %`) and [`duration`] (`1 h 9 min`).

use std::fmt::Display;

/// `1 line`, `2 lines`.
pub fn plural(number: impl Display, word: &str) -> String {
    let number = number.to_string();
    let ending = if number == "1" { "" } else { "s" };
    format!("{number} {word}{ending}")
}

/// A number with commas and its word: `1 request`, `1,234 requests`.
pub fn plural_thousands(number: impl Display, word: &str) -> String {
    plural(thousands(number), word)
}

/// A whole number with commas: `1,234,567`.
pub fn thousands(number: impl Display) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of bytes: `1.4 GiB`.
pub fn byte_size(bytes: u64) -> String {
    let mut number = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if number < 1024.0 {
            return if unit == "B" {
                format!("{bytes} B")
            } else {
                format!("{number:.1} {unit}")
            };
        }
        number /= 1024.0;
    }
    format!("{number:.1} TiB")
}

/// A part of all in whole percent: `38 %`, `<1 %`.
pub fn percent(part: u64, all: u64) -> String {
    let percent = 100.0 * part as f64 / all.max(1) as f64;
    if part > 0 && percent < 1.0 {
        "<1 %".to_owned()
    } else {
        format!("{percent:.0} %")
    }
}

/// A span of time, in its largest units: `12 s`, `9 min`, `1 h 9 min`, `3 d 4 h`.
pub fn duration(seconds: u64) -> String {
    match seconds {
        ..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::{byte_size, duration, percent, thousands};

    #[test]
    fn numbers_are_formatted_for_people() {
        assert_eq!(
            [0, 999, 1_000, 1_234_567].map(thousands),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            [1_023, 1_536, 5 << 40].map(byte_size),
            ["1023 B", "1.5 KiB", "5.0 TiB"]
        );
        assert_eq!(
            [(0, 0), (1, 101), (1, 100), (3, 8), (7, 7)].map(|(part, all)| percent(part, all)),
            ["0 %", "<1 %", "1 %", "38 %", "100 %"]
        );
        assert_eq!(
            [59, 60, 4_199, 90_000].map(duration),
            ["59 s", "1 min", "1 h 9 min", "1 d 1 h"]
        );
    }
}
