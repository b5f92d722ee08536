//! A hyper server behind the gate, without a framework.
//!
//! ```sh
//! cargo run --no-default-features --features tower --example hyper -- 127.0.0.1:8080 examples/policies
//! curl -i http://127.0.0.1:8080/                     # the page
//! curl -i -A GPTBot http://127.0.0.1:8080/           # 403
//! curl -i http://127.0.0.1:8080/robots.txt
//! ```

use crawlgate::middleware::GateLayer;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::pin::pin;
use tokio::net::TcpListener;
use tower::{ServiceBuilder, service_fn};

/// The application: one page for every path.
async fn page(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::from("A shop.\n")))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let address = words.next().unwrap_or_else(|| "127.0.0.1:8080".into());
    let policies = words.next().unwrap_or_else(|| "examples/policies".into());

    // One gate for all connections. It reads the client's address from the request's extensions.
    let gate = GateLayer::builder(policies)
        .peer(|extensions| Some(extensions.get::<SocketAddr>()?.ip()))
        .open()?;

    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let connections = GracefulShutdown::new();
    let mut stop = pin!(tokio::signal::ctrl_c());
    loop {
        let (stream, client) = tokio::select! {
            accepted = listener.accept() => accepted?,
            _ = &mut stop => break,
        };
        let service = ServiceBuilder::new()
            // hyper does not put the client's address into the extensions. So the application does
            // it, in a layer outside of the gate.
            .map_request(move |mut request: Request<Incoming>| {
                request.extensions_mut().insert(client);
                request
            })
            .layer(gate.clone())
            .service(service_fn(page));
        let connection = http1::Builder::new()
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
        let connection = connections.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                eprintln!("{client}: {error}");
            }
        });
    }
    // Ends each connection after its current response. The gate writes its logs when it is dropped.
    connections.shutdown().await;
    Ok(())
}
