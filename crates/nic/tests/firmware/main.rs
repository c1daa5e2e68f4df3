//! The firmware, from frames and commands to frames and events.

mod common;
mod data_cache;
mod dialogue;
mod exactly_once;
mod scheduling;
