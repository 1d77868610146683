//! What schemas allow, and why some are refused.

use super::*;

fn made(schema: &str) -> Result<Grammar, SchemaError> {
    of(&Json::read(schema).unwrap())
}

fn check(schema: &str, fits: &[&str], others: &[&str]) {
    let (mut machine, start) = Machine::new(made(schema).unwrap());
    let mut accepts = |text: &str| {
        let end = machine.run(start, text.as_bytes());
        end.is_some_and(|state| machine.may_end(state))
    };
    for text in fits {
        assert!(accepts(text), "{schema}: {text}");
    }
    for text in others {
        assert!(!accepts(text), "{schema}: {text}");
    }
}

#[test]
fn values_of_each_type() {
    check(
        "{}",
        &["1", "-0.5e+3", "\"ä€😀\\n\\u00e4\"", "[{}, []]", "null"],
        &["", "01", "+1", "\"\n\"", "[1,]", "nul"],
    );
    check(r#"{"type":"string"}"#, &["\"\"", "\"a b\""], &["\"\\ud83d\"", "\"a", "a"]);
    check(
        r#"{"type":"string","minLength":2,"maxLength":3}"#,
        &["\"ab\"", "\"äöü\""],
        &["\"a\"", "\"abcd\""],
    );
    check(r#"{"type":"integer"}"#, &["0", "-12"], &["1.0", "-", "007"]);
    check(
        r#"{"type":"integer","minimum":-1,"exclusiveMaximum":3}"#,
        &["-1", "0", "2"],
        &["-2", "3"],
    );
    check(r#"{"type":"integer","exclusiveMinimum":0}"#, &["1", "20"], &["0", "-1"]);
    check(r#"{"type":"number","minimum":0}"#, &["0.5", "7"], &["-1"]);
    check(r#"{"type":["boolean","null"]}"#, &["true", "null"], &["0", "\"true\""]);
    check(r#"{"type":["string","null"],"maxLength":1}"#, &["\"a\"", "null"], &["\"ab\""]);
    check(r#"{"enum":["a",1,{"b":[null]}]}"#, &["\"a\"", "1", "{\"b\":[null]}"], &["a", "2"]);
    check(r#"{"const":"x"}"#, &["\"x\""], &["\"y\""]);
    check(
        r#"{"type":"string","format":"date"}"#,
        &["\"2026-11-30\""],
        &["\"2026-11-31\"", "\"2026-02-29\"", "\"2026-1-1\""],
    );
    check(
        r#"{"type":"string","format":"date-time"}"#,
        &["\"2026-11-18T04:08:23Z\"", "\"2026-01-01T23:59:59.5+01:30\""],
        &["\"2026-11-18\"", "\"2026-11-18T24:00:00Z\""],
    );
    check(
        r#"{"type":"string","format":"uuid"}"#,
        &["\"0123abcd-0000-4000-8000-0123456789ab\""],
        &["\"x\""],
    );
}

#[test]
fn objects_and_lists() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"null"},"c":{"type":"boolean"}},"required":["b"],"additionalProperties":false}"#;
    check(
        schema,
        &[
            "{\"b\":null}",
            "{\"a\":1,\"b\":null}",
            "{\"b\":null,\"c\":true}",
            "{\n  \"a\": 1,\n  \"b\": null\n}",
        ],
        &[
            "{}",
            "{\"a\":1}",
            "{\"b\":null,\"a\":1}",
            "{\"b\":null,\"d\":1}",
            "{,\"b\":null}",
            "{\"a\":1\"b\":null}",
        ],
    );
    check(
        r#"{"type":"object","additionalProperties":{"type":"integer"}}"#,
        &["{}", "{\"x\":1,\"y\":2}"],
        &["{\"x\":true}"],
    );
    check(r#"{"type":"object","required":["x"]}"#, &["{\"x\":[1]}"], &["{}"]);
    check(
        r#"{"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":2}"#,
        &["[1]", "[1, 2]"],
        &["[]", "[1,2,3]", "[true]"],
    );
    check(r#"{"type":"array","items":{"type":"integer"},"maxItems":0}"#, &["[]"], &["[1]"]);
    check(
        r#"{"type":"array","prefixItems":[{"type":"integer"},{"type":"null"}],"minItems":2,"maxItems":2}"#,
        &["[1,null]"],
        &["[1]", "[null,1]"],
    );
    let tree = r##"{"$defs":{"node":{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["next"]}},"$ref":"#/$defs/node"}"##;
    check(tree, &["{\"next\":null}", "{\"next\":{\"next\":null}}"], &["{}", "{\"next\":{}}"]);
    let either = r#"{"oneOf":[{"type":"object","properties":{"t":{"const":"a"}},"required":["t"]},{"type":"object","properties":{"t":{"const":"b"},"n":{"type":"integer"}},"required":["t"]},{"type":"string"}]}"#;
    check(
        either,
        &["{\"t\":\"a\"}", "{\"t\":\"b\",\"n\":1}", "\"x\""],
        &["{\"t\":\"a\",\"n\":1}", "{}"],
    );
}

#[test]
fn what_cannot_be_kept_to_is_named() {
    for (schema, named) in [
        (r#"{"type":"string","pattern":"a+"}"#, "#: \"pattern\" is not supported"),
        (
            r#"{"type":"object","properties":{"a":{"not":{}}}}"#,
            "#/properties/a: expected a \"type\"",
        ),
        (r#"{"type":"text"}"#, "#: expected object, array, string"),
        (r##"{"$ref":"#/$defs/x"}"##, "#/$defs/x is not in the schema"),
        (r##"{"$ref":"#"}"##, "no JSON fits the schema"),
        (r#"{"type":"array","minItems":3,"maxItems":2}"#, "#: expected a least bound"),
        (r#"{"type":"string","maxLength":-1}"#, "#/maxLength: expected 0 to 10000"),
        (r#"{"oneOf":[{"type":"integer"},{"type":"number"}]}"#, "oneOf of schemas that"),
        (r#"{"enum":[]}"#, "#: expected 1 to 1000 values"),
        (r#"{"type":"string","format":"email"}"#, "the format \"email\""),
        (r#"{"type":"string","enum":["a",1]}"#, "#: expected values of the type"),
        (r#"{"type":"string","anyOf":[{"type":"integer"}]}"#, "\"type\" is not supported"),
        (
            r#"{"type":"object","properties":{},"required":["x"],"additionalProperties":false}"#,
            "#: expected only names of properties",
        ),
        (
            r#"{"oneOf":[{"type":"object","properties":{"t":{"const":1}},"required":["t"]},{"type":"object","properties":{"u":{"const":1}},"required":["u"]}]}"#,
            "oneOf of schemas that",
        ),
        ("[]", "#: expected a schema: an object"),
    ] {
        let error = made(schema).unwrap_err().to_string();
        assert!(error.contains(named), "{schema}: {error}");
    }
}

#[test]
fn a_long_row_of_names_is_refused_and_not_followed_for_ever() {
    let each = |at: u32| format!(r##""d{at}":{{"$ref":"#/$defs/d{}"}}"##, at + 1);
    let row: Vec<String> = (0..2000).map(each).collect();
    let schema = format!(
        r##"{{"$defs":{{{},"d2000":{{"type":"null"}}}},"$ref":"#/$defs/d0"}}"##,
        row.join(",")
    );
    assert_eq!(made(&schema).unwrap_err(), SchemaError::Large);
}
