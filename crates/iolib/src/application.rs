//! The application at the other end of an adapter's link.

/// An application, as it introduces itself and as the system knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Application {
    /// Name that the application gives itself: not to be trusted, but safe to display.
    pub name: String,
    /// Process ID, if the application runs on this machine.
    pub pid: Option<u32>,
    /// User ID, if the application runs on this machine.
    pub uid: Option<u32>,
    /// Address of the application, if it runs on another machine.
    pub peer: Option<std::net::SocketAddr>,
}
