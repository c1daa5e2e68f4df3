//! Whose connections an adapter takes over, where somebody else has a say in that.

use baton_bus::descriptor::Status;
use baton_tcp::Portable;
use baton_wire::Flow;
use std::fmt::Debug;

/// Decides which connections an adapter may take over, and learns which ones leave it.
///
/// An adapter with one serves imported connections only: its applications can neither listen nor connect nor send packets of their own.
pub trait Custody<P>: Debug + Send {
    /// An application of this user, if that is known, brings a connection in this state. From here on the connection is the adapter's.
    ///
    /// # Errors
    /// The application may not bring it, or the state is not what was taken out.
    fn claim(&mut self, user: Option<u32>, state: &Portable<P>) -> Result<(), Status>;

    /// The adapter could not take over a connection that it had claimed: it is the application's again.
    fn unclaim(&mut self, flow: &Flow);

    /// A connection leaves for its application. Returns the state that the application is given.
    fn release(&mut self, state: Portable<P>) -> Portable<P>;
}
