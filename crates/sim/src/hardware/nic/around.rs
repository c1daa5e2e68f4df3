//! What a NIC needs of the machine around it.

use baton_bus::Category;
use baton_bus::interconnect::Operation;
use baton_named::named;
use baton_wire::Time;

/// A frame that passes a NIC.
pub trait Frame {
    /// Returns the number of bytes that the frame takes in memory.
    fn bytes(&self) -> u32;
    /// Returns the hash of addresses and ports by which receive-side scaling chooses a queue.
    fn hash(&self) -> u32;
    /// Returns the frame's queue in the NIC that has it.
    fn queue(&self) -> u8;
    /// Sets the frame's queue.
    fn set_queue(&mut self, queue: u8);
    /// Creates a frame that asks the partner to stop or to continue sending (802.3x).
    fn pause(now: Time, stop: bool) -> Self;
    /// Returns what a pause frame asks for; `None` for other frames.
    fn as_pause(&self) -> Option<bool>;
}

/// An event of a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An engine has finished a frame.
    Engine(u8),
    /// The NIC has started a DMA.
    Dma,
    /// A frame to send is in packet memory.
    Buffered,
    /// A frame was sent completely.
    Sent,
    /// A received frame is in packet memory.
    Stored,
    /// A received frame is in host memory.
    Delivered,
    /// A coalescing time may have passed.
    Timer,
}

/// Purpose of a transfer, if something waits for it to complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// The driver rings the doorbell: this many more frames of a queue are to be sent.
    Doorbell(u8, u32),
    /// The driver gives the NIC this many new receive descriptors of a queue.
    Refill(u8, u32),
    /// The processor of a queue reads a register.
    Register(u8),
    /// The NIC reads this many send descriptors of a queue.
    SendDescriptors(u8, u32),
    /// The NIC reads this many receive descriptors of a queue.
    ReceiveDescriptors(u8, u32),
    /// The NIC sends an interrupt message to the processor of a queue.
    Interrupt(u8),
    /// The NIC reads a frame to send.
    SendFrame,
    /// The NIC writes a received frame and its descriptor to host memory.
    ReceiveFrame,
}

named! {
    /// Why a NIC dropped a received frame.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Dropped {
        /// Packet memory was full.
        ReceiveFifo => "receive_fifo",
        /// The driver had not given the NIC descriptors for the frames in packet memory.
        NoDescriptor => "no_descriptor",
    }
}

/// The machine around a NIC.
pub trait Around<F> {
    /// Returns the current time.
    fn now(&self) -> Time;
    /// Schedules an event of the NIC, not in the past.
    fn at(&mut self, time: Time, event: Event);
    /// Begins a transfer on the bus. Its completion is reported to the NIC if there is a tag.
    fn submit(&mut self, operation: Operation, category: Category, bytes: u32, tag: Option<Tag>);
    /// Puts a frame on the wire at `at`, or behind the frames that are already on it. Returns when the wire is free.
    fn transmit(&mut self, at: Time, frame: F) -> Time;
    /// Takes a frame that the NIC dropped.
    fn dropped(&mut self, frame: F, reason: Dropped);
}
