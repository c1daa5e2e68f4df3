//! XDP on veth pairs in separate network namespaces: XDP programs, ports, the broker, and connections that move between kernel and adapter.

mod application;
mod broker;
mod capture;
mod frames;
mod guest;
mod hostile;
mod killed;
mod links;
mod lookup;
mod loopback;
mod moving;
mod observing;
mod offloads;
mod on_the_wire;
mod peers;
mod ports;
mod repair;
mod wire;
mod withheld;

use baton_live::bus::log::{self, Level, Log, Target};
use baton_testkit::needs::{self, Need};
use libtest_mimic::Arguments;

fn main() {
    links::serve_parent();
    killed::serve_parent();
    // Logs why a connection is lost.
    log::set_global(Log::new("xdp", Level::Warn, Target::Stderr));
    let tests = [
        lookup::ALL,
        links::ALL,
        ports::ALL,
        capture::ALL,
        repair::ALL,
        broker::ALL,
        hostile::ALL,
        moving::ALL,
        observing::ALL,
        on_the_wire::ALL,
        offloads::ALL,
        killed::ALL,
        loopback::ALL,
        withheld::ALL,
    ];
    let tests = tests.concat();
    let matrix = Need::Other(
        offloads::VARIABLE,
        std::env::var_os(offloads::VARIABLE).is_some(),
    );
    let all = [
        (&[Need::Root][..], &tests[..]),
        (&[Need::Root, matrix][..], offloads::MATRIX),
    ];
    needs::run_all(&Arguments::from_args(), &all);
}
