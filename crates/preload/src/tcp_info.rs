//! TCP_INFO of connections that the kernel does not have, in the layout of `struct tcp_info` in the kernel's `linux/tcp.h`.

use crate::pointers;
use crate::sys::{Errno, call};
use baton_sockets::{State, Told};
use libc::{c_int, c_void, socklen_t};

/// Length of the longest known structure, bytes.
const LEN: usize = 248;

/// Offsets of the path MTU and the advertised MSS, which the kernel's socket knows from when it had the connection.
const KEPT: [usize; 2] = [60, 84];

/// Writes TCP_INFO from what the adapter's TCP knows; other fields are zero. The kernel's socket determines the structure's length.
///
/// # Safety
/// `to` and `len` are good, as getsockopt(2) requires.
pub unsafe fn give(
    fd: c_int,
    told: &Told,
    to: *mut c_void,
    len: *mut socklen_t,
) -> Result<usize, Errno> {
    pointers::check_mut(len)?;
    let (mut room, mut known) = ([0_u8; LEN], LEN as socklen_t);
    let (level, name) = (libc::IPPROTO_TCP, libc::TCP_INFO);
    let at = room.as_mut_ptr();
    // SAFETY: the buffer has `known` bytes.
    let asked = unsafe { call!(SYS_getsockopt, fd, level, name, at, &raw mut known) };
    if asked != 0 {
        return Err(libc::EOPNOTSUPP);
    }
    let mut bytes = bytes(told);
    for at in KEPT.map(|at| at..at + 4) {
        bytes[at.clone()].copy_from_slice(&room[at]);
    }
    // SAFETY: by this function's contract.
    unsafe {
        let wanted = usize::try_from((*len).cast_signed()).map_err(|_| libc::EINVAL)?;
        let given = wanted.min(known as usize);
        if pointers::is_bad_mut(to, given) {
            return Err(libc::EFAULT);
        }
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), given);
        *len = given as socklen_t;
    }
    Ok(0)
}

/// Returns the state's number in `tcp_states.h`.
fn state(of: State) -> u8 {
    match of {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Closing => 11,
    }
}

fn bytes(told: &Told) -> [u8; LEN] {
    let info = &told.info;
    let segments = |bytes: u32| bytes.div_ceil(info.send_mss.max(1));
    let options = [
        (info.timestamps, 1),
        (info.sack, 2),
        (info.window_scaling, 4),
        (info.ecn, 8),
        (info.delivered_ce > 0, 16),
        (info.syn_data, 32),
    ];
    let options = options.iter().filter(|(holds, _)| *holds);
    let mut all = [0; LEN];
    let first = [
        state(info.state),
        // Linux has another state between the second and the third.
        match info.phase as u8 {
            phase @ 0..=1 => phase,
            phase => phase + 1,
        },
        info.retransmits,
        info.probes,
        info.backoff,
        options.fold(0, |bits, (_, bit)| bits | bit),
        info.send_shift | info.receive_shift << 4,
    ];
    all[..first.len()].copy_from_slice(&first);
    let us = |span: Option<baton_sockets::Span>| span.map_or(0, |span| span.as_us() as u32);
    let ms = |span: baton_sockets::Span| (span.as_us() / 1000) as u32;
    let mut word = |at: usize, value: u32| all[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    word(8, us(Some(info.rto)));
    word(12, us(Some(info.ato)));
    word(16, info.send_mss);
    word(20, info.receive_mss);
    word(24, info.unacked_segments);
    word(28, segments(info.sacked));
    word(32, segments(info.lost));
    word(36, segments(info.retransmitted));
    word(44, ms(info.last_data_sent));
    word(52, ms(info.last_data_received));
    word(56, ms(info.last_ack_received));
    word(64, info.receive_window);
    word(68, us(info.srtt));
    word(72, us(info.rttvar));
    // Linux counts both windows in segments.
    word(
        76,
        match info.slow_start_threshold {
            u32::MAX => 0x7fff_ffff,
            bytes => segments(bytes),
        },
    );
    word(80, segments(info.congestion_window));
    word(88, info.reordering_segments);
    word(96, info.receive_window);
    word(100, info.total_retransmissions);
    word(136, info.segments_out);
    word(140, info.segments_in);
    word(144, info.not_sent + told.unsent as u32);
    word(
        148,
        info.min_rtt.map_or(u32::MAX, |span| span.as_us() as u32),
    );
    word(152, info.data_segments_in);
    word(156, info.data_segments_out);
    word(192, info.delivered);
    word(196, info.delivered_ce);
    word(216, info.duplicate_sacks);
    word(220, info.reordering_seen);
    word(224, info.out_of_order_segments);
    word(228, info.send_window);
    word(232, info.receive_window);
    let mut long = |at: usize, value: u64| all[at..at + 8].copy_from_slice(&value.to_ne_bytes());
    // No pacing rate.
    long(104, u64::MAX);
    long(112, u64::MAX);
    long(120, info.bytes_acked);
    long(128, info.bytes_received);
    long(160, info.delivery_rate);
    long(200, info.bytes_sent);
    long(208, info.bytes_retransmitted);
    all
}
