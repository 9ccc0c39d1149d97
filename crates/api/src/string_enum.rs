//! One list of words makes an enum, its texts, its serde form and its schema.
//!
//! In: variants with the words that users see. Out: `as_str`, `ALL`, `Display`, `FromStr`, serde and a schema `enum`,
//! all from that list, so that no word is written twice. Must not: accept a word that is not in the list.

use snafu::Snafu;

/// A word that the enum does not know.
#[derive(Debug, Snafu, PartialEq, Eq)]
#[snafu(display("{given:?} is no {what}; write one of: {}", allowed.join(", ")))]
pub struct UnknownWord {
    /// What was given.
    pub given: String,
    /// Name of the enum.
    pub what: &'static str,
    /// The words there are.
    pub allowed: Vec<&'static str>,
}

/// Declares an enum whose variants are words on the wire.
macro_rules! string_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $( $(#[$variant_meta:meta])* $variant:ident = $text:literal ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $( $(#[$variant_meta])* #[doc = concat!("(`", $text, "`)")] $variant ),+
        }

        impl $name {
            /// Every variant, in declared order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $( Self::$variant => $text ),+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::string_enum::UnknownWord;

            fn from_str(given: &str) -> Result<Self, Self::Err> {
                match given {
                    $( $text => Ok(Self::$variant), )+
                    _ => Err($crate::string_enum::UnknownWord {
                        given: given.to_owned(),
                        what: stringify!($name),
                        allowed: vec![$($text),+],
                    }),
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let given = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                given.parse().map_err(serde::de::Error::custom)
            }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": [$($text),+] })
            }
        }
    };
}

pub(crate) use string_enum;

#[cfg(test)]
mod tests {
    use crate::group::AccessMode;
    use crate::group::status::RecoveryState;

    #[test]
    fn words_go_in_and_out_and_strangers_are_refused() {
        assert_eq!(AccessMode::ALL, [AccessMode::ReadWriteOncePod, AccessMode::ReadWriteOnce]);
        assert_eq!(serde_json::to_string(&AccessMode::ReadWriteOnce).expect("json"), "\"ReadWriteOnce\"");
        assert_eq!(serde_json::from_str::<RecoveryState>("\"\"").expect("json"), RecoveryState::None);
        assert_eq!("RecoveryBlocked".parse::<RecoveryState>(), Ok(RecoveryState::RecoveryBlocked));
        let refusal = "rwo".parse::<AccessMode>().expect_err("no such word").to_string();
        assert_eq!(refusal, "\"rwo\" is no AccessMode; write one of: ReadWriteOncePod, ReadWriteOnce");
    }
}
