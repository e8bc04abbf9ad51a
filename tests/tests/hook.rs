//! Arguments that only the host decides: taken out before a plugin sees them,
//! and ignored by the plugin where nobody did. Same answer either way, and one
//! line in the audit trail either way.

use remora_host::{Level, Session};
use remora_tests::{Calls, Sandbox, puppet, remora};

/// A call that goes round the host's hook: the plugin meets the arguments as they
/// came.
fn without_the_hook(
    session: &Session,
    tool: &str,
    arguments: &str,
) -> Result<String, (String, String)> {
    remora()
        .call(session, |plugin, store| {
            plugin
                .remora_memory_toolbox()
                .call_invoke(store, tool, &arguments.to_owned())
        })
        .expect("no trap")
        .map_err(|error| (error.code, error.message))
}

fn with_the_hook(
    session: &Session,
    tool: &str,
    arguments: &str,
) -> Result<String, (String, String)> {
    remora()
        .invoke(session, tool, arguments)
        .map_err(|error| (error.code, error.message))
}

const CALLS: [(&str, &str); 12] = [
    (
        "memory_save",
        r#"{"key":"k","content":"c","classification":"PUBLIC"}"#,
    ),
    (
        "memory_save",
        r#"{"level":1,"key":"k","taint":null,"content":"c2","origin":{"a":[1]},"classification":false}"#,
    ),
    (
        "memory_save",
        r#"{"key":"k","content":"c2","l\u0065vel":"PUBLIC"}"#,
    ),
    ("memory_get", r#"{"key":"k","level":"RESTRICTED"}"#),
    ("memory_get", r#"{"taint":"RESTRICTED","key":"absent"}"#),
    ("memory_search", r#"{"query":"c2","taint":"RESTRICTED"}"#),
    (
        "memory_list",
        r#"{"level":"RESTRICTED","classification":"PUBLIC"}"#,
    ),
    ("memory_status", r#"{"origin":"USER"}"#),
    ("memory_delete", r#"{"key":"k","classification":"PUBLIC"}"#),
    // Failures are the same, too.
    ("memory_delete", r#"{"key":"k","classification":"PUBLIC"}"#),
    (
        "memory_save",
        r#"{"key":"","content":"c","classification":"PUBLIC"}"#,
    ),
    ("memory_get", r#"{"taint":"PUBLIC"}"#),
];

#[test]
fn the_answer_is_the_same_with_the_hook_and_without_and_audited_once() {
    let (hooked, plain) = (Sandbox::new(), Sandbox::new());
    let sessions = (hooked.at(Level::Internal), plain.at(Level::Internal));
    for (tool, arguments) in CALLS {
        assert_eq!(
            with_the_hook(&sessions.0, tool, arguments),
            without_the_hook(&sessions.1, tool, arguments),
            "{tool} {arguments}"
        );
    }
    let trails = [&hooked, &plain].map(|sandbox| {
        let events = sandbox
            .store
            .events(remora_tests::AGENT, Level::Internal)
            .expect("a trail");
        events
            .into_iter()
            .map(|event| (event.kind, event.session, event.detail))
            .collect::<Vec<_>>()
    });
    assert_eq!(trails[0], trails[1]);
    let ignored = trails[0]
        .iter()
        .filter(|(kind, ..)| kind == "argument-ignored");
    assert_eq!(
        ignored.count(),
        16,
        "one line for each argument of each call"
    );
}

#[test]
fn a_call_without_such_arguments_is_passed_on_as_it_came() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(Level::Public);
    for arguments in ["", r#"{ "a" : 1e2 , "x":{"level":1}}"#, "[1]", "null"] {
        assert_eq!(
            puppet()
                .invoke(&session, "echo", arguments)
                .expect("an echo"),
            arguments
        );
    }
    assert!(sandbox.trail(Level::Public).is_empty());
}

#[test]
fn a_plugin_that_would_not_ignore_them_never_sees_them() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(Level::Public);
    let seen = puppet()
        .invoke(
            &session,
            "echo",
            r#"{"level":"RESTRICTED","key":"k","origin":"USER","taint":1,"classification":2,"t":{"level":3}}"#,
        )
        .expect("an echo");
    let (before, notices) = seen.split_once(r#","notices":"#).expect("notices");
    assert_eq!(before, r#"{"key":"k","t":{"level":3}"#);
    assert_eq!(notices.matches("was ignored").count(), 4);
    assert_eq!(sandbox.trail(Level::Public), ["argument-ignored"; 4]);
}

#[test]
fn duplicate_names_are_refused_with_the_hook_and_without() {
    let sandbox = Sandbox::new();
    let session = sandbox.at(Level::Public);
    for arguments in [
        r#"{"key":"a","content":"c","key":"b"}"#,
        r#"{"key":"a","content":"c","level":"x","level":"y"}"#,
        r#"{"key":"a","content":"c","l\u0065vel":"x","level":"y"}"#,
        r#"{"key":"a","content":"c","tags":[{"a":1,"a":2}]}"#,
    ] {
        for answer in [
            with_the_hook(&session, "memory_save", arguments),
            without_the_hook(&session, "memory_save", arguments),
        ] {
            assert_eq!(
                answer.expect_err("refused").0,
                "invalid_argument",
                "{arguments}"
            );
        }
    }
    assert!(session.list(serde_json::json!({})).is_empty());
}
