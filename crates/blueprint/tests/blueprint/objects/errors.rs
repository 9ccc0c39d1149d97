//! What cannot be built is refused with the field and the way out.

use bloodraven_api::MysqlFailoverGroup;
use bloodraven_blueprint::objects::{Plan, Surroundings};
use serde_json::{Value, json};

use super::{around, edited};

fn refused(change: impl FnOnce(&mut MysqlFailoverGroup, &mut Surroundings)) -> String {
    let mut group = edited(&json!({}));
    let mut around = around(&group);
    change(&mut group, &mut around);
    Plan::new(&group, &around).map(drop).expect_err("to be refused").to_string()
}

#[test]
fn a_group_that_no_api_server_holds_has_no_objects() {
    assert!(refused(|group, _| group.metadata.name = None).starts_with("metadata.name is empty"));
    assert!(
        refused(|group, _| group.metadata.namespace = Some(String::new())).starts_with("metadata.namespace is empty")
    );
    assert!(refused(|group, _| group.metadata.uid = None).starts_with("metadata.uid is empty"));
}

#[test]
fn what_stands_around_is_checked() {
    let error = refused(|_, around| around.own_image = None);
    assert!(error.starts_with("spec.sidecarImage: the operator's own image is not known; write"), "{error}");
    let error = refused(|_, around| around.cluster_domain = "cluster local".to_owned());
    assert!(error.starts_with("--cluster-domain: \"cluster local\""), "{error}");
    let error = refused(|_, around| around.operator_address = "bloodraven".to_owned());
    assert!(error.starts_with("--aux-address: \"bloodraven\""), "{error}");
    let error = refused(|_, around| around.server_ids.retain(|site, _| site != "pdx"));
    assert!(error.starts_with("spec.sites[pdx]: it has no server id"), "{error}");
    let error = refused(|_, around| {
        let iad = around.server_ids["iad"];
        around.server_ids.insert("fra".to_owned(), iad);
    });
    assert!(error.starts_with("spec.sites[fra]: server id") && error.contains("is that of iad"), "{error}");
}

/// K-14: the sidecar's image is the operator's own, unless another is set.
#[test]
fn a_set_image_needs_no_other() {
    let group = edited(&json!({"/spec/sidecarImage": "bloodraven:1"}));
    let around = Surroundings { own_image: None, ..around(&group) };
    assert_eq!(Plan::new(&group, &around).expect("a plan").sidecar_image(), "bloodraven:1");
}

/// K-13: names are checked again before anything is made of them.
#[test]
fn names_that_got_past_admission_are_refused() {
    let long = "a".repeat(50);
    let error = refused(|group, around| {
        group.spec.sites[0].name.clone_from(&long);
        around.server_ids.insert(long.clone(), 1);
    });
    assert!(error.starts_with(&format!("spec.sites[{long}].name: \"mysql-orders-")), "{error}");
    for name in ["1orders", "Orders", "orders.eu", &"g".repeat(54)] {
        let error = refused(|group, _| group.metadata.name = Some(name.to_owned()));
        assert!(error.starts_with("metadata.name: ") && error.ends_with("write a shorter name"), "{error}");
    }
}

#[test]
fn options_that_got_past_admission_are_refused() {
    let error = |conf: Value| refused(|group, _| group.spec.mysql_conf = serde_json::from_value(conf).expect("a map"));
    let rows = [
        (json!({"gtid_mode": "OFF"}), "spec.mysqlConf.gtid_mode: the operator sets this option; remove it"),
        (json!({"loose-super_read_only": "0"}), "spec.mysqlConf.loose-super_read_only: the operator sets"),
        (json!({"a": "1\ngtid-mode=OFF"}), "spec.mysqlConf.a: key and value must be one line"),
        (json!({"a\nb": "1"}), "spec.mysqlConf.a\nb: key and value must be one line"),
        (json!({"sync-binlog": "1", "sync_binlog": "0"}), "spec.mysqlConf.sync_binlog: sync-binlog is the same option"),
        (json!({"loose-x": "1", "x": "0"}), "spec.mysqlConf.x: loose-x is the same option; keep one of them"),
    ];
    for (conf, expect) in rows {
        let error = error(conf);
        assert!(error.starts_with(expect), "{error}");
    }
}

#[test]
fn containers_of_the_user_cannot_have_what_is_not_there_or_not_theirs() {
    for volume in ["nothing", "authority", "run", "tls"] {
        for list in ["extraContainers", "extraInitContainers"] {
            let container =
                json!([{"name": "x", "image": "x:1", "volumeMounts": [{"name": volume, "mountPath": "/x"}]}]);
            let group = edited(&json!({format!("/spec/{list}"): container}));
            let around = around(&group);
            let error = Plan::new(&group, &around).map(drop).expect_err(volume).to_string();
            let expect =
                format!("spec.{list}[x].volumeMounts: the pod has no volume \"{volume}\" for it; write one of data");
            assert!(error.starts_with(&expect) && !error.contains("authority,"), "{error}");
        }
    }
}
