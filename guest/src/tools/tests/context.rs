//! The block for a prompt.

use super::*;
use crate::contract::ContextArguments;
use crate::moment::DAY;

fn arguments(budget: u32) -> ContextArguments {
    ContextArguments {
        budget: Some(budget),
        query: None,
        tags: Vec::new(),
    }
}

fn context(host: &FakeHost, arguments: ContextArguments) -> String {
    Tools::new(host).context(arguments).unwrap()
}

/// The keys in a block, in their order.
fn keys(block: &str) -> Vec<&str> {
    block
        .lines()
        .filter_map(|line| line.strip_prefix("- \"")?.split('"').next())
        .collect()
}

fn put(host: &FakeHost, level: Level, key: &str, content: &str, tags: &[&str]) {
    host.put_memory(Memory {
        content: content.to_owned(),
        content_bytes: content.len() as u64,
        ..tagged(level, key, tags)
    });
}

#[test]
fn what_is_asked_for_comes_first_then_the_tags_in_their_order_then_what_is_used_most() {
    let host = FakeHost::new(Internal);
    put(&host, Public, "9 answer", "deploy on monday", &["rule"]);
    put(&host, Public, "8 tagged", "c", &["mine"]);
    put(&host, Internal, "7 rule", "c", &["rule", "project"]);
    put(&host, Public, "7b rule", "c", &["rule"]);
    put(&host, Public, "6 persona", "c", &["persona"]);
    put(&host, Internal, "5 preference", "c", &["preference"]);
    put(&host, Public, "4 project", "c", &["project"]);
    put(&host, Public, "3 most used", "c", &[]);
    put(&host, Internal, "2 used", "c", &[]);
    put(&host, Public, "1 less used", "c", &[]);
    put(&host, Public, "0 never used", "c", &[]);
    for key in [
        "3 most used",
        "3 most used",
        "1 less used",
        "2 used",
        "7 rule",
    ] {
        Tools::new(&host).get(key).unwrap();
    }
    let block = context(
        &host,
        ContextArguments {
            query: Some("when do we deploy".to_owned()),
            tags: vec!["mine".to_owned()],
            ..arguments(2000)
        },
    );
    assert_eq!(
        keys(&block),
        [
            "9 answer",
            "8 tagged",
            "7 rule",
            "7b rule",
            "6 persona",
            "5 preference",
            "4 project",
            "2 used",
            "3 most used",
            "1 less used"
        ]
    );
}

#[test]
fn a_question_has_20_answers_at_most_and_what_else_matters_comes_behind_them() {
    let host = FakeHost {
        rows: 200,
        ..FakeHost::new(Public)
    };
    for i in 0..30 {
        put(&host, Public, &format!("answer {i:02}"), "deploy", &[]);
    }
    put(&host, Public, "a rule", "c", &["rule"]);
    let block = context(
        &host,
        ContextArguments {
            query: Some("deploy".to_owned()),
            ..arguments(5000)
        },
    );
    let keys = keys(&block);
    assert_eq!(keys.len(), 21);
    assert_eq!(keys[19..], ["answer 19", "a rule"]);
}

#[test]
fn each_memory_is_whole_or_left_out_and_smaller_ones_still_come() {
    let host = FakeHost::new(Public);
    let long = "long ".repeat(1200);
    put(&host, Public, "1", "short", &["rule"]);
    put(&host, Public, "2", &long, &["rule"]);
    put(&host, Public, "3", "short too", &["rule"]);
    let block = context(&host, arguments(200));
    assert_eq!(keys(&block), ["1", "3"]);
    assert!(!block.contains("long"));
    let fetches = |host: &FakeHost| host.calls().iter().filter(|c| c.ends_with("fetch")).count();
    assert_eq!(fetches(&host), 0, "what can't fit is not fetched");
    let block = context(&host, arguments(3000));
    assert_eq!(keys(&block), ["1", "2", "3"]);
    assert!(block.contains(long.trim_end()));
    assert_eq!(fetches(&host), 1, "only what is longer than its excerpt is");
}

#[test]
fn what_is_shadowed_superseded_or_kept_apart_is_not_in_it() {
    let host = FakeHost::new(Internal).with_tombstone(Internal, "hidden");
    put(&host, Public, "hidden", "NO", &["rule"]);
    put(&host, Public, "shadowed", "NO", &["rule"]);
    put(&host, Internal, "shadowed", "yes", &[]);
    put(&host, Public, "old", "NO", &["rule"]);
    put(&host, Restricted, "high", "NO", &["rule"]);
    host.put_memory(Memory {
        standing: Standing::Quarantined,
        content: "NO".to_owned(),
        content_bytes: 2,
        ..tagged(Public, "apart", &["rule"])
    });
    host.put_memory(Memory {
        standing: Standing::Pending,
        content: "NO".to_owned(),
        content_bytes: 2,
        ..tagged(Public, "waits", &["rule"])
    });
    Tools::new(&host)
        .save(SaveArguments {
            supersedes: vec!["old".to_owned()],
            tags: vec!["rule".to_owned()],
            ..save_arguments("new", "yes")
        })
        .unwrap();
    for hostile in [false, true] {
        let mut host = host.at(Internal);
        host.hostile = hostile;
        let block = context(
            &host,
            ContextArguments {
                query: Some("NO yes".to_owned()),
                ..arguments(2000)
            },
        );
        assert_eq!(keys(&block), ["new", "shadowed"]);
        assert!(!block.contains("NO"), "{block}");
    }
}

#[test]
fn an_empty_store_and_a_small_budget_give_a_block_that_says_so() {
    let host = FakeHost::new(Public);
    let none = context(&host, arguments(50));
    assert!(none.ends_with("\nNone.\n"), "{none}");
    put(&host, Public, "k", &"x".repeat(100), &["rule"]);
    assert_eq!(context(&host, arguments(50)), none);
    let Err(MemoryError::InvalidArgument(problem)) = Tools::new(&host).context(arguments(49))
    else {
        panic!()
    };
    assert!(problem.allowed.contains("from 50 to 20000"));
    for wrong in [
        ContextArguments {
            query: Some(" ".to_owned()),
            ..arguments(100)
        },
        ContextArguments {
            tags: vec![String::new()],
            ..arguments(100)
        },
    ] {
        assert!(Tools::new(&host).context(wrong).is_err());
    }
}

#[test]
fn a_full_block_of_a_large_store_is_dated_and_takes_few_questions() {
    let host = FakeHost {
        rows: 200,
        ..FakeHost::new(Public)
    };
    for i in 0..1000 {
        host.put_memory(Memory {
            updated_at: NOW - i * DAY,
            confirmed_at: (i % 2 == 0).then_some(NOW - i * DAY),
            ..tagged(Public, &format!("k{i:03}"), &["rule"])
        });
    }
    let block = context(&host, arguments(500));
    assert!(block.len() <= 1500 && block.len() > 1400, "{}", block.len());
    assert!(keys(&block).is_sorted());
    for line in block.lines().filter(|line| line.starts_with("- ")) {
        assert!(line.contains(", confirmed 20") || line.contains(", unconfirmed, saved 20"));
        assert!(line.contains(" old, origin AGENT, no source"));
    }
    assert!(host.calls().len() < 10, "{:?}", host.calls());
    // Nothing fits, and it is not read to its end for that.
    host.calls.borrow_mut().clear();
    for i in 0..1000 {
        put(
            &host,
            Public,
            &format!("k{i:03}"),
            &"x".repeat(1400),
            &["rule"],
        );
    }
    assert!(context(&host, arguments(500)).ends_with("None.\n"));
    assert!(host.calls().len() < 50, "{}", host.calls().len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_block_agrees_with_brute_force(
        acts in naive::acts(),
        taint in 0..4_usize,
        host_rows in 0..3_u32,
        guest_rows in 1..4_u32,
        hostile: bool,
        budget in prop::sample::select(vec![50_u32, 90, 150, 400, 700, 2000]),
        query in prop::option::of(1..8_usize),
        tag in prop::option::of(0..naive::TAGS.len()),
    ) {
        let host = naive::store(&acts, host_rows, hostile).at(LEVELS[taint]);
        let query = query.map(|bits| {
            let words: Vec<&str> =
                (0..3).filter(|&i| bits >> i & 1 == 1).map(|i| naive::WORDS[i]).collect();
            words.join(" ")
        });
        let arguments = ContextArguments {
            budget: Some(budget),
            query,
            tags: Vec::from_iter(tag.map(|tag| naive::TAGS[tag].to_owned())),
        };
        let expected = naive::context(&host, &arguments);
        let block = Tools::new(&host).with_page_rows(guest_rows).context(arguments).unwrap();
        prop_assert!(block.len().div_ceil(3) <= budget as usize);
        prop_assert_eq!(block, expected);
    }
}
