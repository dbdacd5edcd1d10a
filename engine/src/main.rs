//! `swarmc-engine`: runs that outlive their machine. It serves the handlers that Restate calls, and has no state: where one
//! ends, Restate calls another, and its drivers go on from the records.
//!
//! ```text
//! swarmc run --engine ─► Restate ─► swarmc-engine serve: services, and the drivers of runs
//!                           ▲                                │
//! swarmc worker ────────────┴────────────────────────────────┘
//! ```

mod host;
mod inbox;
mod queue;
mod services;

use std::fs::{File, TryLockError};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use host::{Host, eprintln_line};
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use restate_sdk::hyper::HyperEndpoint;
use restate_sdk::prelude::*;
use swarmc_runtime::EngineRun;
use tokio::net::TcpListener;

use services::{InboxObject, PullService, QueueObject, RunWorkflow, RunsObject, Times, ViewObject};

/// How long no connection is accepted where the system has no file for one more.
const PAUSE: Duration = Duration::from_millis(100);

/// Runs of swarmc on several machines, on Restate.
#[derive(Parser)]
#[command(name = "swarmc-engine", version)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serves the handlers that Restate calls, and drives the runs.
    Serve(ServeArgs),
}

#[derive(Args)]
struct ServeArgs {
    /// The address to listen on.
    #[arg(long, default_value = "127.0.0.1:9080", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Where Restate reaches this: `http://` and the address, when left out.
    #[arg(long, value_name = "URL")]
    advertise: Option<String>,
    /// The ingress of Restate.
    #[arg(long, default_value = "http://127.0.0.1:8080", value_name = "URL")]
    ingress: String,
    /// The admin address of Restate, where this is registered; `none` where you register it yourself.
    #[arg(long, default_value = "http://127.0.0.1:9070", value_name = "URL")]
    admin: String,
    /// Where texts, outputs and patches lie: `file:///FOLDER`, which all machines share, or `s3://BUCKET/PREFIX`.
    #[arg(long, value_name = "URL")]
    store: String,
    /// A clone of the repository that runs work on; without one their files are empty folders.
    #[arg(long, value_name = "FOLDER")]
    workspace: Option<PathBuf>,
    /// The folder of the runs of this process; `$SWARM_HOME` or `~/.swarm-engine`, when left out.
    #[arg(long, value_name = "FOLDER")]
    home: Option<PathBuf>,
    /// How long a worker may be silent before others get its processes. An outage of Restate, or of the network, that is
    /// longer makes steps run twice; the result of the first worker is refused.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(2..=86_400))]
    lease: u64,
}

fn main() -> ExitCode {
    let Command::Serve(args) = CommandLine::parse().command;
    match serve(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln_line(&format!("error: {problem}"));
            ExitCode::from(2)
        }
    }
}

fn serve(args: ServeArgs) -> Result<(), String> {
    let home = args.home.or_else(|| std::env::var_os("SWARM_HOME").map(PathBuf::from));
    let home = home.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".swarm-engine")));
    let home = home.ok_or("say where runs lie: `--home FOLDER`")?;
    let _lock = have_home(&home)?;
    let setup = EngineRun::new(&args.ingress, &args.store, args.workspace, home, std::env::vars_os().collect())?;
    let reactor = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let reactor = reactor.map_err(|error| format!("no event loop can be started: {error}"))?;
    let times = Times { lease: Duration::from_secs(args.lease) };
    reactor.block_on(async {
        let endpoint = Endpoint::builder()
            .bind(QueueObject { times })
            .bind(InboxObject)
            .bind(ViewObject)
            .bind(RunsObject)
            .bind(RunWorkflow { host: Arc::new(Host::new(setup)) })
            .bind(PullService { store: args.store.clone(), times })
            .build();
        let listener = TcpListener::bind(args.listen).await;
        let listener = listener.map_err(|error| format!("cannot listen on {}: {error}", args.listen))?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let own = args.advertise.unwrap_or_else(|| format!("http://{address}"));
        if args.admin != "none" {
            tokio::spawn(register(args.admin, own.clone()));
        }
        eprintln_line(&format!("serving {own} for Restate"));
        tokio::select! {
            () = accept(listener, HyperEndpoint::new(endpoint)) => {}
            // Restate calls another one for what goes on.
            _ = tokio::signal::ctrl_c() => {}
        }
        Ok(())
    })
}

/// Has a home for this process alone, without what one that was killed has left of its drivers.
fn have_home(home: &Path) -> Result<File, String> {
    let failed = |error: std::io::Error| format!("{} cannot be used: {error}", home.display());
    std::fs::create_dir_all(home).map_err(failed)?;
    let lock = File::options().create(true).truncate(false).write(true).open(home.join("lock")).map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(format!("another engine has {}: name another folder with `--home`", home.display()));
        }
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    // The records are with Restate.
    for left in ["drivers", "trees"] {
        let _ = std::fs::remove_dir_all(home.join(left));
    }
    Ok(lock)
}

/// Serves connections. Those of the SDK's own server gather small writes: that costs 40 ms for each read of a state that
/// follows a write.
async fn accept(listener: TcpListener, endpoint: HyperEndpoint) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Too many files are open: one has to be closed first.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let server = http2::Builder::new(TokioExecutor::new());
        let connection = server.serve_connection(TokioIo::new(stream), endpoint.clone());
        // Restate makes a broken connection again.
        tokio::spawn(async move { drop(connection.await) });
    }
}

/// Tells Restate where this is, until it has heard.
async fn register(admin: String, own: String) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap_or_default();
    let url = format!("{}/deployments", admin.trim_end_matches('/'));
    // A new version has an address of its own; the same address is the same version, started again.
    let body = serde_json::json!({"uri": own, "force": true}).to_string();
    let mut is_first = true;
    loop {
        let request = client.post(&url).header("content-type", "application/json").body(body.clone());
        let problem = match request.send().await {
            Ok(response) if response.status().is_success() => {
                return eprintln_line(&format!("registered with {admin}"));
            }
            Ok(response) => response.text().await.unwrap_or_default(),
            Err(error) => error.to_string(),
        };
        if std::mem::take(&mut is_first) {
            eprintln_line(&format!("waits for Restate at {admin}: {problem}"));
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
