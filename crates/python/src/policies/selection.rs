//! Selection: which connections are handed off.

use super::Raised;
use baton_host::{Decision, Life, View};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// Those methods of a policy that it defines.
#[derive(Debug)]
pub struct Selection {
    on_established: Option<Py<PyAny>>,
    on_send: Option<Py<PyAny>>,
    on_receive: Option<Py<PyAny>>,
    on_closed: Option<Py<PyAny>>,
    reconsiders: Option<Py<PyAny>>,
    takes_back: Option<Py<PyAny>>,
    raised: Raised,
}

impl Selection {
    /// Creates a selection that calls this object.
    ///
    /// # Errors
    /// The object defines none of the methods.
    pub fn new(policy: &Bound<'_, PyAny>, raised: Raised) -> PyResult<Self> {
        let method = |name: &str| Ok::<_, PyErr>(policy.getattr_opt(name)?.map(Bound::unbind));
        let this = Self {
            on_established: method("on_established")?,
            on_send: method("on_send")?,
            on_receive: method("on_receive")?,
            on_closed: method("on_closed")?,
            reconsiders: method("reconsiders")?,
            takes_back: method("takes_back")?,
            raised,
        };
        match (&this.on_established, &this.on_send, &this.on_receive) {
            (None, None, None) => Err(PyTypeError::new_err(
                "selection: expected an object with on_established, on_send or on_receive",
            )),
            _ => Ok(this),
        }
    }

    fn says(&self, method: Option<&Py<PyAny>>, view: &View) -> bool {
        let Some(method) = method else { return false };
        let ask = |py: Python<'_>| {
            let answer = method.call1(py, (Connection(*view),))?;
            answer.bind(py).is_truthy()
        };
        self.raised.ask(ask).unwrap_or(false)
    }

    fn decide(&self, method: Option<&Py<PyAny>>, view: &View) -> Decision {
        Decision::hand_off_if(self.says(method, view))
    }
}

impl baton_host::Selection for Selection {
    fn on_established(&mut self, view: &View) -> Decision {
        self.decide(self.on_established.as_ref(), view)
    }

    fn on_send(&mut self, view: &View) -> Decision {
        self.decide(self.on_send.as_ref(), view)
    }

    fn on_receive(&mut self, view: &View) -> Decision {
        self.decide(self.on_receive.as_ref(), view)
    }

    fn on_closed(&mut self, life: &Life) {
        if let Some(method) = &self.on_closed {
            let tell = |py: Python<'_>| method.call1(py, (ClosedConnection(*life),)).map(drop);
            self.raised.ask(tell);
        }
    }

    fn reconsiders(&self, view: &View) -> bool {
        self.says(self.reconsiders.as_ref(), view)
    }

    fn takes_back(&mut self, view: &View) -> bool {
        self.says(self.takes_back.as_ref(), view)
    }
}

/// What the host knows about a connection and its NIC when a policy decides.
#[pyclass(frozen, module = "baton")]
pub struct Connection(View);

getters! { Connection
    /// Address of this end.
    local: String = local.to_string();
    /// Address of the other end.
    remote: String = remote.to_string();
    /// Seconds since the connection was established.
    age_s: f64 = age.as_secs_f64();
    /// Send requests made by the application.
    requests: u32 = requests;
    /// Enqueues to the send buffer before this request.
    enqueues_before: u32 = enqueues_before;
    /// Enqueues to the send buffer.
    enqueues: u32 = enqueues;
    /// Bytes enqueued to the send buffer.
    bytes_sent: u64 = bytes_sent;
    /// Bytes enqueued and not yet acknowledged.
    bytes_in_send_buffer: u32 = bytes_in_send_buffer;
    /// Times that the application has read data, including this time.
    receives: u32 = receives;
    /// Approximate number of enqueues in the whole life of the connection; known only when a log is replayed.
    foreseen_enqueues: Option<u32> = foreseen_enqueues;
    /// Failed attempts to hand off the connection.
    failures: u32 = failures;
    /// Whether the connection was on the NIC before and came back.
    was_offloaded: bool = was_offloaded;
    /// Connections that are on the NIC or moving to it.
    nic_connections: u32 = nic_connections;
    /// Soft_Limit that the NIC reported last.
    nic_soft_limit: u32 = nic_soft_limit;
}

/// A summary of a connection whose socket has been closed.
#[pyclass(frozen, module = "baton")]
pub struct ClosedConnection(Life);

getters! { ClosedConnection
    /// Address of this end.
    local: String = local.to_string();
    /// Address of the other end.
    remote: String = remote.to_string();
    /// Send requests made by the application.
    requests: u32 = requests;
    /// Enqueues to the send buffer.
    enqueues: u32 = enqueues;
    /// Bytes enqueued to the send buffer.
    bytes_sent: u64 = bytes_sent;
}
