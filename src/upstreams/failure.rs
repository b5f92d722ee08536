//! Classifies Pingora's errors when crawlgate forwards a request and no response comes.
//! [`failure_status`] is the status that the client gets (such as 502 or 504), and
//! [`failure_reason`] the word for metrics and logs.

use crate::files;
use pingora_core::{Error, ErrorSource, ErrorType};

/// The reason if the process may open no more files. The server is not at fault.
pub const FILE_LIMIT: &str = "file_limit";

/// The status of the answer in place of the origin's: for an origin 504 (too slow) or 502, for a
/// client 408 (too slow) or 400, for crawlgate itself 503 (too many open files) or 500; the error's
/// own status, if it has one. 0 if the client is gone, so that nothing can be answered.
pub fn failure_status(error: &Error) -> u16 {
    use ErrorSource::*;
    use ErrorType::*;

    match (error.etype(), error.esource()) {
        (HTTPStatus(status) | CustomCode(_, status), _) => *status,
        _ if is_file_limit(error) => 503,
        (ConnectTimedout | TLSHandshakeTimedout | ReadTimedout | WriteTimedout, Upstream) => 504,
        (_, Upstream) => 502,
        (ReadTimedout, Downstream) => 408,
        (WriteError | ReadError | ConnectionClosed, Downstream) => 0,
        (_, Downstream) => 400,
        (_, Internal | Unset) => 500,
    }
}

/// The word for the access log: that of the metrics if the origin failed, else Pingora's.
pub fn logged_error(error: &Error) -> &'static str {
    match error.esource() {
        ErrorSource::Upstream => failure_reason(error),
        _ => error.etype().as_str(),
    }
}

/// A fixed word for metrics, log and status.
pub fn failure_reason(error: &Error) -> &'static str {
    use ErrorType::*;

    match error.etype() {
        _ if is_file_limit(error) => FILE_LIMIT,
        ConnectTimedout => "connect_timeout",
        ConnectRefused => "connect_refused",
        ConnectNoRoute | ConnectError | SocketError => "connect",
        TLSHandshakeFailure | TLSHandshakeTimedout | InvalidCert => "tls",
        ReadTimedout => "read_timeout",
        WriteTimedout => "write_timeout",
        ReadError | ConnectionClosed => "read",
        WriteError => "write",
        InvalidHTTPHeader => "invalid_response",
        _ => "other",
    }
}

/// Whether the error is that the process may open no more files.
fn is_file_limit(error: &Error) -> bool {
    error
        .root_cause()
        .downcast_ref()
        .is_some_and(files::is_file_limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;
    use std::io;

    #[test]
    fn slow_origin_gets_504_and_broken_origin_502() {
        assert_eq!(
            failure_status(&Error::new_up(ErrorType::ConnectTimedout)),
            504
        );
        assert_eq!(failure_status(&Error::new_up(ErrorType::ReadTimedout)), 504);
        assert_eq!(
            failure_status(&Error::new_up(ErrorType::ConnectRefused)),
            502
        );
        assert_eq!(
            failure_status(&Error::new_up(ErrorType::InvalidHTTPHeader)),
            502
        );
    }

    #[test]
    fn exhausted_file_limit_is_no_fault_of_the_origin() {
        let no_file = || io::Error::from_raw_os_error(Errno::MFILE.raw_os_error());
        let socket = Error::because(ErrorType::SocketError, "no socket", no_file());
        // As Pingora wraps it.
        let mut wrapped = Error::because(ErrorType::InternalError, "no connection", socket);
        wrapped.as_up();
        let mut unix = Error::because(ErrorType::ConnectError, "no connection", no_file());
        unix.as_up();
        for error in [wrapped, unix] {
            assert_eq!(failure_reason(&error), FILE_LIMIT);
            assert_eq!(failure_status(&error), 503);
        }
        let refused = Error::new_up(ErrorType::ConnectRefused);
        assert_eq!(failure_reason(&refused), "connect_refused");
    }

    #[test]
    fn log_has_the_word_of_the_metrics_for_the_origin() {
        use ErrorType::{ConnectRefused, CustomCode, WriteError};
        for (error, expected) in [
            (Error::new_up(ConnectRefused), "connect_refused"),
            (Error::new(CustomCode("no_origin", 502)), "no_origin"),
            (Error::new_down(WriteError), "WriteError"),
        ] {
            assert_eq!(logged_error(&error), expected);
        }
        let no_origin = Error::new(CustomCode("no_origin", 502));
        assert_eq!(failure_status(&no_origin), 502);
    }

    #[test]
    fn departed_client_gets_no_status_and_bad_request_400() {
        assert_eq!(
            failure_status(&Error::new_down(ErrorType::ConnectionClosed)),
            0
        );
        assert_eq!(
            failure_status(&Error::new_down(ErrorType::InvalidHTTPHeader)),
            400
        );
        assert_eq!(
            failure_status(&Error::new_in(ErrorType::InternalError)),
            500
        );
        assert_eq!(
            failure_status(&Error::new_in(ErrorType::HTTPStatus(502))),
            502
        );
    }
}
