//! Sessions on interfaces, from the first check to the restoration of their initial state.

use super::choice::Partner;
use super::found::{Found, Method, TestFound};
use super::told;
use crate::cli::{BenchNicArgs, LiveBenchArgs};
use crate::failure::Failure;
use crate::output::note;
use crate::runner::{COMMIT, Interrupt, Spinner};
use baton_live::{Clock, allowed_cores};
use baton_microbench::frame::LinkRate;
use baton_microbench::{Load, Port, Request, Test};
use baton_tester::environment::{Environment, Interface};
use baton_tester::mend::{Changes, FOLDER};
use baton_tester::remote::Remote;
use baton_tester::{Peer, Spec, Station, Tester, TesterError};
use baton_wire::Span;
use std::path::Path;
use std::time::{Duration, Instant};

/// Maximum time until a link is detected, which takes some seconds.
const LONGEST_CARRIER: Duration = Duration::from_secs(5);
/// Number of frames that test whether two interfaces are connected, and the maximum duration of the test.
const PROBES: u64 = 20;
const LONGEST_PROBE: Duration = Duration::from_secs(2);

/// Interfaces that are ready for tests, and the changes to undo afterwards.
pub(super) struct Opened {
    pub(super) stations: Vec<Station>,
    pub(super) interfaces: Vec<Interface>,
    pub(super) changes: Changes,
}

/// Checks interfaces, prepares them and attaches to them.
pub(super) fn open(
    specs: &[Spec],
    cpus: &[usize],
    up: bool,
    longest: usize,
    clock: Clock,
) -> Result<Opened, TesterError> {
    let names = specs.iter();
    let names = names.map(|spec| (spec.namespace.clone(), spec.interface.clone()));
    let mut changes = Changes::begin(Path::new(FOLDER), names.collect())?;
    for mended in &changes.mended {
        note(&format!(
            "restored what an earlier test had left changed: {mended}"
        ));
    }
    let cores = cores(cpus)?;
    let (mut stations, mut interfaces) = (Vec::new(), Vec::new());
    if up {
        for spec in specs.iter().filter(|spec| !spec.kind.is_far_end()) {
            changes.bring_up(spec.namespace.as_deref(), &spec.interface)?;
        }
    }
    let start = Instant::now();
    for (spec, core) in specs.iter().zip(cores.iter().cycle()) {
        while let Err(error) = spec.check(longest) {
            if !up || start.elapsed() > LONGEST_CARRIER {
                return Err(error);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        if !spec.kind.is_far_end() {
            changes.receive_unjoined(spec.namespace.as_deref(), &spec.interface)?;
        }
        let mut station = spec.open(clock)?;
        station.set_core(*core);
        interfaces.push(Interface::of(spec, &station)?);
        stations.push(station);
    }
    Ok(Opened {
        stations,
        interfaces,
        changes,
    })
}

/// Returns the processors to use.
fn cores(asked: &[usize]) -> Result<Vec<usize>, TesterError> {
    let allowed = allowed_cores()?;
    if let Some(other) = asked.iter().find(|core| !allowed.contains(core)) {
        return Err(TesterError::BadInput(format!(
            "--cpus {other}: there is no such processor, or this process may not use it; expected processors from {allowed:?}"
        )));
    }
    Ok(if asked.is_empty() {
        allowed
    } else {
        asked.to_vec()
    })
}

/// Runs `tests` between the interfaces, and returns the results with a description of the machines.
pub(super) fn run(
    arguments: &BenchNicArgs,
    partner: &Partner,
    tests: &[Test],
    interrupt: &Interrupt,
    make: impl FnOnce(&mut Tester<'_>) -> Result<Vec<TestFound>, TesterError>,
) -> Result<Found, Failure> {
    let live = &arguments.live;
    let mut specs = vec![live.spec(&arguments.nic)];
    if let Partner::Interface(name) = partner {
        specs.push(live.partner_spec(name));
    }
    specs.extend(live.receiver_spec());
    check_different(&specs)?;
    let longest = LiveBenchArgs::longest_packet(tests);
    let environment = Environment::take();
    let opened = open(&specs, &live.cpus, live.up, longest, Clock::start())?;
    let mut interfaces = opened.interfaces;
    let mut stations = opened
        .stations
        .into_iter()
        .map(|one| Box::new(one) as Box<dyn Peer>);
    let under_test = stations.next().expect("the interface under test");
    let mut partner_environment = None;
    let other: Box<dyn Peer> = match partner {
        Partner::Interface(_) => stations.next().expect("its partner"),
        Partner::Reflector(mac) => {
            let (remote, welcome) = Remote::greet(&arguments.nic, live.netns.as_deref(), *mac)?;
            interfaces.insert(1, welcome.interface);
            partner_environment = Some(welcome.environment);
            Box::new(remote)
        }
    };
    check_mtu(&interfaces[1], longest)?;
    let interrupted = || interrupt.requested();
    let spinner = Spinner::new("testing");
    let told = Box::new(|trial: &_| spinner.say(told(trial)));
    let mut tester = Tester::new(under_test, other, stations.next(), &interrupted, told);
    tester.set_gateways([live.gateway, live.partner_gateway].map(|mac| mac.map(|mac| mac.0)));
    let known = interfaces
        .iter()
        .take(2)
        .filter_map(Interface::speed_mbps)
        .min();
    let link = live.link().or(known.map(|mbps| LinkRate { mbps }));
    if let Some(link) = link {
        tester.set_link(link);
    }
    probe(&mut tester, tests, &interfaces)?;
    let tests = make(&mut tester)?;
    drop(tester);
    drop(opened.changes);
    Ok(Found {
        program: format!("baton {} ({COMMIT})", env!("CARGO_PKG_VERSION")),
        environment,
        partner_environment,
        interfaces,
        link,
        method: Method::of(arguments),
        tests,
    })
}

/// Refuses interfaces with several roles, except the two ends of a TAP device.
fn check_different(specs: &[Spec]) -> Result<(), Failure> {
    for (number, spec) in specs.iter().enumerate() {
        let same = |other: &&Spec| {
            (&other.namespace, &other.interface, other.kind)
                == (&spec.namespace, &spec.interface, spec.kind)
        };
        if specs[..number].iter().any(|other| same(&other)) {
            return Err(Failure::BadInput(format!(
                "{} cannot be its own partner; expected another interface",
                spec.interface
            )));
        }
    }
    Ok(())
}

fn check_mtu(partner: &Interface, longest: usize) -> Result<(), Failure> {
    if usize::from(partner.mtu) >= longest {
        return Ok(());
    }
    Err(Failure::BadInput(format!(
        "the partner's interface {} has an MTU of {} bytes; these tests need at least {longest}",
        partner.name, partner.mtu
    )))
}

/// Checks that frames from each interface arrive at the other.
fn probe(
    tester: &mut Tester<'_>,
    tests: &[Test],
    interfaces: &[Interface],
) -> Result<(), TesterError> {
    let has_third = interfaces.len() > 2 && tests.iter().any(|test| test.is_three_way());
    let mut ways = vec![
        (Test::UdpSend18, &interfaces[0], &interfaces[1]),
        (Test::UdpReceive18, &interfaces[1], &interfaces[0]),
    ];
    if has_third {
        ways.push((Test::UdpThreeWay18, &interfaces[0], &interfaces[2]));
    }
    for (test, from, to) in ways {
        let duration = Span::from_ms(20);
        let request = Request {
            test,
            load: Load::Rate(PROBES as f64 / duration.as_secs_f64()),
            warm_up: Span::ZERO,
            duration,
        };
        let start = Instant::now();
        loop {
            let trial = tester.trial(&request)?;
            let stream = match test {
                Test::UdpReceive18 => trial.received,
                _ => trial.sent,
            };
            if stream.delivered > 0 {
                break;
            }
            if start.elapsed() > LONGEST_PROBE {
                return Err(TesterError::BadInput(format!(
                    "nothing that {} sends arrives at {} ({}); expected a wire, a switch or a bridge between them, or a router at --gateway",
                    from.name, to.name, to.mac
                )));
            }
        }
    }
    tester.take_details();
    Ok(())
}
