//! The filter of system calls (seccomp(2)): forbids calls that a daemon does not make.

use super::calls::{ADAPTER, BROKER, COMMON, Call, Check};
use crate::error::LiveError;
use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp,
    SeccompCondition, SeccompFilter, SeccompRule, apply_filter_all_threads,
};
use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::io;
use std::process;

/// The daemon to confine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confinement {
    /// An adapter beside a kernel.
    Adapter,
    /// The broker of such an adapter.
    Broker,
}

/// Permanently restricts all threads of this process to the system calls that this daemon makes once it is set up.
///
/// Any other call kills the process (SIGSYS), and the kernel's log names the call. If the call failed instead, the daemon would continue in
/// an untested state, in which connections may hang, whereas it is known what happens to connections when a daemon is killed.
///
/// # Errors
/// The kernel does not support such filters.
pub fn confine(kind: Confinement) -> Result<(), LiveError> {
    let install = || {
        // The C library starts threads with clone3(2), whose arguments in memory no filter sees. If that fails, it uses clone(2).
        let unknown = SeccompAction::Errno(libc::ENOSYS as u32);
        let clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
        apply_filter_all_threads(&program(clone3, SeccompAction::Allow, unknown)?)?;
        let specific = match kind {
            Confinement::Adapter => ADAPTER,
            Confinement::Broker => BROKER,
        };
        let calls = COMMON.iter().chain(specific);
        let rules = rules(calls)?;
        let kill = SeccompAction::KillProcess;
        apply_filter_all_threads(&program(rules, kill, SeccompAction::Allow)?)
    };
    install().map_err(|error: Error| {
        LiveError::failed("cannot restrict the process to the system calls that it makes")(
            io::Error::other(error),
        )
    })
}

fn program(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    otherwise: SeccompAction,
    matched: SeccompAction,
) -> Result<BpfProgram, BackendError> {
    SeccompFilter::new(rules, otherwise, matched, ARCH.try_into()?)?.try_into()
}

/// Converts calls to rules. A call may be listed several times with different arguments.
fn rules<'a>(
    calls: impl Iterator<Item = &'a Call>,
) -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let mut rules = BTreeMap::<i64, Vec<SeccompRule>>::new();
    for (number, checks) in calls {
        let of_call = rules.entry(*number).or_default();
        if !checks.is_empty() {
            let conditions = checks.iter().map(condition).collect::<Result<_, _>>()?;
            of_call.push(SeccompRule::new(conditions)?);
        }
    }
    Ok(rules)
}

fn condition(check: &Check) -> Result<SeccompCondition, BackendError> {
    let (argument, operation, value) = match *check {
        Check::Is(argument, value) => (argument, SeccompCmpOp::Eq, value),
        Check::Masked(argument, mask, value) => (argument, SeccompCmpOp::MaskedEq(mask), value),
        Check::IsOwnProcess(argument) => (argument, SeccompCmpOp::Eq, process::id().into()),
    };
    // All checked arguments are ints, for which the kernel reads the lower half of a register.
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operation, value)
}
