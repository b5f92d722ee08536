//! [`parse_clf_line`] parses a line of an access log in the Common or Combined format of Apache and
//! nginx, with or without a leading virtual host or X-Forwarded-For. Further columns after the user
//! agent are ignored, as in the format of Traefik. But quoted columns directly after the user agent
//! must be `-` or a list of addresses (X-Forwarded-For). Any other quoted text there may be the
//! real user agent, after an additional column. So such a line is rejected.

use super::client::{is_client_list, is_ipv4, is_socket_address, split_column};
use super::columns::Quoted;
use super::{
    FieldResult, LineResult, LogRecord, RequestLine, UnreadableReason::*, fields, non_empty,
    request, timestamps,
};
use memchr::{memchr, memchr_iter};

pub fn parse_clf_line(line: &[u8]) -> LineResult<'_> {
    let (head, time, rest) = split_at_time(line).ok_or(OtherFormat)?;
    let time = timestamps::parse_clf_time(time).ok_or(BadTime)?;
    let columns = LeadingColumns::parse(head)?;
    let request = Quoted::split(rest)?;
    let (status, rest) = split_word(request.rest)?;
    let (bytes, rest) = split_word(rest)?;
    let status = fields::parse_status(status)?;
    let bytes = fields::parse_number(bytes)?;
    let mut rest = rest.trim_ascii();
    let mut referer = None;
    let mut user_agent = None;
    // The Common format ends here.
    if !rest.is_empty() {
        let column = Quoted::split(rest)?;
        referer = Some(column.text);
        let column = Quoted::split(column.rest.trim_ascii_start())?;
        user_agent = Some(fields::check_user_agent(column.unescape())?);
        rest = column.rest;
    }
    let forwarded = columns.forwarded.or(find_forwarded_for(rest)?);
    let request = request.unescape();
    let record = LogRecord {
        host: columns.host.map(Into::into),
        client: columns.client.map(Into::into),
        x_forwarded_for: forwarded.map(Into::into),
        time,
        bytes: bytes.unwrap_or(0),
        referer: non_empty(referer.map(Into::into)),
        user_agent,
        has_unread_columns: !rest.ends_with(b"\"") && !rest.is_empty(),
        ..LogRecord::default()
    };
    request::into_line(RequestLine::parse(&request), &request, status, record)
}

/// Splits a line into the columns before the time, the time without its brackets, and the rest from
/// the request on. The time is the first text of the right length in square brackets with a quote
/// after it: a user name may have a `[`, but no quote.
fn split_at_time(line: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    memchr_iter(b'[', line).find_map(|place| {
        let text = line.get(place + 1..)?;
        let (time, rest) = text.split_at_checked(timestamps::CLF_LENGTH)?;
        let rest = rest
            .strip_prefix(b"] ")
            .filter(|rest| rest.starts_with(b"\""))?;
        Some((line[..place].trim_ascii_end(), time, rest))
    })
}

/// Finds X-Forwarded-For, which the format `main` of nginx's packages has after the user agent: the
/// first quoted column with addresses. Stops at the first column without quotes.
///
/// # Errors
/// A quoted column is neither a list of addresses nor `-`, or is cut off.
fn find_forwarded_for(mut rest: &[u8]) -> FieldResult<Option<&[u8]>> {
    let mut forwarded = None;
    loop {
        rest = rest.trim_ascii_start();
        if !rest.starts_with(b"\"") {
            return Ok(forwarded);
        }
        let column = Quoted::split(rest)?;
        if is_client_list(column.text) {
            forwarded.get_or_insert(column.text);
        } else if column.text != b"-" {
            return Err(OtherFormat);
        }
        rest = column.rest;
    }
}

/// Splits off the word after a blank.
///
/// # Errors
/// There is none.
fn split_word(text: &[u8]) -> FieldResult<(&[u8], &[u8])> {
    let text = text.strip_prefix(b" ").unwrap_or_default();
    match text.split_at(memchr(b' ', text).unwrap_or(text.len())) {
        (b"", _) => Err(CutOff),
        parts => Ok(parts),
    }
}

/// The columns before the time.
#[derive(Default)]
struct LeadingColumns<'a> {
    host: Option<&'a [u8]>,
    client: Option<&'a [u8]>,
    forwarded: Option<&'a [u8]>,
}

impl<'a> LeadingColumns<'a> {
    /// Parses `client identity user`, `host client identity user` or
    /// `forwarded client identity user`. User names may have blanks, so an address in front is the
    /// client's, unless another address follows.
    ///
    /// # Errors
    /// The columns do not have one of these forms.
    fn parse(head: &'a [u8]) -> FieldResult<LeadingColumns<'a>> {
        if let Some(client) = head.strip_suffix(b" - -").filter(|client| is_ipv4(client)) {
            return Ok(LeadingColumns {
                client: Some(client),
                ..LeadingColumns::default()
            });
        }
        let (first, rest) = split_column(head);
        let (second, third) = split_column(rest);
        let begins_with_client = is_client_list(first);
        if begins_with_client && !is_client_list(second) {
            check_identity_and_user(second, third)?;
            return Ok(LeadingColumns {
                client: Some(first),
                ..LeadingColumns::default()
            });
        }
        // `name - user`: the host is missing, and the client is a name or `-`.
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
            check_virtual_host(first)?
        };
        let client = fields::check_client(client)?.then_some(client);
        // After a name in place of an address, only `-` is certain to be the identity.
        if client.is_none() && identity != b"-" {
            return Err(BadColumns);
        }
        check_identity_and_user(identity, user)?;
        Ok(LeadingColumns {
            host,
            client,
            forwarded,
        })
    }
}

/// Checks a host, and returns it if it has a dot or a colon or is `localhost`. `None` for a single
/// label: it is the name of a machine, which a log collector wrote.
fn check_virtual_host(field: &[u8]) -> FieldResult<Option<&[u8]>> {
    let is_qualified = field.iter().any(|byte| b".:".contains(byte));
    let is_virtual =
        fields::check_host(field)? && (is_qualified || field.eq_ignore_ascii_case(b"localhost"));
    Ok(is_virtual.then_some(field))
}

/// Checks the identity (RFC 1413), which is nearly always `-`, and the user. Both may be missing.
///
/// # Errors
/// The identity looks like a host, or one of the two is missing.
fn check_identity_and_user(identity: &[u8], user: &[u8]) -> FieldResult<()> {
    let is_host = identity.iter().any(|byte| b".:|".contains(byte));
    if is_host || identity.is_empty() != user.is_empty() {
        Err(BadColumns)
    } else {
        Ok(())
    }
}
