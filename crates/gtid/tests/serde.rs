//! Every type is a string for serde, and a malformed string is refused with its place.

use bloodraven_gtid::{Gtid, GtidSet, Tag, Uuid};

const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

#[test]
fn values_are_strings() {
    fn check<T>(input: &str, expect: &str)
    where
        T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug,
    {
        let value: T = serde_json::from_value(input.into()).expect(input);
        assert_eq!(serde_json::to_value(&value).expect(input), expect);
        assert_eq!(serde_json::from_value::<T>(expect.into()).expect(expect), value);
    }
    check::<Uuid>(&UUID.to_uppercase(), UUID);
    check::<Tag>("Nightly", "nightly");
    check::<Gtid>(&format!(" {UUID}:T:1"), &format!("{UUID}:t:1"));
    check::<GtidSet>("", "");
    check::<GtidSet>(&format!("{UUID}:2,\n{UUID}:1"), &format!("{UUID}:1-2"));
}

#[test]
fn malformed_strings_are_refused() {
    let check = |json: &str, expect: &str| {
        let error = serde_json::from_str::<GtidSet>(json).expect_err(json);
        assert!(error.to_string().starts_with(expect), "{error}");
    };
    check("\"x\"", "malformed GTID set: expected a hexadecimal digit of a UUID, found 'x' at byte 0");
    check("7", "invalid type: integer `7`, expected the text of a GTID set");
}
