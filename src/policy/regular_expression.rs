//! Regular expressions in a policy. [`compile_path_regex`] compiles the field `path_regex`, and [`mistake_in`] explains
//! why a text is not a valid expression. [`paths_for`] suggests path patterns where the owner wrote a regular
//! expression in place of a path.

use regex_syntax::ast;

/// How large a path expression may become when compiled: policies of thousands of sites share one process.
const REGEX_BYTES: usize = 1 << 20;

/// Compiles an expression, for checking and for use alike.
pub fn compile_path_regex(text: &str) -> Result<regex::bytes::Regex, regex::Error> {
    regex::bytes::RegexBuilder::new(text).size_limit(REGEX_BYTES).dfa_size_limit(REGEX_BYTES).build()
}

/// The mistake in an expression of `path_regex`, in one sentence with its place, and what to write. `None` where it can be
/// compiled.
pub fn mistake_in(text: &str) -> Option<(String, String)> {
    let error = compile_path_regex(text).err()?;
    if let Err(error) = ast::parse::Parser::new().parse(text) {
        let (start, end) = (error.span().start, error.span().end);
        // An empty place stands before the sign that is wrong.
        let marked = match text.get(start.offset..end.offset) {
            Some(marked) if !marked.is_empty() => marked.to_owned(),
            _ => text.get(start.offset..).and_then(|rest| rest.chars().next()).map(String::from).unwrap_or_default(),
        };
        let (what, help) = of_syntax(error.kind(), &marked);
        return Some((format!("not a regular expression: at character {}, {what}", start.column), help));
    }
    if let regex::Error::CompiledTooBig(most) = error {
        let what =
            format!("this regular expression is too large: it needs more than {} KiB when compiled", most / 1024);
        let help = "write smaller numbers in repetitions such as `{1000}`, or use `paths`".into();
        return Some((what, help));
    }
    let error = error.to_string();
    let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
    Some((format!("not a regular expression: {why}"), GENERAL.into()))
}

/// The help for any mistake.
const GENERAL: &str =
    "write it more plainly, with classes such as `[a-z]` and a `\\` before each sign that is meant itself";

fn literally(sign: &str) -> String {
    format!("write `\\{sign}` for the sign itself")
}

/// The mistake at a place of an expression, and the help.
fn of_syntax(kind: &ast::ErrorKind, marked: &str) -> (String, String) {
    use ast::ErrorKind as Kind;
    match kind {
        Kind::RepetitionMissing => (
            format!("`{marked}` has nothing before it to repeat"),
            format!("write `.{marked}` to repeat any character; {}", literally(marked)),
        ),
        Kind::RepetitionCountInvalid => {
            (format!("`{marked}` ends before it begins"), "write the smaller number first: `{2,5}`".into())
        }
        Kind::RepetitionCountDecimalEmpty
        | Kind::RepetitionCountUnclosed
        | Kind::DecimalEmpty
        | Kind::DecimalInvalid => (
            "`{` is followed by no numbers and `}`".into(),
            format!("write how often the sign before it comes, as `{{2}}` or `{{2,5}}`; {}", literally("{")),
        ),
        Kind::GroupUnclosed => {
            ("`(` is never closed".into(), format!("write `)` where the group ends; {}", literally("(")))
        }
        Kind::GroupUnopened => {
            ("`)` closes no group".into(), format!("remove it, or write `(` before; {}", literally(")")))
        }
        Kind::ClassUnclosed => {
            ("`[` is never closed".into(), format!("write `]` where the class ends; {}", literally("[")))
        }
        Kind::ClassRangeInvalid => (
            format!("the range `{marked}` ends before it begins"),
            "write the lower end first, as in `a-z`; write `\\-` for the sign itself".into(),
        ),
        Kind::ClassRangeLiteral | Kind::ClassEscapeInvalid => (
            format!("`{marked}` is no single character, and a class takes only such here"),
            "write `-` last in the class, or `\\-`, for the sign itself".into(),
        ),
        Kind::UnsupportedLookAround => (
            format!("look-around (`{marked}`) is not supported"),
            "write what the path has to look like; to leave paths out, write them under `not`: \
             `not: { path_regex: ... }`"
                .into(),
        ),
        Kind::UnsupportedBackreference => {
            (format!("the back-reference `{marked}` is not supported"), "write what it repeats once more".into())
        }
        _ => of_escape_or_name(kind, marked),
    }
}

/// As [`of_syntax`], for escapes and what stands behind `(?`.
fn of_escape_or_name(kind: &ast::ErrorKind, marked: &str) -> (String, String) {
    use ast::ErrorKind as Kind;
    match kind {
        Kind::EscapeUnexpectedEof => ("a `\\` is the last sign".into(), format!("remove it; {}", literally("\\"))),
        Kind::EscapeUnrecognized => (
            format!("there is no escape `{marked}`"),
            format!("write `{}` alone if the letter is meant; {}", marked.trim_start_matches('\\'), literally("\\")),
        ),
        Kind::EscapeHexEmpty | Kind::EscapeHexInvalid | Kind::EscapeHexInvalidDigit => (
            format!("`{marked}` names no character"),
            "write two hexadecimal digits, as in `\\x41`, or the character itself".into(),
        ),
        Kind::FlagDanglingNegation
        | Kind::FlagDuplicate { .. }
        | Kind::FlagRepeatedNegation { .. }
        | Kind::FlagUnexpectedEof
        | Kind::FlagUnrecognized => (
            format!("`{marked}` is no flag that can stand behind `(?`"),
            "write `(?:...)` for a group, and `(?i)` at the beginning where case does not matter".into(),
        ),
        Kind::GroupNameDuplicate { .. }
        | Kind::GroupNameEmpty
        | Kind::GroupNameInvalid
        | Kind::GroupNameUnexpectedEof => {
            ("the name of this group cannot be read".into(), "write `(?:...)`: no name is needed".into())
        }
        Kind::NestLimitExceeded(_) | Kind::CaptureLimitExceeded => {
            ("there are too many groups".into(), "use fewer groups, or several rules".into())
        }
        _ => (kind.to_string(), GENERAL.into()),
    }
}

/// Whether a pattern has what only regular expressions have: `/.*\.php`, `/(en|de)/`. URLs have no backslash and no `|`.
pub fn is_regular_expression(pattern: &str) -> bool {
    let has_alternatives = pattern
        .split_once('(')
        .is_some_and(|(_, rest)| rest.split_once('|').is_some_and(|(_, rest)| rest.contains(')')));
    has_alternatives || ["\\.", "\\/", "\\?", "\\d", "\\w", "[0-9", "[a-z"].iter().any(|piece| pattern.contains(piece))
}

/// The most rules that are suggested for one expression.
const MAX_ALTERNATIVES: usize = 6;

/// The help for a regular expression in place of a path: the rules that come nearest to it.
pub fn paths_for(regex: &str) -> String {
    let rules = as_rules(regex).filter(|rules| rules.iter().all(|rule| rule != regex && rule.len() > 1));
    match rules {
        Some(rules) => {
            let rules: Vec<String> = rules.iter().map(|rule| format!("`{rule}`")).collect();
            let any = if rules.iter().any(|rule| rule.contains('*')) { "; `*` stands for any characters" } else { "" };
            format!("write {}{any}", rules.join(" and "))
        }
        None => {
            "a path begins with `/`, `*` stands for any characters, and a `$` for the end of the URL: write a rule \
                 for each path"
                .into()
        }
    }
}

/// An expression as rules that match at least what it matches; `None` where a piece of it is not understood.
fn as_rules(regex: &str) -> Option<Vec<String>> {
    let mut rules = vec![String::new()];
    let mut signs = regex.trim_start_matches('^').chars().peekable();
    while let Some(sign) = signs.next() {
        let piece = match sign {
            '(' => {
                let inside: String = signs.by_ref().take_while(|sign| *sign != ')').collect();
                let alternatives: Vec<&str> = inside.trim_start_matches("?:").split('|').collect();
                if inside.contains(['(', '\\', '[', '*', '+']) || rules.len() * alternatives.len() > MAX_ALTERNATIVES {
                    return None;
                }
                let each = |rule: &String| alternatives.iter().map(|one| format!("{rule}{one}")).collect::<Vec<_>>();
                rules = rules.iter().flat_map(each).collect();
                continue;
            }
            ')' | '|' | ']' | '{' | '}' => return None,
            '[' => {
                signs.by_ref().find(|sign| *sign == ']')?;
                None
            }
            '\\' => signs.next().filter(|sign| !sign.is_ascii_alphanumeric()),
            '.' if signs.peek().is_some_and(|next| "*+?{".contains(*next)) => None,
            sign => Some(sign),
        };
        let sign = piece.unwrap_or('*');
        if piece.is_none() {
            // How often, which `*` includes.
            while signs.next_if(|sign| "*+?{}".contains(*sign) || sign.is_ascii_digit() || *sign == ',').is_some() {}
        }
        rules.iter_mut().filter(|rule| sign != '*' || !rule.ends_with('*')).for_each(|rule| rule.push(sign));
    }
    let path = |rule: String| {
        let rule = rule.trim_end_matches('*').to_owned();
        if rule.starts_with(['/', '*']) { rule } else { format!("/{rule}") }
    };
    Some(rules.into_iter().map(path).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_names_the_character_and_the_fix() {
        for (text, column, what, help) in [
            ("*.pdf", 1, "`*` has nothing before it", r"`.*`"),
            ("/a/+?", 0, "", ""),
            ("/(a|+b)", 5, "`+` has nothing before it", r"`\+`"),
            ("/a(b", 3, "`(` is never closed", r"`\(`"),
            ("/a)b", 3, "`)` closes no group", r"`\)`"),
            ("/[a-z", 2, "`[` is never closed", r"`\[`"),
            ("/(?!private)", 2, "look-around (`(?!`)", "`not: { path_regex: ... }`"),
            (r"/(a)\1", 5, r"back-reference `\1`", "once more"),
            ("/[z-a]", 3, "the range `z-a`", "`a-z`"),
            ("/a{5,2}", 3, "ends before it begins", "`{2,5}`"),
            ("/a{x}", 4, "no numbers", r"`\{`"),
            (r"/\q", 2, r"no escape `\q`", "`q`"),
            (r"/a\", 3, r"a `\` is the last sign", r"`\\`"),
        ] {
            let found = mistake_in(text);
            assert_eq!(found.is_some(), column > 0, "{text}: {found:?}");
            let Some(found) = found else { continue };
            assert!(found.0.contains(&format!("at character {column}, ")), "{text}: {found:?}");
            assert!(found.0.contains(what) && found.1.contains(help), "{text}: {found:?}");
        }
        let large = mistake_in("/(a{1000}){1000}").expect("too large");
        assert!(large.0.contains("too large") && large.1.contains("`paths`"), "{large:?}");
    }
}
