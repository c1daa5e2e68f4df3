//! Who is at the other end of an adapter's link.

/// An application, as it presents itself, and as the system knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Application {
    /// What it calls itself; not to be trusted, but fit to be shown.
    pub name: String,
    /// Its process, where it runs on this machine.
    pub pid: Option<u32>,
    /// Its user, where it runs on this machine.
    pub uid: Option<u32>,
    /// Where it comes from, where it is another machine.
    pub peer: Option<std::net::SocketAddr>,
}
