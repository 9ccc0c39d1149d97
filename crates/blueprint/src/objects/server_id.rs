//! Server ids: one for each site of a group, the same for ever.
//!
//! In: the group's name, its sites, and the ids that claims remember. Out: an id for every site. Must not: depend on the
//! order of the sites, or change an id that is remembered.

use std::collections::{BTreeMap, BTreeSet};

/// Chooses an id for every site. What is remembered stays, also for sites that are gone: their transactions may be
/// around. A site without one gets the 32-bit FNV-1a hash of `group/site`, or the next id that is free.
pub fn server_ids(group: &str, sites: &[&str], remembered: &BTreeMap<String, u32>) -> BTreeMap<String, u32> {
    let mut ids: BTreeMap<String, u32> =
        remembered.iter().filter(|(_, id)| **id != 0).map(|(site, id)| (site.clone(), *id)).collect();
    let mut taken: BTreeSet<u32> = ids.values().copied().collect();
    // By name, so that the order of the list does not matter.
    let sites: BTreeSet<&str> = sites.iter().copied().collect();
    for site in &sites {
        if ids.contains_key(*site) {
            continue;
        }
        let mut id = fnv1a(&format!("{group}/{site}")).max(1);
        // Bounded by the number of ids that are taken.
        while !taken.insert(id) {
            id = next(id);
        }
        ids.insert((*site).to_owned(), id);
    }
    ids.retain(|site, _| sites.contains(site.as_str()));
    ids
}

/// The id after one; zero is none.
fn next(id: u32) -> u32 {
    id.checked_add(1).unwrap_or(1)
}

fn fnv1a(text: &str) -> u32 {
    const BASIS: u32 = 0x811c_9dc5;
    const PRIME: u32 = 0x0100_0193;
    text.bytes().fold(BASIS, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remembered(rows: &[(&str, u32)]) -> BTreeMap<String, u32> {
        rows.iter().map(|(site, id)| ((*site).to_owned(), *id)).collect()
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        for (text, hash) in [("", 0x811c_9dc5), ("a", 0xe40c_292c), ("foobar", 0xbf9c_f968)] {
            assert_eq!(fnv1a(text), hash, "{text:?}");
        }
    }

    /// K-06: server ids are keyed by name.
    #[test]
    fn ids_follow_from_the_names_and_not_from_their_order() {
        let none = BTreeMap::new();
        let ids = server_ids("orders", &["iad", "pdx", "fra"], &none);
        assert_eq!(ids, server_ids("orders", &["fra", "iad", "pdx"], &none));
        assert_eq!(ids["iad"], fnv1a("orders/iad"));
        assert_eq!(ids["pdx"], server_ids("orders", &["pdx"], &none)["pdx"], "the other sites do not matter");
    }

    /// K-06: an id stays when sites come and go.
    #[test]
    fn what_is_remembered_stays_and_is_given_to_nobody_else() {
        let iad = fnv1a("orders/iad");
        // Another site, still there or not, has the id that this one would get.
        for other in ["pdx", "gone"] {
            let ids = server_ids("orders", &["iad", "pdx"], &remembered(&[(other, iad)]));
            assert_eq!(ids["iad"], iad + 1, "{other}");
            assert_eq!(ids.len(), 2);
        }
        let ids = server_ids("orders", &["iad", "pdx"], &remembered(&[("iad", 7), ("pdx", u32::MAX)]));
        assert_eq!((ids["iad"], ids["pdx"]), (7, u32::MAX));
    }

    #[test]
    fn zero_is_no_id() {
        assert_eq!(server_ids("orders", &["iad"], &remembered(&[("iad", 0)]))["iad"], fnv1a("orders/iad"));
    }

    #[test]
    fn after_the_last_id_comes_the_first() {
        let iad = fnv1a("orders/iad");
        assert_eq!((next(7), next(u32::MAX)), (8, 1));
        let chain = remembered(&[("a", iad), ("b", iad + 1), ("c", iad + 2)]);
        assert_eq!(server_ids("orders", &["iad"], &chain)["iad"], iad + 3);
    }
}
