//! The operating system's half: sockets, the host TCP stack, the bypass, the driver, the selection policies.

mod meter;
mod sockets;

pub use meter::{Access, LAYERS, Layer, Meter, NoMeter, OPS, Op, Owner, POOLS, Pool};
pub use sockets::{FileId, Gone, Ready, Receive, SocketId, Sockets};
