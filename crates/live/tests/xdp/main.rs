//! XDP on veth pairs in network namespaces of their own: programs, links, ports, the broker, connections that move.

#[path = "../../../baton/tests/common/needs.rs"]
mod needs;

mod application;
mod broker;
mod capture;
mod frames;
mod killed;
mod links;
mod lookup;
mod moving;
mod peers;
mod ports;
mod repair;
mod routing;
mod wire;
mod withheld;

use libtest_mimic::Arguments;
use needs::Need;

fn main() {
    links::serve_parent();
    killed::serve_parent();
    let tests = [
        lookup::ALL,
        links::ALL,
        ports::ALL,
        capture::ALL,
        repair::ALL,
        broker::ALL,
        moving::ALL,
        killed::ALL,
        routing::ALL,
        withheld::ALL,
    ];
    needs::run(&Arguments::from_args(), Need::Root, &tests.concat());
}
