//! When the data folder may be emptied.

use crate::fence::{Disk, Emptying, Lane, Mysqld, OpenStep, Permit, ReadBack, Sidecar};
use crate::message::StartId;
use crate::name::{Instance, Member, Site};
use crate::record::{Phase, Settings, View};
use crate::time::{Boot, Millis};
use bloodraven_gtid::GtidSet;

const START: StartId = StartId(7);

fn member(site: &str) -> Member {
    Member::new(&Site::new(site), &Instance::new("pod", &format!("store-{site}")))
}

fn view(seat: Option<&str>) -> View {
    View {
        epoch: 9,
        tenure: 9,
        phase: if seat.is_some() { Phase::Stable } else { Phase::Revoking },
        seat: seat.map(member),
        voters: vec![member("iad"), member("pdx")],
        settings: Settings { lease_timeout: Millis(20_000), min_peers: 1 },
    }
}

/// The sidecar of pdx, fenced and read under the view that gives authority to iad.
fn sidecar() -> Sidecar {
    let disk = Disk { view: Some(view(Some("iad"))), ..Disk::default() };
    let mut brain = Sidecar::start(member("pdx"), disk, Boot(1000));
    brain.mysqld = Mysqld::Up(START);
    brain.stray_openers = false;
    let gtid = GtidSet::new();
    brain.read = Some(ReadBack { start: START, under: Some(9), read_only: true, super_read_only: true, gtid });
    brain
}

fn order() -> Emptying {
    Emptying { to: member("pdx"), epoch: 9, start: START, until_uptime: Millis(500) }
}

#[test]
fn an_order_is_obeyed_only_by_whom_it_means_and_while_nothing_can_be_written() {
    let told = |change: &dyn Fn(&mut Sidecar, &mut Emptying)| {
        let (mut brain, mut order) = (sidecar(), order());
        change(&mut brain, &mut order);
        brain.may_empty(Boot(1500), &order).err().unwrap_or_default()
    };
    assert_eq!(told(&|_, _| {}), "", "obeyed");
    let check = |why: &str, change: &dyn Fn(&mut Sidecar, &mut Emptying)| assert_eq!(told(change), why);
    check("the order is for another instance", &|_, order| order.to = member("iad"));
    check("the order is for another instance", &|_, order| {
        order.to = Member::new(&Site::new("pdx"), &Instance::new("pod", "an earlier store"));
    });
    check("the order is too old", &|_, order| order.until_uptime = Millis(499));
    check("there is no view here", &|brain, _| (brain.disk.view, brain.heard) = (None, None));
    check("the order is of epoch 8, here is 9", &|_, order| order.epoch = 8);
    check("the order is of epoch 10, here is 9", &|_, order| order.epoch = 10);
    check("the order is of epoch 9, here is 10", &|brain, _| {
        brain.heard = Some(View { epoch: 10, ..view(Some("iad")) });
    });
    check("nobody has authority now", &|brain, _| brain.heard = Some(view(None)));
    check("this site has authority", &|brain, _| brain.heard = Some(view(Some("pdx"))));
    check("two views of this epoch are known here", &|brain, _| brain.disk.conflict = Some(9));
    check("another start of mysqld runs, or none", &|_, order| order.start = StartId(8));
    check("another start of mysqld runs, or none", &|brain, _| brain.mysqld = Mysqld::Down);
    check("another start of mysqld runs, or none", &|brain, _| brain.mysqld = Mysqld::Unknown);
    check("an opening may be under way", &|brain, _| {
        brain.permit = Some(Permit { start: START, epoch: 9, deadline: Boot(0) });
    });
    check("an opening may be under way", &|brain, _| brain.stray_openers = true);
    check("an opening may be under way", &|brain, _| {
        brain.lane = Lane::Opening { start: START, step: OpenStep::Executing };
    });
    check("the server is not known to be fenced", &|brain, _| brain.read = None);
    check("the server is not known to be fenced", &|brain, _| {
        if let Some(read) = &mut brain.read {
            read.super_read_only = false;
        }
    });
}
