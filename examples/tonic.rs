//! A gRPC server of tonic behind the gate. It serves gRPC's health service, whose code is in the
//! crate `tonic-health`. Put your own service in its place.
//!
//! ```sh
//! cargo run --no-default-features --features tower --example tonic -- 127.0.0.1:8080 examples/policies
//! cargo run --no-default-features --features tower --example tonic -- --call http://127.0.0.1:8080 MyClient    # SERVING
//! cargo run --no-default-features --features tower --example tonic -- --call http://127.0.0.1:8080 GPTBot      # PermissionDenied
//! ```

use crawlgate::middleware::GateLayer;
use std::error::Error;
use tonic::transport::server::{TcpConnectInfo, TcpIncoming};
use tonic::transport::{Endpoint, Server};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["--call", server, user_agent] => call(server, user_agent).await,
        _ => {
            let address = words.first().unwrap_or(&"127.0.0.1:8080");
            let policies = words.get(1).unwrap_or(&"examples/policies");
            serve(address, policies).await
        }
    }
}

async fn serve(address: &str, policies: &str) -> Result<(), Box<dyn Error>> {
    let gate = GateLayer::builder(policies)
        .peer(|extensions| Some(extensions.get::<TcpConnectInfo>()?.remote_addr()?.ip()))
        .open()?;
    let incoming = TcpIncoming::bind(address.parse()?)?;
    println!("listening on http://{}", incoming.local_addr()?);
    let (_, health) = tonic_health::server::health_reporter();
    Server::builder()
        .layer(gate)
        .add_service(health)
        // The gate writes its logs when it is dropped.
        .serve_with_incoming_shutdown(incoming, async { drop(tokio::signal::ctrl_c().await) })
        .await?;
    Ok(())
}

/// Calls the service under a user agent, and prints what it answers.
async fn call(server: &str, user_agent: &str) -> Result<(), Box<dyn Error>> {
    let endpoint = Endpoint::from_shared(server.to_owned())?.user_agent(user_agent)?;
    let mut client = HealthClient::new(endpoint.connect().await?);
    match client.check(HealthCheckRequest::default()).await {
        Ok(answer) => println!("{}", answer.into_inner().status().as_str_name()),
        Err(status) => println!("{:?}", status.code()),
    }
    Ok(())
}
