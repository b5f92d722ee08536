//! crawlgate as a running process, by the room that a test is mostly about. `shipped` is what comes
//! with crawlgate: the documentation, the examples and the files for deployment.

mod acme;
mod admin {
    mod dashboard;
    mod reload;
    mod running_status;
}
mod audit;
mod audit_services;
mod cli {
    mod check_formats;
    mod cli_offline;
    mod cli_running;
    mod completions_and_man;
    mod config_flag;
    mod first_day;
    mod init;
    mod judgement;
    mod schema;
    mod sitemap;
    mod zero_config;
}
mod decisions;
mod diff;
mod edge;
mod evidence;
mod export;
mod forwarding {
    mod html;
    mod html_in_chromium;
    mod request_ids;
    mod signals;
    mod tag_changes;
    mod tags;
}
mod gateway {
    mod gateway_lifecycle;
    mod gateway_policy;
    mod gateway_requests;
    mod https_origin;
    mod nginx_origin;
    mod wget;
}
mod identity;
mod instances;
mod ledger {
    mod agreement;
    mod holding;
    mod many_agents;
    mod moved_hosts;
    mod timelines;
}
#[cfg(feature = "tower")]
mod middleware;
mod origin {
    mod origin_robots;
}
mod requests {
    #[cfg(feature = "tower")]
    mod entry_points;
}
mod shared_store;
pub mod shipped {
    mod deploy;
    mod docs;
    pub mod examples;
    mod release;
    mod transcripts;
}
mod state {
    mod state_directory;
}
pub mod support;
mod telemetry {
    mod events;
    mod records;
}
mod traffic;
mod upgrade {
    mod fairness;
    mod hand_over;
    mod remembered;
    mod service_manager;
    mod way_back;
}
mod upstreams {
    mod bad_servers;
    mod checks;
    mod names;
    mod own_host;
    mod people_first;
    mod tls;
    mod unix_sockets;
}
