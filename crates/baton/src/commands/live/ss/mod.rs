//! `baton live ss`: the connections of the kernel and of an adapter in one table, in the manner of `ss -tinp`.

mod processes;
mod show;
mod waiting;

pub use processes::plain;
pub use waiting::duration;

use super::ask_broker;
use super::stat::filter;
use crate::cli::SsArgs;
use crate::failure::Failure;
use crate::output::{print, tell};
use crate::runner::Interrupt;
use baton_live::sock_diag::{KernelSocket, kernel_sockets};
use baton_live::{ConnectionRow, Places, Snapshot, ask, user_name, user_number};
use baton_sockets::broker::{Destination, HistoryQuery, MoveRow};
use baton_tcp::{Info, State, Timer};
use baton_wire::Endpoint;
use processes::{Process, by_inode};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use waiting::waits_for;

/// Owner of a connection or a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Place {
    Adapter,
    Kernel,
}

/// A connection or a listener.
#[derive(Clone, Debug, Serialize)]
struct Row {
    place: Place,
    /// `None` for a listener.
    state: Option<State>,
    local: Endpoint,
    remote: Option<Endpoint>,
    receive_queue: u64,
    send_queue: u64,
    uid: Option<u32>,
    processes: Vec<Process>,
    congestion: String,
    timer: Option<Timer>,
    waits_for: Vec<String>,
    info: Option<Info>,
    /// The last move of the connection, or attempt to move it, if the broker knows one.
    moved: Option<MoveRow>,
    /// Number of moves, without attempts.
    moves: u64,
}

/// Runs the command.
///
/// # Errors
/// Fails if neither the adapter nor the kernel answers.
pub fn execute(arguments: &SsArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let user = arguments.user.as_deref().map(user_of).transpose()?;
    let snapshot = snapshot(arguments, interrupt)?;
    let sockets = kernel_sockets()
        .map_err(|error| Failure::Failed(format!("cannot list the kernel's sockets: {error}")))?;
    let mut rows = snapshot.as_ref().map_or_else(Vec::new, of_adapter);
    let on_adapter: BTreeSet<_> = rows.iter().map(|row| (row.local, row.remote)).collect();
    let processes = by_inode();
    let of_kernel = sockets.iter().map(|socket| {
        let processes = processes.get(&socket.inode).cloned().unwrap_or_default();
        of_kernel(socket, processes)
    });
    // A connection that both the adapter and the kernel list has just moved: the adapter's row is the current one.
    rows.extend(of_kernel.filter(|row| !on_adapter.contains(&(row.local, row.remote))));
    rows.retain(|row| {
        let is_shown = |state| filter::is_in(&arguments.filter, state);
        let is_between = filter::is_between(&arguments.filter, row.local, row.remote);
        is_shown(row.state) && is_between && user.is_none_or(|user| row.uid == Some(user))
    });
    add_moves(&mut rows, arguments, interrupt);
    rows.sort_by_key(|row| {
        (
            row.state.is_some(),
            row.local.port,
            row.remote.map(|end| end.port),
        )
    });
    if arguments.json {
        let text = serde_json::to_string(&rows);
        let text = text.map_err(|error| Failure::Failed(error.to_string()))?;
        return print(&format!("{text}\n"));
    }
    print(&show::render(&rows, arguments))
}

/// Adds the moves that the broker knows. Without a broker, no connection can move.
fn add_moves(rows: &mut [Row], arguments: &SsArgs, interrupt: &Interrupt) {
    let broker = arguments.broker.clone();
    let broker = broker.unwrap_or_else(|| Places::here().broker());
    if !broker.exists() {
        return;
    }
    let query = HistoryQuery::default();
    let answer = ask_broker(&broker, interrupt, move |broker| broker.history(&query));
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return tell(&format!("note: moves are not shown: {error}\n")),
    };
    let known: BTreeMap<_, _> = (answer.connections.into_iter())
        .map(|known| ((known.local, Some(known.remote)), known))
        .collect();
    for row in rows {
        let Some(known) = known.get(&(row.local, row.remote)) else {
            continue;
        };
        let is_move = |one: &&MoveRow| one.to != Destination::Stayed;
        row.moves = known.earlier_moves + known.moves.iter().filter(is_move).count() as u64;
        row.moved = known.moves.last().cloned();
    }
}

/// Returns the adapter's snapshot, or `None` if no adapter answers and the user has not named one.
fn snapshot(arguments: &SsArgs, interrupt: &Interrupt) -> Result<Option<Snapshot>, Failure> {
    let given = arguments.control.clone();
    let control = given.clone().unwrap_or_else(|| Places::here().control());
    if given.is_none() && !control.exists() {
        tell("note: no adapter is running; only the kernel's connections are shown\n");
        return Ok(None);
    }
    let asked = control.clone();
    let answer = interrupt.during(move || ask(&asked, "`baton live adapter`"))?;
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) if given.is_none() => {
            tell(&format!(
                "note: the adapter's connections are not shown: {error}\n"
            ));
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    let snapshot = serde_json::from_slice(&answer).map_err(|error| {
        Failure::Failed(format!(
            "--control {}: cannot read the answer; the process there may be another version of baton: {error}",
            control.display()
        ))
    })?;
    Ok(Some(snapshot))
}

/// Returns the number of a user, by name or number.
fn user_of(text: &str) -> Result<u32, Failure> {
    let found = text.parse().ok().or_else(|| user_number(text));
    found.ok_or_else(|| {
        Failure::BadInput(format!(
            "--user {text}: no such user; expected a name or a number"
        ))
    })
}

fn of_adapter(snapshot: &Snapshot) -> Vec<Row> {
    let applications: BTreeMap<u32, _> = (snapshot.applications.iter())
        .map(|application| (application.number, application))
        .collect();
    let listeners = snapshot.listeners.iter().map(|listener| Row {
        place: Place::Adapter,
        state: None,
        local: listener.local,
        remote: None,
        receive_queue: listener.accept_queue,
        send_queue: 0,
        uid: None,
        processes: Vec::new(),
        congestion: String::new(),
        timer: None,
        waits_for: Vec::new(),
        info: None,
        moved: None,
        moves: 0,
    });
    let connections = snapshot.connections.iter().map(|connection| {
        let application = connection.application;
        let application = application.and_then(|number| applications.get(&number));
        let process = application.and_then(|application| {
            let name = plain(&application.name);
            Some(Process {
                pid: application.pid?,
                name,
            })
        });
        let ConnectionRow {
            local,
            remote,
            receive_queue,
            send_queue,
            congestion,
            info,
            ..
        } = connection.clone();
        Row {
            place: Place::Adapter,
            state: Some(info.state),
            local,
            remote: Some(remote),
            receive_queue,
            send_queue,
            uid: application.and_then(|application| application.uid),
            processes: process.into_iter().collect(),
            congestion,
            timer: info.timer,
            waits_for: waits_for(info.state, receive_queue, send_queue, &info),
            info: Some(info),
            moved: None,
            moves: 0,
        }
    });
    listeners.chain(connections).collect()
}

fn of_kernel(socket: &KernelSocket, processes: Vec<Process>) -> Row {
    let KernelSocket {
        local,
        remote,
        state,
        receive_queue,
        send_queue,
        uid,
        timer,
        congestion,
        info,
        ..
    } = socket.clone();
    let (receive_queue, send_queue) = (receive_queue.into(), send_queue.into());
    let waits = state.zip(info.as_ref());
    Row {
        place: Place::Kernel,
        state,
        local,
        remote: state.map(|_| remote),
        receive_queue,
        send_queue,
        uid: Some(uid),
        processes,
        congestion,
        timer,
        waits_for: waits.map_or_else(Vec::new, |(state, info)| {
            waits_for(state, receive_queue, send_queue, info)
        }),
        info,
        moved: None,
        moves: 0,
    }
}

/// Returns the user's name, or the number if there is no name.
pub fn user_text(uid: u32) -> String {
    user_name(uid).unwrap_or_else(|| uid.to_string())
}
