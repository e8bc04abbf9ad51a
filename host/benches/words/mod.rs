//! Words for the benches.

/// The same words on every run: xorshift, and a vocabulary in which a word is as
/// rare as in prose (Zipf).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(crate) fn sentence(&mut self, words: usize) -> String {
        const VOCABULARY: f64 = 20_000.0;
        let words: Vec<String> = (0..words)
            .map(|_| {
                let uniform = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
                let rank = VOCABULARY.powf(uniform) as u64;
                // Letters only, the more the rarer.
                let mut word = String::from("w");
                let mut rest = rank;
                while rest > 0 {
                    word.push(char::from(b'a' + (rest % 26) as u8));
                    rest /= 26;
                }
                word
            })
            .collect();
        words.join(" ")
    }
}
