//! An axum application behind the gate. The gate serves `/robots.txt`, blocks crawlers that break
//! the policy, adds `X-Robots-Tag`, and reloads policies while the application runs.
//!
//! ```sh
//! cargo run --no-default-features --features tower,html,metrics --example axum -- 127.0.0.1:8080 examples/policies
//! curl -i -A GPTBot http://127.0.0.1:8080/
//! wget -q -r http://127.0.0.1:8080/                  # obeys robots.txt
//! wget -q -r -e robots=off http://127.0.0.1:8080/    # ignores it
//! curl -s http://127.0.0.1:8080/metrics | grep ^crawlgate_requests_total
//! ```

use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::header::CONTENT_TYPE;
use axum::response::Html;
use axum::routing::get;
use crawlgate::middleware::GateLayer;
use std::error::Error;
use std::net::SocketAddr;
use tokio::net::TcpListener;

const HOME: &str = "<!doctype html><html><head><title>Shop</title></head><body>\
    <a href=\"/about\">About</a> <a href=\"/report.pdf\">Report</a> <a href=\"/private/prices\">Prices</a>\
    </body></html>";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // crawlgate logs to tracing: a policy that was saved with a mistake, for example.
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(tracing::Level::WARN)
        .init();
    let mut words = std::env::args().skip(1);
    let address = words.next().unwrap_or_else(|| "127.0.0.1:8080".into());
    let policies = words.next().unwrap_or_else(|| "examples/policies".into());

    let gate = GateLayer::builder(policies)
        .peer(|extensions| Some(extensions.get::<ConnectInfo<SocketAddr>>()?.0.ip()))
        // If no policy can be used, the error names the file and line of each mistake.
        .open()?;
    let metrics = gate.clone();

    let app = Router::new()
        .route("/", get(|| async { Html(HOME) }))
        .route(
            "/about",
            get(|| async { Html("<!doctype html><title>About</title><p>A shop.") }),
        )
        .route(
            "/private/prices",
            get(|| async { Html("<!doctype html><title>Prices</title><p>Low.") }),
        )
        .route(
            "/report.pdf",
            get(|| async { ([(CONTENT_TYPE, "application/pdf")], "%PDF-1.4") }),
        )
        .layer(gate)
        // Added after the layer, so the gate does not see it.
        .route("/metrics", get(move || async move { metrics.metrics() }));

    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(
        listener,
        app.into_make_service_with_connect_info::<SocketAddr>(),
    )
    // The gate writes its logs when it is dropped.
    .with_graceful_shutdown(async { drop(tokio::signal::ctrl_c().await) })
    .await?;
    Ok(())
}
