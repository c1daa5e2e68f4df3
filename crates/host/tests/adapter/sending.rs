//! Sending while the ring is full.

use baton_bus::descriptor::{Action, Status};
use baton_bus::link::MemoryConfig;
use baton_cluster::script::{LINK, Script};
use baton_host::adapter::OsLayerConfig;
use baton_host::{Ready, Receive, Sockets};

/// Other sockets keep posting buffers, so the ring is always full.
#[test]
fn a_send_that_found_the_ring_full_takes_its_turn() {
    let config = OsLayerConfig {
        ring_depth: 2,
        ..OsLayerConfig::default()
    };
    let link = MemoryConfig {
        ring_depth: 2,
        ..LINK
    };
    for len in [100, 4096, 10_000] {
        let mut script = Script::with_link(config.clone(), link);
        let busy = [(); 7].map(|()| script.open());
        let (patient, _) = script.open();
        for pair in busy.chunks(2) {
            for (_, receive) in pair {
                script.deliver(receive, 10);
            }
            script.pump();
            for (socket, _) in pair {
                while let Receive::Data(_) = script.calls().receive(*socket, 100) {}
            }
        }
        script.pump();
        script.calls().set_cork(patient, true);
        let mut taken = script.send(patient, len);
        script.calls().set_cork(patient, false);
        let mut sent = 0;
        for _ in 0..100 {
            for request in script.requests() {
                match request.action {
                    Action::Receive { .. } => script.deliver(&request, 10),
                    Action::Send { data, .. } => {
                        sent += data.len() as usize;
                        script.done(&request, Status::Ok);
                    }
                    action => panic!("{action:?}"),
                }
            }
            script.pump();
            for ready in script.ready() {
                match ready {
                    Ready::Readable(socket) => {
                        while let Receive::Data(_) = script.calls().receive(socket, 100) {}
                    }
                    Ready::Writable(socket) => taken += script.send(socket, len - taken),
                    Ready::Acceptable => {}
                }
            }
        }
        assert_eq!(sent, len, "{taken} bytes were accepted");
    }
}
