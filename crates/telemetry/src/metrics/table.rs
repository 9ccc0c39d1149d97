//! From rows to a set: the macro that makes the table, the handles and the registration of one row agree.
//!
//! In: rows `kind method = "name" [label: type, …] (buckets) "help";`. Out: a struct with a method per row, the tables behind
//! it, and the catalogue. Must not: leave room for a name that is written twice.

/// Its name; `loop` has to be written `r#loop` in code.
pub(super) const fn bare(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

macro_rules! buckets {
    () => {
        &[]
    };
    ($buckets:expr) => {
        $buckets
    };
}

macro_rules! kind {
    (counter) => {
        $crate::metrics::series::Kind::Counter
    };
    (seconds) => {
        $crate::metrics::series::Kind::Counter
    };
    (gauge) => {
        $crate::metrics::series::Kind::Gauge
    };
    (real) => {
        $crate::metrics::series::Kind::Gauge
    };
    (histogram) => {
        $crate::metrics::series::Kind::Histogram
    };
}

macro_rules! handle {
    (counter) => {
        $crate::metrics::Counter
    };
    (seconds) => {
        $crate::metrics::Seconds
    };
    (gauge) => {
        $crate::metrics::Gauge
    };
    (real) => {
        $crate::metrics::Real
    };
    (histogram) => {
        $crate::metrics::Histogram
    };
}

macro_rules! make {
    (histogram) => {
        |buckets: &'static [f64]| $crate::metrics::Histogram::new(buckets.iter().copied())
    };
    ($other:ident) => {
        |_: &'static [f64]| Default::default()
    };
}

macro_rules! metric_set {
    (
        $(#[$meta:meta])*
        pub struct $set:ident, $tables:ident, $catalogue:ident in $scope:ident {
            $( $kind:ident $method:ident = $name:literal [$($label:ident: $ty:ty),*] $(buckets $buckets:expr,)? $help:literal; )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub struct $set {
            prefix: Vec<std::sync::Arc<str>>,
            tables: std::sync::Arc<$tables>,
        }

        #[derive(Debug)]
        pub(super) struct $tables {
            $( $method: $crate::metrics::series::Series<handle!($kind)>, )+
        }

        /// Every row.
        pub(super) static $catalogue: [$crate::metrics::series::MetricSpec; [$(stringify!($method)),+].len()] = [
            $( $crate::metrics::series::MetricSpec {
                name: concat!("bloodraven_", $name),
                kind: kind!($kind),
                scope: $crate::metrics::series::Scope::$scope,
                labels: &[$( $crate::metrics::series::LabelSpec {
                    name: $crate::metrics::table::bare(stringify!($label)),
                    values: <$ty as $crate::words::LabelValue>::VALUES,
                } ),*],
                buckets: buckets!($($buckets)?),
                help: $help,
            }, )+
        ];

        impl $tables {
            /// Puts every row into the registry.
            pub(super) fn register(registry: &mut prometheus_client::registry::Registry) -> std::sync::Arc<Self> {
                let [$($method),+] = &$catalogue;
                $( let $method = $crate::metrics::series::Series::new($method, make!($kind)); )+
                $( $method.register(registry); )+
                std::sync::Arc::new(Self { $( $method, )+ })
            }
        }

        impl $set {
            pub(super) const fn under(prefix: Vec<std::sync::Arc<str>>, tables: std::sync::Arc<$tables>) -> Self {
                Self { prefix, tables }
            }

            /// Takes away every series of this set that has all these labels with these values.
            pub fn remove(&self, wanted: &[(&str, &str)]) {
                $( self.tables.$method.remove(&self.prefix, wanted); )+
            }

            /// The same for one metric, named without the prefix `bloodraven_`.
            pub fn remove_from(&self, metric: &str, wanted: &[(&str, &str)]) {
                $( if self.tables.$method.is_named(metric) { self.tables.$method.remove(&self.prefix, wanted); } )+
            }

            $(
                #[doc = concat!("`bloodraven_", $name, "`: ", $help)]
                pub fn $method(&self $(, $label: $ty)*) -> handle!($kind) {
                    self.tables.$method.of(&self.prefix, &[$( $crate::words::LabelValue::text(&$label) ),*])
                }
            )+
        }
    };
}

pub(super) use {buckets, handle, kind, make, metric_set};
