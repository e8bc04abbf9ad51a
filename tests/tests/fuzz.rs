//! Searches of random documents, few enough to run each time. The binary
//! `search-fuzz` runs as many as one likes.

use remora_tests::fuzz::{Way, batch};

#[test]
fn documents_out_of_all_of_unicode_are_found_by_their_own_words() {
    for seed in 0..2 {
        let tally = batch(Way::Storage, seed);
        assert!(tally.own > 100 && tally.hits > 1000, "{tally:?}");
        assert!(tally.wordless < tally.own / 5, "{tally:?}");
    }
}

#[test]
fn documents_out_of_all_of_unicode_pass_through_the_component() {
    let tally = batch(Way::Component, 0);
    assert!(tally.own > 30 && tally.hits > 300, "{tally:?}");
}

#[test]
fn a_batch_is_the_same_for_the_same_seed() {
    assert_eq!(batch(Way::Component, 7), batch(Way::Component, 7));
}
