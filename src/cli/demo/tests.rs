//! Tests of the built-in web server that serves the sample site of the command `demo`.

use super::{origin, site};
use std::io::{Read, Write};
use std::net::TcpStream;

fn send_to_origin(request: &str) -> String {
    let address = origin::start_origin().expect("a free port");
    let mut stream = TcpStream::connect(address).expect("the origin listens");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = Vec::new();
    stream
        .read_to_end(&mut answer)
        .expect("it answers and closes");
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn every_link_of_site_has_a_file() {
    let mut followed = 0;
    for page in site::SITE_FILES
        .iter()
        .filter(|page| page.content_type().starts_with("text/html"))
    {
        let text = String::from_utf8_lossy(page.body);
        for link in ["href=\"", "src=\"", "action=\""]
            .iter()
            .flat_map(|mark| text.split(mark).skip(1))
        {
            let link = link.split('"').next().unwrap_or("").replace("&amp;", "&");
            assert!(site::find_file(&link).is_some(), "{link} on {}", page.path);
            followed += 1;
        }
    }
    assert!(followed > 100, "{followed}");
}

#[test]
fn targets_are_normalised_like_common_servers() {
    let path = |target| site::find_file(target).map(|page| page.path);
    assert_eq!(
        path("/members/minutes.html?x=1"),
        Some("/members/minutes.html")
    );
    assert_eq!(path("/exhibits/../members/"), Some("/members/"));
    assert_eq!(
        path("//members//minutes.html"),
        Some("/members/minutes.html")
    );
    assert_eq!(path("/%6dembers/"), Some("/members/"));
    assert_eq!(path("/members"), Some("/members/"));
    assert_eq!(path("/../../"), Some("/"));
    assert_eq!(path("/etc/passwd"), None);
    assert_eq!(path("/%zz"), None);
    assert_eq!(path("/%ff"), None);
}

#[test]
fn path_decides_the_status() {
    for (request, status) in [
        ("HEAD /reports/annual-report.pdf HTTP/1.1\r\n\r\n", "200 OK"),
        ("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "200 OK"),
        ("GET /nowhere HTTP/1.1\r\n\r\n", "404 Not Found"),
    ] {
        let answer = send_to_origin(request);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}\r\n")),
            "{answer}"
        );
        assert!(
            !request.contains(".pdf") || answer.contains("Content-Type: application/pdf"),
            "{answer}"
        );
    }
}

#[test]
fn malformed_request_gets_400() {
    for request in [
        "GET\r\n\r\n",
        "GET x HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: 1048577\r\n\r\n",
    ] {
        assert!(
            send_to_origin(request).starts_with("HTTP/1.1 400 "),
            "{request}"
        );
    }
}
