//! [`ask`] makes the request of the http challenge (RFC 8555 section 8.3) at one address. Only an answer with the
//! expected content is this crawlgate's; redirects are not followed.

use super::ReachResult;
use crate::acme::failure::cut;
use httparse::{EMPTY_HEADER, Response, Status};
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The most that is read of an answer.
const LARGEST: u64 = 16 * 1024;
const MOST_FIELDS: usize = 100;

pub async fn ask(address: SocketAddr, host: &str, token: &str, content: &str) -> ReachResult {
    let stream = match TcpStream::connect(address).await {
        Ok(stream) => stream,
        Err(error) => return ReachResult::Nobody(format!("{address} cannot be reached: {error}")),
    };
    match exchange(stream, host, token).await {
        Ok(answer) => judge(address, &answer, content),
        Err(error) => ReachResult::Nobody(format!("{address} does not answer: {error}")),
    }
}

async fn exchange(mut stream: TcpStream, host: &str, token: &str) -> io::Result<Vec<u8>> {
    let request = format!(
        "GET /.well-known/acme-challenge/{token} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: crawlgate/{}\r\nAccept: */*\r\n\
         Connection: close\r\n\r\n",
        env!("CARGO_PKG_VERSION")
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    let read = stream.take(LARGEST).read_to_end(&mut answer).await;
    // A connection that is reset after the answer has answered.
    if answer.is_empty() { read.and_then(|_| Err(io::ErrorKind::UnexpectedEof.into())) } else { Ok(answer) }
}

fn judge(address: SocketAddr, answer: &[u8], content: &str) -> ReachResult {
    let mut fields = [EMPTY_HEADER; MOST_FIELDS];
    let mut response = Response::new(&mut fields);
    let Ok(Status::Complete(head)) = response.parse(answer) else {
        return ReachResult::Other(format!("at {address} something answers that is not HTTP"));
    };
    let status = response.code.unwrap_or_default();
    if status == 200 && answer[head..] == *content.as_bytes() {
        return ReachResult::Own;
    }
    let field = |name: &str| response.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name));
    let server = field("server").map(|field| format!(", Server: {}", cut(&String::from_utf8_lossy(field.value))));
    let location = field("location").map(|field| format!(", Location: {}", cut(&String::from_utf8_lossy(field.value))));
    let (server, location) = (server.unwrap_or_default(), location.unwrap_or_default());
    ReachResult::Other(format!("{address} answers {status}{server}{location}"))
}

#[cfg(test)]
mod tests {
    use super::super::ReachResult;
    use super::judge;

    #[test]
    fn another_answer_is_said_with_its_status_and_server() {
        let said = |answer: &str| judge(([192, 0, 2, 7], 80).into(), answer.as_bytes(), "token");
        assert_eq!(said("HTTP/1.1 200 OK\r\n\r\ntoken"), ReachResult::Own);
        assert_eq!(said("HTTP/1.1 404 Not Found\r\n\r\ntoken"), ReachResult::Other("192.0.2.7:80 answers 404".into()));
        let ReachResult::Other(who) = said("HTTP/1.1 301 M\r\nServer: nginx\r\nLocation: https://a/\r\n\r\n") else {
            panic!()
        };
        assert_eq!(who, "192.0.2.7:80 answers 301, Server: nginx, Location: https://a/");
        assert!(matches!(said("SSH-2.0-x\r\n"), ReachResult::Other(_)));
        assert!(matches!(said("HTTP/1.1 200 OK\r\n\r\ntoken and more"), ReachResult::Other(_)));
    }
}
