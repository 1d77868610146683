//! A receipt made here, and every way to change it.

use serde_json::{Value, json};
use shoal_protocol::sign;

use super::canon::canonical;
use super::*;
use shoal_host::keys::Key;

use crate::keys;

fn key(name: &str) -> Key {
    let path = std::env::temp_dir().join(format!("shoal-receipt-{}-{name}", std::process::id()));
    let key = keys::from_file(&path).expect("a key");
    let _ = std::fs::remove_file(&path);
    key
}

fn unit(start: u64, len: u64, node: u64, by: &[u64]) -> Value {
    json!({"start": start, "len": len, "node": node, "at": 5, "hash": "0".repeat(64), "size": 4,
        "checkedBy": by, "own": false, "sure": true})
}

fn node(number: u64) -> Value {
    let identity = format!("{number:064x}");
    json!({"node": number, "name": format!("n{number}"), "identity": identity, "class": null})
}

fn receipt(submitter: &Key) -> Value {
    let signed = submitter.sign_code(b"code");
    json!({
        "format": FORMAT, "job": 1, "name": "wave", "owner": "ann", "kind": "map",
        "state": "done", "items": 10,
        "policy": {"verify": "quorum:3", "tolerance": {"dtype": "f32", "abs": "1e-5", "rel": "0", "ulps": 4}},
        "code": {"hash": keys::hash(b"code").to_string(), "signedBy": signed.by.to_string(),
            "signature": signed.signature.to_string()},
        "inputs": [], "output": {"what": "bytes", "hash": keys::hash(b"out").to_string(), "size": 3},
        "submitted": 1, "ended": 9, "nodes": [node(1), node(2), node(3), node(4)],
        "units": [unit(0, 4, 1, &[2, 3]), unit(4, 6, 4, &[2, 1])],
    })
}

fn signed(receipt: Value, by: &Key) -> Value {
    let text = canonical(&receipt).expect("whole numbers");
    let signature = by.sign(&sign::receipt_statement(&keys::hash(text.as_bytes())));
    json!({"receipt": receipt, "key": by.public().to_string(), "signature": signature.to_string()})
}

fn failing(document: &Value, anchor: &Key) -> Vec<&'static str> {
    let checks = checks(document, anchor, &Files::default());
    checks.iter().filter(|it| it.verdict == Verdict::Fails).map(|it| it.what).collect()
}

fn checks(document: &Value, anchor: &Key, files: &Files) -> Vec<Check> {
    let bytes = serde_json::to_vec_pretty(document).expect("JSON");
    let (document, receipt) = Document::parse(&bytes).expect("a receipt");
    let anchor = Anchor { key: anchor.public(), from: "test" };
    document.check(&receipt, Some(&anchor), files).expect("files that can be read")
}

#[test]
fn a_good_receipt_holds_and_any_change_breaks_its_signature() {
    let (coordinator, submitter) = (key("coordinator"), key("submitter"));
    let good = signed(receipt(&submitter), &coordinator);
    assert_eq!(failing(&good, &coordinator), [""; 0]);
    let changes = [
        ("/receipt/units/0/node", json!(4)),
        ("/receipt/units/0/hash", json!("1".repeat(64))),
        ("/receipt/units/1/at", json!(6)),
        ("/receipt/output/hash", json!("2".repeat(64))),
        ("/receipt/policy/verify", json!("none")),
        ("/receipt/policy/tolerance/abs", json!("1")),
        ("/receipt/owner", json!("bob")),
        ("/receipt/nodes/0/identity", json!("f".repeat(64))),
        ("/signature", json!("0".repeat(128))),
        ("/key", json!(submitter.public().to_string())),
    ];
    for (place, value) in changes {
        let mut changed = good.clone();
        *changed.pointer_mut(place).expect(place) = value;
        assert_eq!(failing(&changed, &coordinator).first(), Some(&"signature"), "{place}");
    }
    let forged = signed(receipt(&submitter), &submitter);
    assert_eq!(failing(&forged, &coordinator), ["signature"]);
}

#[test]
fn a_coordinator_that_signs_nonsense_is_caught_too() {
    let (coordinator, submitter) = (key("liar"), key("someone"));
    let with = |place: &str, value: Value| {
        let mut changed = receipt(&submitter);
        *changed.pointer_mut(place).expect(place) = value;
        failing(&signed(changed, &coordinator), &coordinator)
    };
    assert_eq!(with("/units/1/start", json!(3)), ["units"]);
    assert_eq!(with("/units/1/start", json!(5)), ["units"]);
    assert_eq!(with("/units/1/len", json!(5)), ["units"]);
    assert_eq!(with("/units/1/len", json!(u64::MAX)), ["units"]);
    assert_eq!(with("/units/0/node", json!(9)), ["nodes"]);
    assert_eq!(with("/units/0/checkedBy", json!([1, 2])), ["nodes"]);
    assert_eq!(with("/nodes/1", node(1)), ["nodes"]);
    assert_eq!(with("/units/0/checkedBy", json!([2])), ["checking"]);
    let own = |start| {
        let mut unit = unit(start, 10, 1, &[]);
        unit["own"] = json!(true);
        unit
    };
    assert_eq!(with("/units", json!([own(0)])), ["checking"], "one word is not three votes");
    assert_eq!(with("/units/0/sure", json!(false)), ["checking"]);
    assert_eq!(with("/policy/verify", json!("trust me")), ["checking"]);
    assert_eq!(with("/code/hash", json!("a".repeat(64))), ["code"]);
    assert_eq!(with("/code", Value::Null), ["code"]);
    assert_eq!(with("/policy/verify", json!("adaptive")), [""; 0]);
}

#[test]
fn what_nobody_looked_at_is_not_said_to_hold() {
    let (coordinator, submitter) = (key("sampler"), key("asker"));
    let with = |verify: &str, by: &[u64], own: bool| {
        let mut receipt = receipt(&submitter);
        receipt["policy"]["verify"] = json!(verify);
        receipt["units"][0]["checkedBy"] = json!(by);
        receipt["units"][0]["own"] = json!(own);
        let checks = checks(&signed(receipt, &coordinator), &coordinator, &Files::default());
        let check = checks.into_iter().find(|check| check.what == "checking").expect("one");
        (check.verdict, check.text)
    };
    for verify in ["adaptive", "spot:0.1"] {
        let (verdict, text) = with(verify, &[], false);
        assert_eq!(verdict, Verdict::Unknown, "{text}");
        assert!(text.ends_with("2 units: 1 checked by another device; 1 not checked"), "{text}");
        assert_eq!(with(verify, &[2], false).0, Verdict::Holds);
        let (verdict, text) = with(verify, &[], true);
        assert_eq!(verdict, Verdict::Holds);
        assert!(text.ends_with("1 computed by your own devices, not checked"), "{text}");
    }
    let (verdict, text) = with("quorum:3", &[2, 3], false);
    assert_eq!((verdict, text.as_str()), (Verdict::Holds, "quorum:3: 2 units agreed by 3 devices"));
    let (verdict, text) = with("none", &[], false);
    assert_eq!(verdict, Verdict::Unknown, "{text}");
}

#[test]
fn a_receipt_from_before_is_read_with_its_old_words() {
    let unit = json!({"start": 0, "len": 1, "node": 1, "hash": null, "confirmedBy": [2],
        "sure": true, "vouched": true});
    let unit = Unit::deserialize(&unit).expect("a unit");
    assert_eq!((unit.checked_by.as_slice(), unit.own), (&[2][..], true));
}

#[test]
fn numbers_no_result_can_have_are_an_error_not_a_panic() {
    let (coordinator, submitter) = (key("large"), key("larger"));
    let path = std::env::temp_dir().join(format!("shoal-result-{}", std::process::id()));
    std::fs::write(&path, [0; 40]).expect("a result");
    let files = Files { result: Some(path.clone()), ..Files::default() };
    for (place, value) in [
        ("/units/1/start", u64::MAX),
        ("/units/1/start", u64::MAX / 4 + 1),
        ("/units/1/len", u64::MAX),
        ("/items", u64::MAX),
        ("/items", 0),
    ] {
        let mut receipt = receipt(&submitter);
        receipt["output"]["size"] = json!(40);
        *receipt.pointer_mut(place).expect(place) = json!(value);
        let checks = checks(&signed(receipt, &coordinator), &coordinator, &files);
        assert!(checks.iter().any(|it| it.verdict == Verdict::Fails), "{place} {value}");
    }
    std::fs::remove_file(&path).expect("removed");
}

#[test]
fn the_signed_text_has_one_form() {
    let value = json!({"b": [1, null, {"z": true, "a": "x\"\n"}], "a": {}});
    let text = canonical(&value).expect("whole numbers");
    assert_eq!(text, r#"{"a":{},"b":[1,null,{"a":"x\"\n","z":true}]}"#);
    assert_eq!(canonical(&json!({"a": 0.5})), None);
}

#[test]
fn what_is_no_receipt_is_an_error_not_a_panic() {
    for bytes in [&b""[..], b"{}", b"[]", br#"{"receipt":{},"key":"","signature":""}"#] {
        assert!(Document::parse(bytes).is_err());
    }
}
