//! The order and the number of requests, and parameters.

use baton_bus::descriptor::{Action, Outcome, Status};
use baton_cluster::script::{CLIENT, SERVER, Script};
use baton_host::adapter::{NotSubmitted, OsLayer, OsLayerConfig, OsLayerConfigError};
use baton_host::{NicCacheConfig, Ready, Sockets};
use bytes::Bytes;

#[test]
fn status_requests_are_limited() {
    let (mut script, socket, _) = Script::with_connection(OsLayerConfig::default());
    let mut asked = 0;
    while script.os.status(script.now, socket) == Ok(()) {
        asked += 1;
        for request in script.requests() {
            script.done(&request, Status::Ok);
        }
        assert!(asked < 1000);
    }
    script.pump();
    assert!(script.os.poll_completion().is_some());
    assert_eq!(script.os.status(script.now, socket), Ok(()));
    script.os.close(script.now, socket);
    let gone = script.os.status(script.now, socket);
    assert_eq!(gone, Err(NotSubmitted::NoSuchSocket));
}

#[test]
fn the_next_accept_leaves_with_the_first_receive_of_the_connection() {
    let mut script = Script::new(OsLayerConfig::default());
    script.os.listen(script.now, SERVER, 5).unwrap();
    let requests = script.requests();
    for request in &requests[..3] {
        script.done(request, Status::Ok);
    }
    script.pump();
    let accepted = Outcome::Accepted(CLIENT);
    script.answer(&requests[3], Status::Ok, accepted);
    assert!(script.os.gather(script.now, &mut script.host).unwrap());
    assert_eq!(script.ready(), [Ready::Acceptable]);
    let socket = script.calls().accept().unwrap();
    assert_eq!(script.calls().accept(), None);
    assert_eq!(script.os.peer(socket), Some(CLIENT));
    let transfers = script.transfers();
    let actions = script.actions();
    assert!(
        matches!(actions[..], [Action::Receive { .. }, Action::Accept { .. }]),
        "{actions:?}"
    );
    assert_eq!(script.transfers(), transfers + 1);
}

#[test]
fn impossible_parameters_are_named() {
    let refused = |change: fn(&mut NicCacheConfig)| {
        let mut config = OsLayerConfig::default();
        config.nic_cache.enabled = true;
        change(&mut config.nic_cache);
        let error: OsLayerConfigError =
            OsLayer::<Bytes>::new(config).expect_err("the parameters are invalid");
        error.to_string()
    };
    let block = "expected a power of two from 512 to max_transfer_bytes = 4096";
    for (bytes, change) in [
        (
            8192,
            (|cache| cache.block_bytes = 8192) as fn(&mut NicCacheConfig),
        ),
        (1000, |cache| cache.block_bytes = 1000),
        (256, |cache| cache.block_bytes = 256),
    ] {
        assert_eq!(
            refused(change),
            format!("nic_cache.block_bytes = {bytes}: {block}")
        );
    }
}
