//! Calls by name and JSON, on a fake host.

use super::*;
use crate::contract::{Level, Memory, Origin};
use crate::fake::{FakeHost, LEVELS, NOW, memory};
use crate::moment::DAY;
use proptest::prelude::*;
use serde_json::{Value, json};

fn call(host: &FakeHost, name: &str, arguments: &str) -> Result<String, ToolError> {
    invoke(&Tools::new(host), name, arguments)
}

fn answer(host: &FakeHost, name: &str, arguments: Value) -> Value {
    let text = call(host, name, &arguments.to_string()).unwrap();
    let value = serde_json::from_str(&text).unwrap();
    valid(&schema(name, |tool| &tool.output_schema), &value).unwrap();
    value
}

fn error(host: &FakeHost, name: &str, arguments: &str) -> (String, String) {
    let error = call(host, name, arguments).unwrap_err();
    (error.code, error.message)
}

fn schema(name: &str, of: impl Fn(&Tool) -> &String) -> Value {
    let tool = describe()
        .into_iter()
        .find(|tool| tool.name == name)
        .unwrap();
    serde_json::from_str(of(&tool)).unwrap()
}

/// As much of JSON Schema as the schemas here use.
fn valid(schema: &Value, value: &Value) -> Result<(), String> {
    let fail = |why: &str| Err(format!("{why}: {value} against {schema}"));
    for word in schema.as_object().unwrap().keys() {
        let known = [
            "type",
            "enum",
            "properties",
            "required",
            "items",
            "additionalProperties",
            "minimum",
            "maximum",
            "minLength",
            "description",
            "default",
        ];
        assert!(known.contains(&word.as_str()), "unknown keyword {word}");
    }
    if let Some(kinds) = schema.get("type") {
        let is = |kind: &Value| match kind.as_str().unwrap() {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "string" => value.is_string(),
            "number" => value.is_number(),
            "integer" => value.is_i64() || value.is_u64(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            other => panic!("{other}"),
        };
        if !kinds
            .as_array()
            .map_or_else(|| is(kinds), |kinds| kinds.iter().any(is))
        {
            return fail("type");
        }
    }
    if let Some(Value::Array(allowed)) = schema.get("enum")
        && !allowed.contains(value)
    {
        return fail("enum");
    }
    if let (Some(least), Some(number)) = (schema.get("minimum"), value.as_f64())
        && number < least.as_f64().unwrap()
    {
        return fail("minimum");
    }
    if let Value::Array(items) = value
        && let Some(schema) = schema.get("items")
    {
        items.iter().try_for_each(|item| valid(schema, item))?;
    }
    if let Value::Object(members) = value {
        for name in schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            if !members.contains_key(name.as_str().unwrap()) {
                return fail("required");
            }
        }
        // Clients accept more; here every member is to be described.
        for (name, member) in members {
            match schema.get("properties").and_then(|all| all.get(name)) {
                Some(schema) => valid(schema, member)?,
                None => return fail("undescribed member"),
            }
        }
    }
    Ok(())
}

mod describing {
    use super::*;

    #[test]
    fn every_tool_is_described_by_schemas_that_are_objects() {
        let tools = describe();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, description::NAMES);
        for tool in &tools {
            for text in [&tool.input_schema, &tool.output_schema] {
                let schema: Value = serde_json::from_str(text).unwrap();
                assert_eq!(schema["type"], "object", "{}", tool.name);
                assert!(schema.get("$schema").is_none());
            }
            let input: Value = serde_json::from_str(&tool.input_schema).unwrap();
            assert_eq!(input["additionalProperties"], false);
            for ignored in ignored::ARGUMENTS {
                assert!(input["properties"].get(ignored).is_none());
            }
            for (_, argument) in input["properties"].as_object().unwrap() {
                assert!(argument.get("description").is_some());
            }
        }
    }

    #[test]
    fn only_reading_tools_are_read_only_and_only_delete_is_destructive() {
        for tool in describe() {
            let writes =
                ["memory_save", "memory_delete", "memory_confirm"].contains(&tool.name.as_str());
            assert_eq!(tool.read_only, !writes);
            assert_eq!(tool.destructive, tool.name == "memory_delete");
        }
    }

    #[test]
    fn bounds_are_those_that_are_checked() {
        let search = schema("memory_search", |tool| &tool.input_schema);
        let list = schema("memory_list", |tool| &tool.input_schema);
        let review = schema("memory_review", |tool| &tool.input_schema);
        for (schema, limit) in [
            (&search["properties"]["max_results"], SEARCH_LIMIT),
            (&list["properties"]["limit"], LIST_LIMIT),
            (&review["properties"]["limit"], REVIEW_LIMIT),
            (&review["properties"]["older_than_days"], REVIEW_DAYS),
        ] {
            assert_eq!(schema["minimum"], limit.least);
            assert_eq!(schema["maximum"], limit.most);
            assert_eq!(schema["default"], limit.otherwise);
        }
        let save = describe().remove(0).input_schema;
        assert!(save.contains(&format!("{} bytes", validate::KEY_BYTES)));
        assert!(save.contains(&format!("{} KiB", validate::CONTENT_BYTES / 1024)));
        assert!(save.contains(&format!("At most {} labels", validate::TAGS)));
        assert!(save.contains(&format!("{} characters", validate::TAG_CHARS)));
        assert!(save.contains(&format!("At most {} KiB", validate::SOURCE_BYTES / 1024)));
        assert!(save.contains(&format!("at most {}, that this", validate::SUPERSEDES)));
    }

    #[test]
    fn the_block_for_a_prompt_is_no_tool() {
        assert!(!description::NAMES.contains(&"memory_context"));
        let host = FakeHost::new(Level::Public);
        assert_eq!(error(&host, "memory_context", "{}").0, "unknown_tool");
    }

    #[test]
    fn the_arguments_of_a_schema_are_those_that_are_taken() {
        let host = FakeHost::new(Level::Public);
        for tool in describe() {
            let input: Value = serde_json::from_str(&tool.input_schema).unwrap();
            let (_, message) = error(&host, &tool.name, r#"{"nonsense": 1}"#);
            let names: Vec<&str> = input["properties"]
                .as_object()
                .unwrap()
                .keys()
                .map(String::as_str)
                .collect();
            let listed = if names.is_empty() {
                "It takes no arguments.".to_owned()
            } else {
                format!("Its arguments are {}.", names.join(", "))
            };
            assert!(message.contains(&listed), "{message}");
        }
    }

    #[test]
    fn instructions_name_tools_that_there_are() {
        let text = instructions();
        for word in text.split(|c: char| !(c.is_ascii_lowercase() || c == '_')) {
            if word.starts_with("memory_") && word != "memory_" {
                assert!(description::NAMES.contains(&word), "{word}");
            }
        }
        assert!(text.lines().count() <= 30);
    }
}

mod answering {
    use super::*;

    #[test]
    fn members_stand_in_the_documented_order() {
        let mut host = FakeHost::new(Level::Internal);
        host.put_memory(Memory {
            origin: Origin::User,
            ..memory(Level::Public, "k", "low")
        });
        assert_eq!(
            call(
                &host,
                "memory_save",
                r#"{"key":" k ","content":"red","tags":["t"],"source":"me"}"#
            )
            .unwrap(),
            r#"{"saved":true,"outcome":"created","key":"k","classification":"INTERNAL","origin":"AGENT","standing":"trusted","version":1,"notices":["Sessions below INTERNAL will not see this memory."]}"#
        );
        let dates = r#""created_at":"2026-11-30T01:03:59.000Z","updated_at":"2026-11-30T01:03:59.000Z","confirmed_at":null,"expires_at":null,"age_days":0"#;
        let conflict = r#""conflict":{"classification":"PUBLIC","origin":"USER"}"#;
        let middle = r#""classification":"INTERNAL","tags":["t"],"origin":"AGENT","standing":"trusted","source":"me","version":1"#;
        assert_eq!(
            call(&host, "memory_get", r#"{"key":"k "}"#).unwrap(),
            format!(r#"{{"found":true,"key":"k","content":"red",{middle},{dates},{conflict}}}"#)
        );
        assert_eq!(
            call(&host, "memory_get", r#"{"key":" cafe\u0301 "}"#).unwrap(),
            "{\"found\":false,\"key\":\"caf\u{e9}\"}"
        );
        assert_eq!(
            call(&host, "memory_list", "{}").unwrap(),
            format!(
                r#"{{"memories":[{{"key":"k","content":"red","content_truncated":false,{middle},{dates},{conflict}}}],"next_cursor":null,"truncated":false}}"#
            )
        );
        assert_eq!(
            call(&host, "memory_search", r#"{"query":"red"}"#).unwrap(),
            format!(
                r#"{{"results":[{{"key":"k","content":"red","content_truncated":false,{middle},{dates},"score":1.0,"snippet":"red",{conflict}}}],"query":"red","truncated":false}}"#
            )
        );
        assert_eq!(
            call(&host, "memory_status", "").unwrap(),
            r#"{"session":"work","classification":"INTERNAL","clearance":"RESTRICTED","origin":"AGENT","shelves":[{"classification":"INTERNAL","live":1,"pending":0,"quarantined":0,"unconfirmed":0,"tags":[{"tag":"t","count":1}]},{"classification":"PUBLIC","live":1,"pending":0,"quarantined":0,"unconfirmed":0,"tags":[]}]}"#
        );
        assert_eq!(
            call(&host, "memory_delete", r#"{"key":"k"}"#).unwrap(),
            r#"{"deleted":true,"key":"k","classification":"INTERNAL","still_visible":"PUBLIC","notices":["The PUBLIC version of this key is visible now. To hide it as well, call memory_delete again with hide_lower."]}"#
        );
        host.taint = Level::Public;
        assert_eq!(
            call(&host, "memory_delete", r#"{"key":"k"}"#).unwrap(),
            r#"{"deleted":true,"key":"k","classification":"PUBLIC","still_visible":null}"#
        );
    }

    #[test]
    fn members_of_what_keeps_memories_fresh_stand_in_the_documented_order() {
        let mut host = FakeHost::new(Level::Public).with(Level::Public, "old", "low");
        host.now += 100 * DAY;
        let mut host = host.at(Level::Internal);
        assert_eq!(
            call(
                &host,
                "memory_save",
                r#"{"key":"k","content":"red","source":"me","expires_in":"7d","supersedes":["old"]}"#
            )
            .unwrap(),
            r#"{"saved":true,"outcome":"created","key":"k","classification":"INTERNAL","origin":"AGENT","standing":"trusted","version":1,"notices":["Sessions below INTERNAL will not see this memory.","Sessions below INTERNAL still see what it takes the place of."]}"#
        );
        let middle = r#""tags":[],"origin":"AGENT","standing":"trusted","source":"me""#;
        let dates = r#""created_at":"2027-03-10T01:03:59.000Z","updated_at":"2027-03-10T01:03:59.000Z","confirmed_at":null,"expires_at":"2027-03-17T01:04:00.000Z","age_days":0"#;
        assert_eq!(
            call(&host, "memory_history", r#"{"key":" k "}"#).unwrap(),
            format!(
                r#"{{"key":"k","versions":[{{"key":"k","content":"red","content_truncated":false,"classification":"INTERNAL",{middle},"version":1,{dates},"current":true,"superseded_at":null,"superseded_by":null,"supersedes":["old"]}}],"truncated":false}}"#
            )
        );
        assert_eq!(
            call(&host, "memory_history", r#"{"key":"old"}"#).unwrap(),
            r#"{"key":"old","versions":[{"key":"old","content":"low","content_truncated":false,"classification":"PUBLIC","tags":[],"origin":"AGENT","standing":"trusted","source":null,"version":1,"created_at":"2026-11-30T01:03:59.000Z","updated_at":"2026-11-30T01:03:59.000Z","confirmed_at":null,"expires_at":null,"age_days":100,"current":false,"superseded_at":"2027-03-10T01:04:00.000Z","superseded_by":"k","supersedes":[]}],"truncated":false}"#
        );
        assert_eq!(
            call(&host, "memory_history", r#"{"key":"none"}"#).unwrap(),
            r#"{"key":"none","versions":[],"truncated":false}"#
        );
        assert_eq!(
            call(&host, "memory_review", "").unwrap(),
            r#"{"memories":[],"more":false,"truncated":false}"#
        );
        assert_eq!(
            call(&host, "memory_review", r#"{"older_than_days":0,"limit":1}"#).unwrap(),
            format!(
                r#"{{"memories":[{{"key":"k","content":"red","content_truncated":false,"classification":"INTERNAL",{middle},"session":"s","version":1,{dates}}}],"more":false,"truncated":false}}"#
            )
        );
        assert_eq!(
            call(&host, "memory_confirm", r#"{"key":"k ","source":"me"}"#).unwrap(),
            r#"{"confirmed":true,"key":"k","classification":"INTERNAL","confirmed_at":"2027-03-10T01:04:00.000Z","notices":["It still expires at 2027-03-17T01:04:00.000Z. To keep it longer, save it again."]}"#
        );
        host.taint = Level::Public;
        assert_eq!(
            call(&host, "memory_confirm", r#"{"key":"old"}"#).unwrap(),
            r#"{"confirmed":true,"key":"old","classification":"PUBLIC","confirmed_at":"2027-03-10T01:04:00.000Z"}"#
        );
    }

    #[test]
    fn every_answer_fits_its_schema() {
        for taint in LEVELS {
            let mut host = FakeHost::new(taint);
            for level in LEVELS {
                host.put_memory(memory(level, "k", &"red ".repeat(1000)));
            }
            for standing in [
                crate::contract::Standing::Trusted,
                crate::contract::Standing::Pending,
                crate::contract::Standing::Quarantined,
            ] {
                host.standing = standing;
                answer(
                    &host,
                    "memory_save",
                    json!({"key": "s", "content": "c", "level": "PUBLIC"}),
                );
            }
            let get = answer(&host, "memory_get", json!({"key": "k", "origin": "USER"}));
            assert_eq!(get["content"].as_str().unwrap().len(), 4000);
            answer(&host, "memory_get", json!({"key": "none", "taint": null}));
            let list = answer(&host, "memory_list", json!({"level": 1}));
            assert_eq!(list["memories"][0]["content"].as_str().unwrap().len(), 1024);
            assert_eq!(list["memories"][0]["content_truncated"], true);
            let search = answer(&host, "memory_search", json!({"query": "red", "level": 1}));
            assert_eq!(search["results"][0]["content_truncated"], true);
            assert_eq!(search["results"][0]["snippet"].as_str().unwrap().len(), 240);
            answer(&host, "memory_status", json!({"classification": "PUBLIC"}));
            let review = answer(
                &host,
                "memory_review",
                json!({"older_than_days": 0, "level": 1}),
            );
            assert_eq!(review["memories"][0]["content_truncated"], true);
            answer(&host, "memory_confirm", json!({"key": "k", "level": 1}));
            answer(
                &host,
                "memory_save",
                json!({"key": "t", "content": "c", "supersedes": ["s"]}),
            );
            for key in ["k", "s", "t", "none"] {
                let history = answer(&host, "memory_history", json!({"key": key, "level": 1}));
                let versions = history["versions"].as_array().unwrap();
                assert_eq!(versions.is_empty(), key == "none");
            }
            answer(
                &host,
                "memory_delete",
                json!({"key": "k", "level": "PUBLIC"}),
            );
        }
    }

    #[test]
    fn instants_of_no_calendar_are_shown_as_the_nearest() {
        let host = FakeHost::new(Level::Public);
        host.put_memory(Memory {
            created_at: i64::MIN,
            updated_at: i64::MAX,
            confirmed_at: Some(0),
            expires_at: Some(-1),
            ..memory(Level::Public, "k", "c")
        });
        let get = answer(&host, "memory_get", json!({"key": "k"}));
        assert!(get["created_at"].as_str().unwrap().starts_with("-009999"));
        assert!(get["updated_at"].as_str().unwrap().starts_with("9999-12"));
        assert_eq!(get["confirmed_at"], "1970-01-01T00:00:00.000Z");
        assert_eq!(get["expires_at"], "1969-12-31T23:59:59.999Z");
        assert_eq!(get["age_days"], NOW / 86_400_000);
    }

    #[test]
    fn a_hostile_host_gets_nothing_above_the_taint_into_an_answer() {
        for taint in LEVELS {
            let mut host = FakeHost::new(taint);
            host.hostile = true;
            for (i, level) in LEVELS.into_iter().enumerate() {
                let content = format!("word {}", ["P0", "I1", "C2", "R3"][i]);
                for key in ["k", &format!("own {i}")] {
                    host.put_memory(Memory {
                        tags: vec![format!("tag{i}")],
                        ..memory(level, key, &content)
                    });
                }
            }
            let mut answers = String::new();
            for (tool, arguments) in [
                ("memory_get", json!({"key": "k"})),
                ("memory_get", json!({"key": "own 3"})),
                ("memory_list", json!({})),
                ("memory_list", json!({"tags": ["tag1", "tag2", "tag3"]})),
                (
                    "memory_search",
                    json!({"query": "word P0 I1 C2 R3", "max_results": 100}),
                ),
                ("memory_status", json!({})),
                ("memory_confirm", json!({"key": "k"})),
                ("memory_confirm", json!({"key": "own 3"})),
                ("memory_review", json!({"older_than_days": 0})),
                ("memory_history", json!({"key": "k"})),
                ("memory_history", json!({"key": "own 3"})),
                (
                    "memory_save",
                    json!({"key": "new", "content": "c", "supersedes": ["own 3"]}),
                ),
                ("memory_delete", json!({"key": "own 3"})),
                ("memory_delete", json!({"key": "own 3", "hide_lower": true})),
            ] {
                answers += &match call(&host, tool, &arguments.to_string()) {
                    Ok(text) => text,
                    Err(error) => error.message,
                };
            }
            let answers = answers
                .replace("\"clearance\":\"RESTRICTED\"", "")
                .replace("word P0 I1 C2 R3", "");
            for (i, level) in LEVELS.into_iter().enumerate() {
                let above = i > taint as usize;
                for word in [
                    ["P0", "I1", "C2", "R3"][i],
                    crate::classification::name(level),
                ] {
                    assert!(
                        !(above && answers.contains(word)),
                        "{word} at {taint:?}: {answers}"
                    );
                }
            }
        }
    }
}

mod ignoring {
    use super::*;

    #[test]
    fn ignored_arguments_are_noted_and_noticed_first_in_a_fixed_order() {
        let host = FakeHost::new(Level::Internal);
        let arguments = r#"{"origin":"USER","key":"k","taint":null,"level":["x"],"content":"c","classification":"PUBLIC"}"#;
        let saved: Value =
            serde_json::from_str(&call(&host, "memory_save", arguments).unwrap()).unwrap();
        let notices: Vec<&str> = saved["notices"]
            .as_array()
            .unwrap()
            .iter()
            .map(|n| n.as_str().unwrap())
            .collect();
        let expected: Vec<String> = ["classification", "level", "taint", "origin"]
            .map(ignored::notice)
            .to_vec();
        assert_eq!(notices[..4], expected);
        assert_eq!(notices.len(), 6);
        assert_eq!(saved["classification"], "INTERNAL");
        assert_eq!(
            host.calls()[..4],
            [
                "note classification",
                "note level",
                "note taint",
                "note origin"
            ]
        );
    }

    #[test]
    fn the_notice_is_the_last_member_and_the_rest_is_the_same() {
        let host = FakeHost::new(Level::Public).with(Level::Public, "k", "red");
        for (tool, plain, with) in [
            ("memory_get", r#"{"key":"k"}"#, r#"{"key":"k","level":1}"#),
            ("memory_get", r#"{"key":"z"}"#, r#"{"level":1,"key":"z"}"#),
            ("memory_list", "{}", r#"{"level":1}"#),
            (
                "memory_search",
                r#"{"query":"red"}"#,
                r#"{"query":"red","level":1}"#,
            ),
            ("memory_status", "", r#"{"level":1}"#),
            (
                "memory_review",
                r#"{"older_than_days":0}"#,
                r#"{"older_than_days":0,"level":1}"#,
            ),
            (
                "memory_history",
                r#"{"key":"k"}"#,
                r#"{"key":"k","level":1}"#,
            ),
            (
                "memory_history",
                r#"{"key":"z"}"#,
                r#"{"key":"z","level":1}"#,
            ),
            (
                "memory_confirm",
                r#"{"key":"k"}"#,
                r#"{"key":"k","level":1}"#,
            ),
        ] {
            let plain = call(&host, tool, plain).unwrap();
            let notices = format!(",\"notices\":{}}}", json!([ignored::notice("level")]));
            let expected = format!("{}{notices}", plain.strip_suffix('}').unwrap());
            assert_eq!(call(&host, tool, with).unwrap(), expected);
        }
    }

    #[test]
    fn an_error_has_no_notice_but_the_note_is_made() {
        let host = FakeHost::new(Level::Public);
        let (code, message) = error(&host, "memory_get", r#"{"level":1}"#);
        assert_eq!(code, "invalid_argument");
        assert!(!message.contains("ignored"));
        assert_eq!(host.calls(), ["note level"]);
        // Nested names are the caller's own.
        let (_, message) = error(&host, "memory_get", r#"{"key":{"level":1}}"#);
        assert!(message.contains("key is an object"), "{message}");
        assert_eq!(host.calls(), ["note level"]);
    }
}

mod refusing {
    use super::*;

    #[test]
    fn errors_say_what_was_wrong_what_is_allowed_and_what_to_do() {
        let host = FakeHost::new(Level::Public);
        for (tool, arguments, code, what) in [
            (
                "memory_forget",
                "{}",
                "unknown_tool",
                "There is no tool \"memory_forget\". The tools are memory_save, memory_get",
            ),
            (
                "memory_get",
                "",
                "invalid_argument",
                "key is missing. memory_get needs key, a text.",
            ),
            ("memory_get", "{}", "invalid_argument", "key is missing."),
            (
                "memory_get",
                "[]",
                "invalid_argument",
                "The arguments are an array.",
            ),
            (
                "memory_get",
                "null",
                "invalid_argument",
                "The arguments are null.",
            ),
            (
                "memory_get",
                r#"{"key":null}"#,
                "invalid_argument",
                "key is null. key is a text.",
            ),
            (
                "memory_get",
                r#"{"key":5}"#,
                "invalid_argument",
                "key is the number 5.",
            ),
            (
                "memory_get",
                r#"{"key":" "}"#,
                "invalid_argument",
                "key is empty.",
            ),
            (
                "memory_get",
                r#"{"key":"a","Key":"b"}"#,
                "invalid_argument",
                "memory_get has no argument \"Key\". Its arguments are key.",
            ),
            (
                "memory_get",
                r#"{"key":"a","key":"b"}"#,
                "invalid_argument",
                "the name \"key\" is there twice at line 1 column 16",
            ),
            (
                "memory_get",
                r#"{"key":"a","x":[{"y":1,"y":2}]}"#,
                "invalid_argument",
                "the name \"y\" is there twice",
            ),
            (
                "memory_get",
                r#"{"key":"a","k\u0065y":"b"}"#,
                "invalid_argument",
                "is there twice",
            ),
            (
                "memory_get",
                r#"{"key":"\ud800"}"#,
                "invalid_argument",
                "line 1 column",
            ),
            (
                "memory_get",
                r#"{"\udc00":1}"#,
                "invalid_argument",
                "line 1 column",
            ),
            (
                "memory_get",
                r#"{"key":"a"} x"#,
                "invalid_argument",
                "trailing characters at line 1 column 13",
            ),
            ("memory_get", r#"{"key":"#, "invalid_argument", "EOF"),
            (
                "memory_get",
                r#"{"key":1e999}"#,
                "invalid_argument",
                "out of range",
            ),
            (
                "memory_search",
                r#"{"query":""}"#,
                "invalid_argument",
                "query is blank.",
            ),
            (
                "memory_search",
                r#"{"query":"a","max_results":"5"}"#,
                "invalid_argument",
                "max_results is the text \"5\". max_results is a whole number. Pass the number without quotes.",
            ),
            (
                "memory_search",
                r#"{"query":"a","max_results":0}"#,
                "invalid_argument",
                "max_results is 0. It is a whole number from 1 to 100",
            ),
            (
                "memory_search",
                r#"{"query":"a","max_results":-3}"#,
                "invalid_argument",
                "max_results is -3.",
            ),
            (
                "memory_search",
                r#"{"query":"a","max_results":5.5}"#,
                "invalid_argument",
                "max_results is 5.5.",
            ),
            (
                "memory_search",
                r#"{"query":"a","max_results":1e300}"#,
                "invalid_argument",
                "from 1 to 100",
            ),
            (
                "memory_list",
                r#"{"limit":201}"#,
                "invalid_argument",
                "from 1 to 200",
            ),
            (
                "memory_list",
                r#"{"limit":99999999999999999999}"#,
                "invalid_argument",
                "from 1 to 200",
            ),
            (
                "memory_list",
                r#"{"tag":"a","tags":["b"]}"#,
                "invalid_argument",
                "tag and tags are both given.",
            ),
            (
                "memory_list",
                r#"{"match":"ALL"}"#,
                "invalid_argument",
                "match is \"ALL\". match is \"any\" or \"all\"",
            ),
            (
                "memory_list",
                r#"{"tags":"a,b"}"#,
                "invalid_argument",
                "tags is a text that is not a JSON array: \"a,b\". tags is an array of texts. Pass an array, such as [\"a,b\"].",
            ),
            (
                "memory_list",
                r#"{"tags":" "}"#,
                "invalid_argument",
                "Leave tags out, or pass an array, such as [\"ops\"].",
            ),
            (
                "memory_list",
                r#"{"limit":1e400}"#,
                "invalid_argument",
                "number out of range at line 1 column 14. Arguments are one JSON object. Correct",
            ),
            (
                "memory_list",
                r#"{"tags":["a",null]}"#,
                "invalid_argument",
                "tags[1] is null.",
            ),
            (
                "memory_list",
                r#"{"tags":"[1]"}"#,
                "invalid_argument",
                "tags[0] is the number 1.",
            ),
            (
                "memory_list",
                r#"{"tags":{}}"#,
                "invalid_argument",
                "tags is an object.",
            ),
            (
                "memory_list",
                r#"{"cursor":"x"}"#,
                "invalid_argument",
                "cursor is not one that memory_list gave.",
            ),
            (
                "memory_delete",
                r#"{"key":"a","hide_lower":"true"}"#,
                "invalid_argument",
                "hide_lower is the text \"true\".",
            ),
            (
                "memory_delete",
                r#"{"key":"a"}"#,
                "not_found",
                "There is no memory with the key \"a\".",
            ),
            (
                "memory_save",
                r#"{"key":"a","content":"c","expires_at":"2027-01-31","expires_in":"7d"}"#,
                "invalid_argument",
                "expires_at and expires_in are both given.",
            ),
            (
                "memory_save",
                r#"{"key":"a","content":"c","expires_at":"2027-01-31T18:00:00"}"#,
                "invalid_argument",
                "expires_at is \"2027-01-31T18:00:00\", a time without its offset. It is a moment with its offset from UTC,",
            ),
            (
                "memory_save",
                r#"{"key":"a","content":"c","expires_at":"2026-11-29"}"#,
                "invalid_argument",
                "expires_at is 2026-11-29T23:59:59.999Z, which does not lie ahead: now it is 2026-11-30T01:04:00.000Z.",
            ),
            (
                "memory_save",
                r#"{"key":"a","content":"c","expires_at":"2026-11-30T02:04:00+01:00"}"#,
                "invalid_argument",
                "does not lie ahead",
            ),
            (
                "memory_save",
                r#"{"key":"a","content":"c","expires_at":"9999-12-31"}"#,
                "invalid_argument",
                "A memory expires by 9999-12-30T22:00:00.000Z at the latest.",
            ),
            (
                "memory_save",
                r#"{"key":"a","content":"c","expires_at":1796000640}"#,
                "invalid_argument",
                "expires_at is the number 1796000640. expires_at is a text.",
            ),
            (
                "memory_save",
                r#"{"key":"a","content":"c","expires_in":7}"#,
                "invalid_argument",
                "expires_in is the number 7.",
            ),
            (
                "memory_save",
                r#"{"key":"a","content":"c","expires_in":"1 year"}"#,
                "invalid_argument",
                "expires_in is \"1 year\", whose unit is not known. It is a whole number from 1 and one unit: m (minutes), h (hours), d (days) or w (weeks), such as 12h, 7d or 2w.",
            ),
            (
                "memory_save",
                r#"{"key":"a","content":"c","expires_in":"1.5d"}"#,
                "invalid_argument",
                "expires_in is \"1.5d\", which is no whole number. It is a whole number from 1 and one unit: m (minutes), h (hours), d (days) or w (weeks), such as 12h, 7d or 2w. Use a smaller unit, such as 36h for one and a half days.",
            ),
            (
                "memory_save",
                r#"{"key":"a","content":"c","supersedes":"b"}"#,
                "invalid_argument",
                "supersedes is a text that is not a JSON array: \"b\".",
            ),
            (
                "memory_save",
                r#"{"key":"a","content":"c","supersedes":["b"]}"#,
                "not_found",
                "There is no memory with the key \"b\". A memory takes the place only of one that memory_get finds. Nothing was saved:",
            ),
            (
                "memory_confirm",
                r#"{"key":"a"}"#,
                "not_found",
                "There is no memory with the key \"a\".",
            ),
            (
                "memory_review",
                r#"{"older_than_days":-1}"#,
                "invalid_argument",
                "older_than_days is -1. It is a whole number from 0 to 36500, and 90 when left out.",
            ),
            (
                "memory_review",
                r#"{"limit":0}"#,
                "invalid_argument",
                "limit is 0. It is a whole number from 1 to 200, and 20 when left out.",
            ),
            (
                "memory_status",
                r#"{"a":1}"#,
                "invalid_argument",
                "memory_status has no argument \"a\". It takes no arguments.",
            ),
        ] {
            let (got, message) = error(&host, tool, arguments);
            assert_eq!(got, code, "{tool} {arguments}: {message}");
            assert!(message.contains(what), "{tool} {arguments}: {message}");
        }
        let key = "k".repeat(257);
        let (code, message) = error(&host, "memory_get", &json!({"key": key}).to_string());
        assert_eq!(code, "too_large");
        assert!(message.contains("256"), "{message}");
    }

    #[test]
    fn deep_and_long_input_is_an_error_of_a_few_words() {
        let host = FakeHost::new(Level::Public);
        let deep = format!(
            "{{\"key\":{}1{}}}",
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        let (code, message) = error(&host, "memory_get", &deep);
        assert_eq!(code, "invalid_argument");
        assert!(message.contains("recursion limit"), "{message}");
        for arguments in [
            json!({"key": "a", "x".repeat(1_000_000): 1}).to_string(),
            json!({"key": 1, "tags": "x".repeat(1_000_000)}).to_string(),
            json!({"tags": "\u{1}".repeat(1_000_000), "key": "k", "content": "c"}).to_string(),
        ] {
            let (_, message) = error(&host, "memory_save", &arguments);
            assert!(message.len() < 2000, "{}", message.len());
        }
        let (_, message) = error(&host, &"x".repeat(1_000_000), "{}");
        assert!(message.len() < 1000);
    }
}

mod reading {
    use super::*;

    #[test]
    fn documented_readings() {
        let host = FakeHost::new(Level::Public);
        let save = |tags: Value| {
            answer(
                &host,
                "memory_save",
                json!({"key": "k", "content": "[\"x\"]", "tags": tags, "source": null}),
            );
            let get = answer(&host, "memory_get", json!({"key": "k"}));
            // Content that is itself JSON stays text.
            assert_eq!(get["content"], "[\"x\"]");
            assert_eq!(get["source"], Value::Null);
            get["tags"].clone()
        };
        assert_eq!(save(json!(["b", "a"])), json!(["a", "b"]));
        assert_eq!(save(json!("[\"b\",\"a\"]")), json!(["a", "b"]));
        assert_eq!(save(json!(null)), json!([]));
        assert_eq!(save(json!("[]")), json!([]));
        for limit in [json!(1), json!(1.0), json!(null)] {
            answer(
                &host,
                "memory_list",
                json!({"limit": limit, "tag": null, "cursor": null, "match": null}),
            );
        }
    }

    #[test]
    fn an_expiry_is_a_moment_a_day_or_a_time_from_now() {
        let host = FakeHost::new(Level::Public);
        for (argument, text, expected) in [
            (
                "expires_at",
                "2026-12-31T23:59:59-05:00",
                "2027-01-01T04:59:59.000Z",
            ),
            ("expires_at", "2026-11-30", "2026-11-30T23:59:59.999Z"),
            (
                "expires_at",
                "2026-11-30T01:04:00.0019Z",
                "2026-11-30T01:04:00.001Z",
            ),
            ("expires_in", "12h", "2026-11-30T13:04:00.000Z"),
            ("expires_in", "2w", "2026-12-14T01:04:00.000Z"),
        ] {
            // Null is the same as nothing.
            let mut arguments =
                json!({"key": "k", "content": "c", "expires_at": null, "expires_in": null});
            arguments[argument] = json!(text);
            answer(&host, "memory_save", arguments);
            let get = answer(&host, "memory_get", json!({"key": "k"}));
            assert_eq!(get["expires_at"], expected, "{text}");
        }
    }

    #[test]
    fn superseded_keys_come_as_an_array_or_as_the_text_of_one() {
        for supersedes in [json!(["a", " b "]), json!("[\"a\",\"b\"]")] {
            let host = FakeHost::new(Level::Public)
                .with(Level::Public, "a", "c")
                .with(Level::Public, "b", "c");
            answer(
                &host,
                "memory_save",
                json!({"key": "k", "content": "c", "supersedes": supersedes}),
            );
            let list = answer(&host, "memory_list", json!({}));
            assert_eq!(list["memories"].as_array().unwrap().len(), 1);
        }
    }

    #[test]
    fn tags_are_filtered_by_any_unless_all_is_asked_for() {
        let host = FakeHost::new(Level::Public);
        for (key, tags) in [("1", ["open", "private"]), ("2", ["open", "work"])] {
            answer(
                &host,
                "memory_save",
                json!({"key": key, "content": "c", "tags": tags}),
            );
        }
        for (arguments, count) in [
            (json!({"tags": ["open", "private"]}), 2),
            (json!({"tags": ["open", "private"], "match": "any"}), 2),
            (json!({"tags": ["open", "private"], "match": "all"}), 1),
            (json!({"tag": "work"}), 1),
            (json!({"tags": []}), 2),
        ] {
            let list = answer(&host, "memory_list", arguments);
            assert_eq!(list["memories"].as_array().unwrap().len(), count);
        }
    }
}

mod fuzzing {
    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            Just(json!("[\"a\"]")),
            Just(json!("k")),
            Just(json!("7d")),
            Just(json!("2027-01-31")),
            Just(json!(2)),
        ];
        leaf.prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((name(), inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    fn name() -> impl Strategy<Value = String> {
        prop_oneof![
            9 => prop::sample::select(vec![
                "key", "content", "tags", "tag", "source", "query", "max_results", "match", "cursor",
                "limit", "hide_lower", "expires_at", "expires_in", "supersedes", "older_than_days", "level", "classification", "taint", "origin",
            ])
            .prop_map(str::to_owned),
            1 => any::<String>(),
        ]
    }

    fn check(tool: &str, arguments: &str) {
        let host = FakeHost::new(Level::Internal)
            .with(Level::Internal, "k", "k a")
            .with(Level::Public, "k", "k");
        match call(&host, tool, arguments) {
            Ok(text) => {
                let value: Value = serde_json::from_str(&text).unwrap();
                valid(&schema(tool, |tool| &tool.output_schema), &value).unwrap();
            }
            Err(error) => {
                assert!(!error.code.is_empty() && error.message.ends_with(['.', '?', '!']))
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_text_is_answered(tool in 0..description::NAMES.len(), arguments in any::<String>()) {
            check(description::NAMES[tool], &arguments);
        }

        #[test]
        fn any_json_is_answered(tool in 0..description::NAMES.len(), members in prop::collection::vec((name(), value()), 0..5)) {
            let members: serde_json::Map<String, Value> = members.into_iter().collect();
            check(description::NAMES[tool], &Value::Object(members).to_string());
        }

        #[test]
        fn any_damaged_json_is_answered(tool in 0..description::NAMES.len(), value in value(), at: prop::sample::Index, with in any::<char>()) {
            let text = json!({"key": "k", "content": "c", "tags": value}).to_string();
            let mut chars: Vec<char> = text.chars().collect();
            let at = at.index(chars.len());
            chars[at] = with;
            check(description::NAMES[tool], &chars.into_iter().collect::<String>());
        }
    }
}
