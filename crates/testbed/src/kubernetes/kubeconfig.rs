//! The kubeconfig of the administrator: what `kubectl` and every Kubernetes client library read.
//!
//! In: the server's address and where its certificates lie. Out: the text of the file. Must not: touch the disk, or
//! know how the server is run.

use std::path::Path;

use serde_json::json;

/// The name of the only cluster, user and context in the file.
const NAME: &str = "testbed";

/// The text of a kubeconfig that names the certificates by path. It is JSON, which every reader of kubeconfigs takes
/// (JSON is YAML) and which leaves no question of quoting.
pub(crate) fn text(url: &str, authority: &Path, certificate: &Path, key: &Path) -> String {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": NAME,
        "clusters": [{"name": NAME, "cluster": {"server": url, "certificate-authority": authority}}],
        "users": [{"name": NAME, "user": {"client-certificate": certificate, "client-key": key}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME, "namespace": "default"}}],
    });
    format!("{config:#}\n")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn parsed() -> Value {
        let text = text(
            "https://127.0.0.1:1234",
            Path::new("/scratch/with \"quotes\" and: colons/ca.crt"),
            Path::new("/scratch/admin.crt"),
            Path::new("/scratch/admin.key"),
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn the_current_context_leads_to_the_server_and_the_administrator() {
        fn check(pointer: &str, expect: &str) {
            assert_eq!(parsed().pointer(pointer).and_then(Value::as_str), Some(expect), "{pointer}");
        }
        check("/kind", "Config");
        check("/current-context", "testbed");
        check("/contexts/0/name", "testbed");
        check("/contexts/0/context/cluster", "testbed");
        check("/contexts/0/context/user", "testbed");
        check("/clusters/0/name", "testbed");
        check("/clusters/0/cluster/server", "https://127.0.0.1:1234");
        check("/users/0/name", "testbed");
        check("/users/0/user/client-certificate", "/scratch/admin.crt");
        check("/users/0/user/client-key", "/scratch/admin.key");
    }

    #[test]
    fn paths_with_yaml_meaning_survive() {
        let authority = parsed().pointer("/clusters/0/cluster/certificate-authority").cloned();
        assert_eq!(authority, Some(Value::from("/scratch/with \"quotes\" and: colons/ca.crt")));
    }
}
