//! Tests of the hardware models, each by itself.

mod cache;
mod config;
mod disk;
mod event_queue;
mod memory;
mod processor;
mod queues;
mod wire;
