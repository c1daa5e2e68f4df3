//! The engine against itself: what is delivered, across any network and any moves.

mod common;
mod custom_controller;
mod delivery;
mod long_transfer;
mod moving;
mod real_bytes;
