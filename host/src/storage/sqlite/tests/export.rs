//! The memory as text.

use serde_json::Value;

use super::super::operator::ExportReport;
use super::restore::{rich, text};
use super::*;

impl Store {
    fn export(&self, agent: Option<&str>, level: Option<Level>) -> (Vec<Value>, ExportReport) {
        let mut text = Vec::new();
        let report = self
            .storage
            .operator(at(100))
            .export(agent, level, &mut text, &mut |_| ())
            .unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.ends_with('\n'));
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        (lines.collect(), report)
    }
}

fn of<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

#[test]
fn an_export_has_everything_that_is_kept_and_says_what_it_leaves_out() {
    let store = rich();
    let (lines, report) = store.export(None, None);
    assert_eq!(lines[0]["type"], "header");
    assert_eq!(lines[0]["format"], "remora-export");
    assert!(!lines[0]["leaves_out"].as_array().unwrap().is_empty());
    let last = lines.last().unwrap();
    assert_eq!(last["type"], "trailer");
    for (kind, name) in [
        ("record", "records"),
        ("edge", "edges"),
        ("stamp", "stamps"),
        ("usage", "usage"),
        ("erased", "erased"),
    ] {
        assert_eq!(last[name], of(&lines, kind).len(), "{kind}");
    }
    assert_eq!(report.lines.records, 13);
    assert_eq!(
        (report.lines.edges, report.lines.stamps, report.lines.usage),
        (1, 1, 1)
    );
    assert_eq!(report.files, 4);
    assert_eq!(report.events, of(&lines, "event").len() as u64);

    let new = &of(&lines, "record")
        .into_iter()
        .find(|line| line["key"] == "new")
        .unwrap();
    assert_eq!(new["tags"], serde_json::json!(["a,b", "c \"d\""]));
    assert_eq!(new["source"], "a letter");
    assert_eq!(new["level"], "INTERNAL");
    assert_eq!(new["origin"], "USER");
    assert_eq!(new["standing"], "trusted");
    assert_eq!(new["session"], "test");
    assert_eq!(new["expires_at"], at(86_400).to_string());
    assert_eq!(new["content"], "Bonn, 用户身份 \u{1f980}");
    assert_eq!(new["supersedes"].as_array().unwrap().len(), 1);
    let edge = of(&lines, "edge")[0];
    assert_eq!(edge["new_id"], new["id"]);
    assert_eq!(edge["old_id"], new["supersedes"][0]);
    assert_eq!(edge["old_level"], "PUBLIC");
    let stamp = of(&lines, "stamp")[0];
    assert_eq!(
        (&stamp["level"], &stamp["record_level"]),
        (&"CONFIDENTIAL".into(), &"INTERNAL".into())
    );
    assert_eq!(stamp["source"], "a call");
    let tombstones: Vec<_> = lines
        .iter()
        .filter(|line| line["hides_lower"] == true)
        .collect();
    assert_eq!(tombstones.len(), 1);
    let standings: Vec<_> = lines
        .iter()
        .filter_map(|line| line["standing"].as_str())
        .collect();
    assert!(standings.contains(&"pending") && standings.contains(&"quarantined"));
    let superseded = lines
        .iter()
        .filter(|line| line["superseded_at"].is_string());
    assert_eq!(superseded.count(), 1);
}

#[test]
fn an_export_of_one_level_or_agent_has_no_word_of_another() {
    let store = rich();
    let (lines, _) = store.export(Some("main"), Some(I));
    assert!(
        lines
            .iter()
            .all(|line| line["level"].is_null() || line["level"] == "INTERNAL")
    );
    assert!(
        lines
            .iter()
            .all(|line| line["agent"].is_null() || line["agent"] == "main")
    );
    assert_eq!(of(&lines, "record").len(), 2);
    let (lines, _) = store.export(Some("Ann Lee"), None);
    assert_eq!(of(&lines, "record").len(), 1);
    let storage = store.storage.operator(at(0));
    for (agent, level) in [(Some("nobody"), None), (Some("main"), Some(R))] {
        let mut text = Vec::new();
        let error = storage
            .export(agent, level, &mut text, &mut |_| ())
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}

#[test]
fn an_export_tells_its_lines_in_an_order_of_their_own() {
    let store = Store::new();
    for key in ["b", "a", "b", "c", "a"] {
        store.save(
            P,
            key,
            &format!("{key} {}", store.agent(P).counts(P).unwrap().live),
        );
    }
    let (lines, _) = store.export(None, None);
    let order: Vec<String> = of(&lines, "record")
        .iter()
        .map(|line| format!("{}{}", line["key"].as_str().unwrap(), line["version"]))
        .collect();
    assert_eq!(order, ["a1", "a2", "b1", "b2", "c1"]);
    assert_eq!(text(&store.root()), text(&store.root()));
}

#[test]
fn a_damaged_record_is_named_and_the_rest_is_exported() {
    let store = Store::new();
    let bad = store.save(P, "a", "b");
    store.save(P, "c", "d");
    store
        .by_hand(P)
        .execute_batch("UPDATE record SET source = 'elsewhere' WHERE key = 'a'")
        .unwrap();
    let (lines, report) = store.export(None, None);
    assert_eq!(report.damaged, 1);
    assert!(report.damaged_rows[0].contains(&bad.id), "{report:?}");
    assert_eq!(of(&lines, "record").len(), 1);
    assert_eq!(lines.last().unwrap()["records"], 1);
}

#[test]
fn an_export_that_can_not_be_written_fails() {
    struct Full(usize);
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self
                .0
                .checked_sub(bytes.len())
                .ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let store = rich();
    for room in [0, 200, 2000] {
        let written =
            store
                .storage
                .operator(at(0))
                .export(None, None, &mut Full(room), &mut |_| ());
        let text = unavailable(written);
        assert!(text.contains("can't be written"), "{text}");
    }
}
