//! Figures 1 and 3 as groups of bars.

use super::Study;
use baton_microbench::applications::Drivers;
use baton_microbench::report::{Workload, WorkloadOf};
use baton_report::figure::{GroupPanel, GroupSeries, Groups};

/// Draws a panel for the web server and one for each kind of router drivers, with the NICs in the report's order.
pub(super) fn groups(study: &Study) -> Groups {
    let workloads = study.laboratory.workloads();
    let of = |drivers: Option<Drivers>| {
        let such = workloads.iter().filter(|one| match one.of {
            WorkloadOf::Web { .. } => drivers.is_none(),
            WorkloadOf::Router { drivers: of, .. } => drivers == Some(of),
        });
        such.map(|one| series(study, one)).collect()
    };
    let mut panels = vec![GroupPanel {
        y: "web server, Mb/s".to_owned(),
        series: of(None),
    }];
    panels.extend(Drivers::ALL.map(|drivers| GroupPanel {
        y: "router, 1000/s".to_owned(),
        series: of(Some(drivers)),
    }));
    Groups {
        title: "Applications on six NICs, simulated (after Figures 1 and 3)".to_owned(),
        names: super::super::microbench::names(&study.laboratory.nics),
        panels,
        ..Groups::default()
    }
}

fn series(study: &Study, workload: &Workload) -> GroupSeries {
    let value = |nic: usize| {
        let has_one = workload.nics.contains(&nic);
        has_one.then(|| study.results.get(&workload.point(nic)).value())
    };
    GroupSeries {
        name: workload.name.clone(),
        values: (0..study.laboratory.nics.len()).map(value).collect(),
        ..GroupSeries::default()
    }
}
