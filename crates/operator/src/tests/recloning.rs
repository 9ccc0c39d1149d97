//! A site with data is recloned: emptied once, by its own sidecar, and copied.

use crate::testing::{Bed, operate, orders, status, until, writer};
use bloodraven_api::keys;
use bloodraven_gtid::GtidSet;
use std::sync::atomic::Ordering;

fn data(numbers: &str) -> GtidSet {
    format!("00000001-0000-4000-8000-000000000000:{numbers}").parse().expect("a set")
}

fn emptied(bed: &Bed) -> Vec<usize> {
    bed.sidecars.values().map(|sidecar| sidecar.state.emptied.load(Ordering::SeqCst)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reclone_empties_the_site_once_and_an_automatic_clone_empties_nothing() {
    let bed = Bed::new(&["iad", "pdx", "fra"]).await;
    let _operator = operate(&bed, "one").await;
    assert_eq!(writer(&bed, None).await, "iad");
    let follows = |site: &str| bed.servers.change(site, |server| server.runs);
    until("all follow", async || (follows("pdx") && follows("fra")).then_some(())).await;
    for site in ["iad", "pdx", "fra"] {
        bed.servers.change(site, |server| server.executed = data("1-5"));
    }
    let before = bed.servers.change("pdx", |server| server.uuid);
    bed.world.edit(&orders(), |object| object["metadata"]["annotations"][keys::RECLONE_SITE] = "pdx".into());
    let clone = || {
        let status = status(&bed);
        let sites = status["sites"].as_array().cloned().unwrap_or_default();
        sites.into_iter().find(|site| site["name"] == "pdx").unwrap_or_default()
    };
    until("pdx is made anew, copied, and follows", async || {
        let (uuid, executed) = bed.servers.change("pdx", |server| (server.uuid, server.executed.clone()));
        (uuid != before && executed == data("1-5") && follows("pdx")).then_some(())
    })
    .await;
    assert_eq!(emptied(&bed).iter().sum::<usize>(), 1, "{}", clone());
    until("the request is gone", async || {
        let object = bed.world.object(&orders());
        object["metadata"]["annotations"].get(keys::RECLONE_SITE).is_none().then_some(())
    })
    .await;
    // An empty site is filled by itself, and nobody is told to empty anything.
    bed.servers.change("fra", |server| {
        server.uuid = "00002000-0000-4000-8000-000000000000".parse().expect("a uuid");
        (server.executed, server.source, server.runs) = (GtidSet::new(), None, false);
    });
    until("fra is filled", async || {
        let executed = bed.servers.change("fra", |server| server.executed.clone());
        (executed == data("1-5") && follows("fra")).then_some(())
    })
    .await;
    assert_eq!(emptied(&bed).iter().sum::<usize>(), 1);
}
