//! `baton live serve`: a web server on the engine.

use super::engine;
use crate::cli::ServeArgs;
use crate::failure::Failure;
use crate::output::{print, tell};
use crate::runner::Interrupt;
use baton_apps::http::HttpConfig;
use baton_live::{ControlSocket, ServiceConfig, Snapshot, WebService};
use baton_report::grouped;
use std::path::Path;

/// Runs the command until it is interrupted.
///
/// # Errors
/// Bad input, or an interface that fails.
pub fn execute(arguments: &ServeArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    check_folder("--root", &arguments.root)?;
    if let Some(folder) = &arguments.upload {
        check_folder("--upload", folder)?;
    }
    let mut control = ControlSocket::bind(&arguments.control)?;
    let mut running = engine::start(&arguments.link)?;
    let engine = &mut running.engine;
    let config = ServiceConfig {
        port: arguments.port,
        idle_timeout_s: arguments.idle_timeout,
        most_connections: arguments.max_connections,
        ..ServiceConfig::new(HttpConfig {
            upload: arguments.upload.clone(),
            listing: arguments.listing,
            ..HttpConfig::new(&arguments.root)
        })
    };
    let mut service = WebService::start(config, engine.host_mut()).map_err(|error| {
        Failure::BadInput(format!("--root {}: {error}", arguments.root.display()))
    })?;
    for address in &arguments.link.addr {
        let server = baton_wire::Endpoint::new(address.addr(), arguments.port);
        tell(&format!(
            "serving {} at http://{server}/\n",
            arguments.root.display()
        ));
    }
    baton_live::serve(engine, &mut service, Some(&mut control), || {
        interrupt.requested()
    })?;
    print(&totals(&Snapshot::take(engine, &service)))
}

/// What was done, in a few lines.
fn totals(snapshot: &Snapshot) -> String {
    let count = |name: &str| grouped(snapshot.counters.get(name).copied().unwrap_or_default());
    let lost: u64 = ["web.lost", "web.bad_requests", "web.changed_content"]
        .iter()
        .filter_map(|&name| snapshot.counters.get(name))
        .sum();
    format!(
        "{} connections, {} responses with {} bytes of content, {} uploads; {} connections ended early\n\
         {} frames received, {} sent; {} segments sent again\n",
        count("web.accepted"),
        count("web.responses"),
        count("web.content_bytes"),
        count("http.uploads"),
        grouped(lost),
        count("inet.frames_received"),
        count("inet.frames_sent"),
        count("tcp.retransmissions"),
    )
}

fn check_folder(flag: &str, path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        return Ok(());
    }
    let reason = if path.exists() {
        "is no folder"
    } else {
        "does not exist"
    };
    Err(Failure::BadInput(format!(
        "{flag} {}: {reason}; expected a folder",
        path.display()
    )))
}
