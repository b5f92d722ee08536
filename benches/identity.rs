//! What proof costs a request of a crawler: the look-up in a table of 20,000 networks, and a flood
//! of addresses that no crawler has seen before.

use crawlgate::crawlers::{Claim, Registry};
use crawlgate::internals::identity::{IdentityClaim, IdentityVerifier, NetworkTable, ProofMethods};
use crawlgate::internals::state::StateStore;
use crawlgate::internals::verdict::Identity;
use crawlgate::time::Timestamp;
use criterion::{Criterion, criterion_group, criterion_main};
use ipnet::IpNet;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Spread over the address space, always in the same order.
fn scattered(number: u64) -> u64 {
    number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn v4(number: u64) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from((scattered(number) >> 32) as u32))
}

fn v6(number: u64) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from(u128::from(scattered(number)) << 64))
}

fn table(c: &mut Criterion) {
    let networks = (0..10_000).flat_map(|number| {
        let network = |address, length| IpNet::new(address, length).expect("a network");
        [network(v4(number), 24), network(v6(number), 48)]
    });
    let table = NetworkTable::new(networks);
    for (name, address) in [("IPv4", v4 as fn(u64) -> IpAddr), ("IPv6", v6)] {
        let mut number = 0;
        c.bench_function(&format!("one of 20,000 networks, {name}"), |b| {
            b.iter(|| {
                number += 1;
                black_box(table.contains(address(number % 20_000)))
            });
        });
    }
}

fn flood(c: &mut Criterion) {
    let registry = Registry::builtin();
    let (store, remembered) = StateStore::in_memory_only();
    // As many as the queue takes, and no more.
    let asked = AtomicUsize::new(0);
    let queue = Box::new(move |_| asked.fetch_add(1, Ordering::Relaxed) < 1_024);
    let proofs = IdentityVerifier::new(
        registry,
        &remembered.facts,
        &store,
        ProofMethods {
            lists: true,
            signatures: false,
        },
        Some(queue),
    );
    let claim = Claim::Known(registry.find("bingbot").expect("a crawler"));
    let mut number = 0;
    c.bench_function("an address of a flood", |b| {
        b.iter(|| {
            number += 1;
            let claimed = IdentityClaim {
                claim,
                address: Some(v4(number)),
                may_accuse: true,
                by_policy: Identity::Unverified,
                signed: None,
            };
            let (finding, to_do) = proofs.evaluate(&claimed, Timestamp(0));
            proofs.apply(to_do, Timestamp(0));
            black_box(finding)
        });
    });
    println!(
        "addresses in the table after the flood: {}",
        proofs.names.address_count()
    );
}

criterion_group!(benches, table, flood);
criterion_main!(benches);
