//! The bytes of the component: what it imports and exports, and what a host says
//! of one that was built against another contract.

use std::collections::BTreeSet;

use remora_host::{CONTRACT_VERSION, EMBEDDED_COMPONENT, ErrorKind, Plugin};
use remora_tests::{PUPPET, plugin_options, remora};
use wasmparser::{ComponentExternalKind, Parser, Payload};

/// The names that a component imports and exports, its outermost level only.
fn names(component: &[u8]) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut imports, mut exports) = (BTreeSet::new(), BTreeSet::new());
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(component) {
        match payload.expect("a valid component") {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    imports.insert(import.expect("an import").name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section {
                    let export = export.expect("an export");
                    assert_eq!(export.kind, ComponentExternalKind::Instance);
                    exports.insert(export.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    (imports, exports)
}

/// The names that the core modules inside import: what the code itself can call.
fn core_imports(component: &[u8]) -> BTreeSet<String> {
    Parser::new(0)
        .parse_all(component)
        .filter_map(|payload| match payload.expect("a valid component") {
            Payload::ImportSection(section) => Some(section),
            _ => None,
        })
        .flat_map(|section| section.into_imports())
        .map(|import| import.expect("an import").module.to_owned())
        .collect()
}

fn of_contract(interfaces: &[&str]) -> BTreeSet<String> {
    interfaces
        .iter()
        .map(|interface| format!("remora:memory/{interface}@{CONTRACT_VERSION}"))
        .collect()
}

#[test]
fn the_component_imports_exactly_types_session_and_storage_and_no_wasi() {
    assert_eq!(CONTRACT_VERSION, "0.1.0");
    for component in [EMBEDDED_COMPONENT, PUPPET] {
        let (imports, _) = names(component);
        assert_eq!(imports, of_contract(&["types", "session", "storage"]));
        for module in core_imports(component) {
            assert!(!module.contains("wasi"), "{module}");
        }
    }
}

#[test]
fn the_component_exports_tools_and_toolbox() {
    let (_, exports) = names(EMBEDDED_COMPONENT);
    assert_eq!(exports, of_contract(&["tools", "toolbox"]));
}

#[test]
fn a_component_of_another_version_is_told_which_versions_there_are() {
    let (ours, theirs) = (format!("@{CONTRACT_VERSION}"), "@0.9.0");
    assert_eq!(ours.len(), theirs.len());
    let mut other = EMBEDDED_COMPONENT.to_vec();
    let places: Vec<usize> = other
        .windows(ours.len())
        .enumerate()
        .filter(|(_, window)| *window == ours.as_bytes())
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty());
    for at in places {
        other[at..at + theirs.len()].copy_from_slice(theirs.as_bytes());
    }
    let error = Plugin::new(&other, plugin_options()).expect_err("another version");
    assert_eq!(error.kind(), ErrorKind::Plugin);
    let text = error.to_string();
    assert!(text.contains("0.9.0") && text.contains("0.1.0"), "{text}");
}

#[test]
fn what_is_no_component_is_an_error_that_says_so() {
    let module = b"\0asm\x01\0\0\0";
    for bytes in [&b""[..], b"hello", module, &EMBEDDED_COMPONENT[..1000]] {
        let error = Plugin::new(bytes, plugin_options()).expect_err("no component");
        assert_eq!(error.kind(), ErrorKind::Plugin);
        assert!(error.to_string().contains("can't be compiled"), "{error}");
        assert!(
            std::error::Error::source(&error).is_some(),
            "the cause is kept for the log"
        );
    }
    // A component that is empty is valid, and no plugin.
    let empty = b"\0asm\x0d\0\x01\0";
    let error = Plugin::new(empty, plugin_options()).expect_err("no plugin");
    assert!(
        error.to_string().contains("does not fit the world"),
        "{error}"
    );
}

#[test]
fn every_tool_has_schemas_and_hints() {
    let tools = remora().tools().expect("tools");
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "memory_save",
            "memory_get",
            "memory_search",
            "memory_list",
            "memory_delete",
            "memory_confirm",
            "memory_review",
            "memory_history",
            "memory_status"
        ]
    );
    for tool in &tools {
        for schema in [&tool.input_schema, &tool.output_schema] {
            let schema: serde_json::Value = serde_json::from_str(schema).expect("JSON");
            assert_eq!(schema["type"], "object", "{}", tool.name);
        }
        let reads =
            !["memory_save", "memory_delete", "memory_confirm"].contains(&tool.name.as_str());
        assert_eq!(tool.read_only, reads, "{}", tool.name);
        assert_eq!(
            tool.destructive,
            tool.name == "memory_delete",
            "{}",
            tool.name
        );
        assert!(!tool.description.is_empty());
        for forbidden in ["classification", "level", "taint", "origin"] {
            let schema: serde_json::Value = serde_json::from_str(&tool.input_schema).expect("JSON");
            assert!(
                schema["properties"].get(forbidden).is_none(),
                "{} {forbidden}",
                tool.name
            );
        }
    }
    assert!(!remora().instructions().expect("instructions").is_empty());
}
