//! What an API server was asked, by its own count. In: its metrics. Out: how often, by verb and resource. Must not: count
//! watches, which are never answered.

use std::collections::BTreeMap;

/// Requests that were answered so far, such as `APPLY services` or `PUT pods/status`.
pub fn requests(metrics: &str) -> BTreeMap<String, f64> {
    let mut counts = BTreeMap::new();
    for line in metrics.lines().filter_map(|line| line.strip_prefix("apiserver_request_total{")) {
        let label = |name: &str| line.split(&format!("{name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
        let (Some(verb), Some(resource)) = (label("verb"), label("resource")) else { continue };
        let count: f64 = line.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0.0);
        if verb != "WATCH" && !resource.is_empty() {
            let what = match label("subresource").unwrap_or_default() {
                "" => format!("{verb} {resource}"),
                sub => format!("{verb} {resource}/{sub}"),
            };
            *counts.entry(what).or_default() += count;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_added_up_and_watches_left_out() {
        let line = |code: &str, resource: &str, sub: &str, verb: &str, count: &str| {
            format!(
                "apiserver_request_total{{code=\"{code}\",resource=\"{resource}\",subresource=\"{sub}\",verb=\"{verb}\"}} {count}\n"
            )
        };
        let metrics = [
            "# HELP apiserver_request_total\n".to_owned(),
            line("200", "services", "", "APPLY", "2"),
            line("201", "services", "", "APPLY", "3"),
            line("200", "pods", "status", "PUT", "1e+03"),
            line("200", "pods", "", "WATCH", "7"),
            line("200", "", "", "GET", "9"),
        ];
        let wanted = [("APPLY services".to_owned(), 5.0), ("PUT pods/status".to_owned(), 1000.0)];
        assert_eq!(requests(&metrics.concat()), BTreeMap::from(wanted));
    }
}
