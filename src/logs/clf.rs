//! [`read`] reads a line in the Common or Combined log format of Apache and nginx, with or without
//! a leading virtual host or X-Forwarded-For. It ignores what follows the user agent, so lines of
//! Traefik and of most extended formats are read, too. Quoted columns right behind the user agent
//! must be lists of addresses, or the user agent is another column.

use super::client::{is_client, is_ipv4, is_socket_address, split_column};
use super::{Asked, Line, Octets, Reading, Record, Unreadable, fields, moment, request, unescape};
use memchr::{memchr, memchr_iter, memchr2};

/// Reads a line.
pub fn read(line: &[u8]) -> Reading<'_> {
    let (head, time, rest) = split_at_time(line).ok_or(Unreadable::OtherFormat)?;
    let time = moment::clf(time).ok_or(Unreadable::BadTime)?;
    let columns = Columns::read(head)?;
    let (request, rest) = quoted(rest).ok_or(Unreadable::CutOff)?;
    let (status, rest) = word(rest).ok_or(Unreadable::CutOff)?;
    let (bytes, rest) = word(rest).ok_or(Unreadable::CutOff)?;
    let status = fields::status(fields::number(status)?)?;
    let bytes = fields::number(bytes)?;
    let (user_agent, rest) = user_agent(rest.trim_ascii_start())?;
    let forwarded = columns.forwarded.or(forwarded(rest)?);
    let request = unescape(request);
    let Some(asked) = Asked::line(&request) else {
        return request::none(&request, status);
    };
    Ok(Line::Request(Record {
        host: asked.host.or(columns.host.map(Into::into)),
        client: columns.client.map(Into::into),
        forwarded: forwarded.map(Into::into),
        time,
        method: asked.method,
        target: asked.target,
        status: status.unwrap_or(0),
        bytes: bytes.unwrap_or(0),
        content_type: None,
        user_agent,
    }))
}

/// Splits a line into what stands before the time, the time without its brackets, and the request
/// with what follows. `None` if there is no text of the right length in square brackets with a
/// quote behind it. The first one counts: a user name may hold a `[`, and no quote.
fn split_at_time(line: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    memchr_iter(b'[', line).find_map(|place| {
        let text = line.get(place + 1..)?;
        let (time, rest) = text.split_at_checked(moment::CLF_LENGTH)?;
        let rest = rest
            .strip_prefix(b"] ")
            .filter(|rest| rest.starts_with(b"\""))?;
        Some((line[..place].trim_ascii_end(), time, rest))
    })
}

/// Reads the referer, which is ignored, and the user agent behind it. Returns the user agent and
/// what follows; `None` in the Common format, which ends before.
///
/// # Errors
/// Something else stands there, or the line ends within it.
fn user_agent(rest: &[u8]) -> Result<(Option<Octets<'_>>, &[u8]), Unreadable> {
    if rest.is_empty() {
        return Ok((None, rest));
    }
    if !rest.starts_with(b"\"") {
        return Err(Unreadable::OtherFormat);
    }
    let (_, rest) = quoted(rest).ok_or(Unreadable::CutOff)?;
    let (user_agent, rest) = quoted(rest.trim_ascii_start()).ok_or(Unreadable::CutOff)?;
    Ok((Some(fields::user_agent(unescape(user_agent))?), rest))
}

/// X-Forwarded-For, which the format `main` of nginx's packages has behind the user agent: the
/// first quoted column with addresses, `None` without one. Ends at the first column without quotes.
///
/// # Errors
/// A quoted column is neither a list of addresses nor `-`, or is cut off.
fn forwarded(mut rest: &[u8]) -> Result<Option<&[u8]>, Unreadable> {
    let mut forwarded = None;
    loop {
        rest = rest.trim_ascii_start();
        if !rest.starts_with(b"\"") {
            return Ok(forwarded);
        }
        let (column, behind) = quoted(rest).ok_or(Unreadable::CutOff)?;
        if is_client(column) {
            forwarded = forwarded.or(Some(column));
        } else if column != b"-" {
            return Err(Unreadable::OtherFormat);
        }
        rest = behind;
    }
}

/// Splits a text that begins with a quote into what stands between the quotes, and what follows.
/// `None` if there is no quote or no end. A backslash escapes the sign behind it: nginx and Apache
/// write none that does not.
fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.strip_prefix(b"\"")?;
    let mut from = 0;
    loop {
        let place = from + memchr2(b'"', b'\\', text.get(from..)?)?;
        if text[place] == b'"' {
            return Some((&text[..place], &text[place + 1..]));
        }
        from = place + 2;
    }
}

/// The word behind a blank, and what follows it, with its blank. `None` if there is none.
fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.strip_prefix(b" ")?;
    let (word, rest) = text.split_at(memchr(b' ', text).unwrap_or(text.len()));
    (!word.is_empty()).then_some((word, rest))
}

/// The columns before the time.
struct Columns<'a> {
    host: Option<&'a [u8]>,
    client: Option<&'a [u8]>,
    forwarded: Option<&'a [u8]>,
}

impl<'a> Columns<'a> {
    /// Reads `client identity user`, `host client identity user` or
    /// `forwarded client identity user`. User names may have blanks in them, so an address in front
    /// is the client's, unless another address follows.
    ///
    /// # Errors
    /// The columns are other ones.
    fn read(head: &'a [u8]) -> Result<Columns<'a>, Unreadable> {
        if let Some(client) = head.strip_suffix(b" - -").filter(|client| is_ipv4(client)) {
            return Ok(Columns {
                host: None,
                client: Some(client),
                forwarded: None,
            });
        }
        let (first, rest) = split_column(head);
        let (second, third) = split_column(rest);
        let begins_with_client = is_client(first);
        if begins_with_client && !is_client(second) {
            is_identity_and_user(second, third)?;
            return Ok(Columns {
                host: None,
                client: Some(first),
                forwarded: None,
            });
        }
        // The name of a client, or nothing: `name - user`.
        let is_host_missing = second == b"-" && !third.starts_with(b"- ");
        let (client, identity, user) = if is_host_missing {
            (first, second, third)
        } else {
            let (identity, user) = split_column(third);
            (second, identity, user)
        };
        let forwarded = (begins_with_client && !is_socket_address(first)).then_some(first);
        let host = if is_host_missing || forwarded.is_some() {
            None
        } else {
            virtual_host(first)?
        };
        let client = fields::client(client)?;
        // Who has a name in place of an address has no identity but `-`.
        if client.is_none() && identity != b"-" {
            return Err(Unreadable::BadColumns);
        }
        is_identity_and_user(identity, user)?;
        Ok(Columns {
            host,
            client,
            forwarded,
        })
    }
}

/// Checks a host, and returns it if it has a dot or a colon or is `localhost`. `None` for a single
/// label: it is the name of a machine, which a collector of logs put in front.
fn virtual_host(field: &[u8]) -> Result<Option<&[u8]>, Unreadable> {
    Ok(fields::host(field)?.filter(|host| {
        host.iter().any(|byte| b".:".contains(byte)) || host.eq_ignore_ascii_case(b"localhost")
    }))
}

/// Checks that these can be the identity (RFC 1413), which is nearly always `-`, and the user; both
/// may be missing.
///
/// # Errors
/// They cannot: the identity looks like a host, or one of the two is missing.
fn is_identity_and_user(identity: &[u8], user: &[u8]) -> Result<(), Unreadable> {
    let is_host = identity.iter().any(|byte| b".:|".contains(byte));
    if is_host || identity.is_empty() != user.is_empty() {
        Err(Unreadable::BadColumns)
    } else {
        Ok(())
    }
}
