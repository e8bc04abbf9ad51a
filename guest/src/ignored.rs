//! Arguments that only the session decides. The toolbox leaves them out and says so; the
//! host's hook strips them and says the same, so the sentence is the same to the byte.

/// The arguments that are ignored, in the order in which their notices stand.
pub const ARGUMENTS: [&str; 4] = ["classification", "level", "taint", "origin"];

/// What the caller is told about an ignored argument.
pub fn notice(argument: &str) -> String {
    format!("The argument \"{argument}\" was ignored: the session decides it, not the caller.")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_sentence_is_the_one_that_the_host_writes() {
        assert_eq!(
            super::notice("classification"),
            "The argument \"classification\" was ignored: the session decides it, not the caller."
        );
    }
}
