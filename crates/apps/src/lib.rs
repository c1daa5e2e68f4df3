//! Applications written against the socket layer ([`baton_host::Sockets`]), so that they run simulated and live.
//!
//! | to find | look in |
//! |---|---|
//! | the web server | [`web`]; one connection of it: `src/web/connection.rs` |
//! | what the web server needs of HTTP | [`web::Http`] |
//! | requests and content of the simulator; the client's check of every byte | [`symbolic`] |
//! | live streams, remote files | [`symbolic::LiveHttp`], `src/symbolic/remote_files.rs` |
//! | what an application reports to a machine that models its cost | [`Costs`], [`MeteredSockets`] |

mod costs;
pub mod symbolic;
pub mod web;

pub use costs::{Costs, MeteredSockets};
