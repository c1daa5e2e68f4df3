//! Permission to take over connections.

use baton_bus::descriptor::Status;
use baton_tcp::Portable;
use baton_wire::Flow;
use std::fmt::Debug;

/// Decides which connections an adapter may take over, and is notified when connections leave the adapter.
///
/// An adapter with a `Custody` serves imported connections only: its applications can neither listen nor connect nor send packets of their
/// own.
pub trait Custody<P>: Debug + Send {
    /// Checks that an application of this user (if known) may import a connection in this state, and assigns the connection to the adapter.
    ///
    /// # Errors
    /// Fails if the application may not import the connection, or if the state differs from the one that was taken out of the kernel.
    fn claim(&mut self, user: Option<u32>, state: &Portable<P>) -> Result<(), Status>;

    /// Returns a claimed connection to the application because the adapter could not take it over.
    fn unclaim(&mut self, flow: &Flow);

    /// Releases a connection to its application. Returns the state that the application is given.
    fn release(&mut self, state: Portable<P>) -> Portable<P>;
}
