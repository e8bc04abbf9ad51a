//! The words of an English question that say nothing of what it is about.

/// Whether a word is one of them, whatever stands around it.
pub(crate) fn is_stop_word(word: &str) -> bool {
    let word = word
        .trim_matches(|c: char| !c.is_alphanumeric())
        .to_lowercase()
        .replace('\u{2019}', "'");
    // `what's` and `what`, `isn't` and `is`.
    let stem = word
        .split_once('\'')
        .map_or(word.as_str(), |(stem, _)| stem);
    let stem = stem.strip_suffix('n').filter(|s| STOP_WORDS.contains(s));
    let owner = word.strip_suffix("'s").filter(|s| STOP_WORDS.contains(s));
    word.is_empty()
        || STOP_WORDS.contains(&word.as_str())
        || owner.is_some()
        || (stem.is_some() && word.contains("n't"))
}

/// A text without them.
pub(crate) fn without_stop_words(text: &str) -> String {
    let words: Vec<&str> = text
        .split_whitespace()
        .filter(|word| !is_stop_word(word))
        .collect();
    words.join(" ")
}

#[rustfmt::skip]
const STOP_WORDS: &[&str] = &[
    "a", "about", "above", "after", "again", "against", "all", "also", "am", "an", "and", "any",
    "are", "as", "at", "be", "because", "been", "before", "being", "below", "between", "both",
    "but", "by", "can", "can't", "cannot", "could", "did", "do", "does", "doing", "don't", "done",
    "down", "during", "each", "either", "else", "ever", "every", "few", "for", "from", "further",
    "get", "gets", "give", "go", "got", "had", "has", "have", "having", "he", "her", "here",
    "hers", "herself", "him", "himself", "his", "how", "i", "i'd", "i'll", "i'm", "i've", "if",
    "in", "into", "is", "it", "its", "itself", "just", "kind", "let", "like", "many", "may", "me",
    "might", "mine", "more", "most", "much", "must", "my", "myself", "neither", "no", "nor", "not",
    "now", "of", "off", "on", "once", "one", "only", "or", "other", "ought", "our", "ours",
    "ourselves", "out", "over", "own", "please", "same", "shall", "shan't", "she", "should", "since", "so",
    "some", "still", "such", "tell", "than", "that", "the", "their", "theirs", "them",
    "themselves", "then", "there", "these", "they", "they'd", "they'll", "they're", "they've",
    "this", "those", "through", "to", "too", "under", "until", "up", "upon", "us", "very", "was",
    "we", "we'd", "we'll", "we're", "we've", "were", "what", "when", "where", "whether", "which",
    "while", "who", "whom", "whose", "why", "will", "with", "without", "won't", "would", "yes",
    "yet", "you", "you'd", "you'll", "you're", "you've", "your", "yours", "yourself",
    "yourselves",
];
