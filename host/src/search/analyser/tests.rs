//! What the analyser makes of every script, and of what is no script at all.

use proptest::prelude::*;

use super::*;

/// The tokens of a text, parted by spaces.
fn folded(text: &str) -> String {
    let texts: Vec<String> = tokens(text).map(|token| token.text).collect();
    texts.join(" ")
}

/// What the text has where the tokens are.
fn slices(text: &str) -> Vec<&str> {
    tokens(text)
        .map(|token| &text[token.start..token.end])
        .collect()
}

/// The terms of a text, parted by spaces.
fn words(text: &str) -> String {
    let mut words = Vec::new();
    for token in tokens(text) {
        Analyser::new().words(&token, |term| words.push(term.to_owned()));
    }
    words.join(" ")
}

fn grams(text: &str) -> Vec<String> {
    let mut grams = Vec::new();
    for token in tokens(text) {
        Analyser::new().grams(&token, |gram| grams.push(gram.to_owned()));
    }
    grams
}

fn kinds(text: &str) -> Vec<(String, Kind)> {
    tokens(text).map(|token| (token.text, token.kind)).collect()
}

/// Whether texts are the same to the analyser, however they are composed.
fn same(texts: &[&str]) {
    for text in texts {
        let nfc: String = text.nfc().collect();
        let nfd: String = text.nfd().collect();
        for form in [*text, nfc.as_str(), nfd.as_str()] {
            assert_eq!(kinds(form), kinds(texts[0]), "{text} {form:?}");
        }
    }
}

#[test]
fn spellings_of_one_word_are_the_same() {
    for texts in [
        ["CAFÉ", "cafe", "ｃａｆé"].as_slice(),
        &[
            "Ångström",
            "A\u{30a}ngstro\u{308}m",
            "angstrom",
            "\u{212b}ngstrom",
        ],
        &["ﬁnancial eﬃcient", "financial efficient"],
        &["Straße", "STRASSE", "STRAẞE", "strasse"],
        &[
            "İstanbul",
            "istanbul",
            "ISTANBUL",
            "ıstanbul",
            "I\u{307}stanbul",
        ],
        &["ΛΌΓΟΣ", "λόγος", "λογοσ", "λογος"],
        &["Việt Nam", "viet nam", "Vie\u{302}\u{323}t Nam"],
        &["ſo", "so"],
        &["Йод", "иод", "и\u{306}од"],
        &["Ёлка", "елка"],
        &["שָׁלוֹם", "שלום", "\u{fb2a}לום"],
        &["مُحَمَّد", "محمد", "محـــمد"],
        &["أحمد", "احمد", "إحمد"],
        &["ﷲ", "الله"],
        &["ガ", "ｶﾞ"],
        &["カー", "ｶｰ"],
        &[
            "한국어",
            "\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}\u{110b}\u{1165}",
        ],
        &["ＡＢＣ１２３", "abc123"],
        &["ₓ²", "x2"],
        &["Ⅳ", "iv"],
        &["①", "1"],
        &["㎏", "kg", "KG"],
        &["և", "եւ"],
        &["Ინდი", "ინდი"],
        &["ᏣᎳᎩ", "ꮳꮃꭹ"],
        &["𐐔𐐇", "𐐼𐐯"],
        &["\u{1ff3}", "ω", "ω\u{345}"],
    ] {
        same(texts);
    }
}

#[test]
fn what_makes_another_word_stays() {
    for (a, b) in [
        ("か", "が"),
        ("は", "ぱ"),
        ("cafe", "caffè"),
        ("का", "की"),
        ("क", "का"),
        ("ฟ้า", "ฟา"),
        ("மரம்", "மரம"),
        ("ড়", "ড"),
        ("ש", "ס"),
        ("한", "하"),
        ("ー", "一"),
        ("👍", "👎"),
        ("🇩🇪", "🇫🇷"),
        ("א", "ע"),
    ] {
        assert_ne!(folded(a), folded(b), "{a} {b}");
        assert!(!folded(a).is_empty(), "{a}");
    }
    for text in ["が", "हिन्दी", "ภาษาไทย", "தமிழ்", "বাংলা", "ދިވެހި"]
    {
        let nfc: String = text.nfc().collect();
        assert_eq!(folded(text), nfc);
        same(&[text]);
    }
}

#[test]
fn what_is_not_seen_neither_counts_nor_parts() {
    for (with, without) in [
        ("soft\u{ad}ware", "software"),
        ("a\u{200d}b\u{200c}c\u{2060}d\u{feff}e", "abcde"),
        ("می\u{200c}خواهم", "میخواهم"),
        ("\u{202b}שלום\u{202c}", "שלום"),
        ("עם\u{200f}", "עם"),
        ("❤\u{fe0f}", "❤"),
        ("葛\u{e0100}", "葛"),
        ("👍🏽", "👍"),
        ("👩\u{200d}👩\u{200d}👧", "👩👩👧"),
        ("1\u{fe0f}\u{20e3}", "1"),
        ("🏴\u{e0067}\u{e0062}\u{e007f}", "🏴"),
        ("Core™ Intel® x", "core intel x"),
        ("Ինչպե՞ս", "ինչպես"),
        ("a\u{61c}b", "ab"),
        ("가\u{1160}나", "가나"),
        ("\u{3164}", ""),
        ("c\u{301}++", "c ➕➕"),
    ] {
        assert_eq!(folded(with), without, "{with:?}");
    }
    // But a space without a width is one.
    assert_eq!(folded("two\u{200b}words"), "two words");
}

#[test]
fn a_text_is_parted_into_these_tokens() {
    for (text, expected) in [
        ("", ""),
        (" \n\t!?…—「」", ""),
        (
            "snake_case kebab-case a/b key:value",
            "snake case kebab case a b key value",
        ),
        ("user-name status: done", "user name status done"),
        ("C++ and C#", "c ➕➕ and c ♯"),
        ("Ｃ＋＋ C♯ C➕➕", "c ➕➕ c ♯ c ➕➕"),
        ("# heading 1 + 1 1+1 + #tag 3#", "heading 1 1 1 1 tag 3"),
        ("a + b, see #tag", "a b see tag"),
        ("rm -rf /", "rm rf"),
        ("3 GB/s 3GB", "3 gb s 3gb"),
        ("T78 a1b2 1990s", "t78 a1b2 1990s"),
        ("3½ cups, ½kg", "3 1 2 cups 1 2 kg"),
        ("10:30 1.5 1,000 2024-01-02", "10 30 1 5 1 000 2024 01 02"),
        ("me@example.org", "me example org"),
        ("│ a ├──┤ █▓", "a"),
        ("≠ → ★", "→ ★"),
        // What no mark makes.
        (
            "Łódź ØRSTED Æble œuvre Þór Ðað Đà Nẵng Maħruġ Ŧ ŋ Ǿ groß GROẞ",
            "lodz orsted aeble oeuvre thor dad da nang mahrug t n o gross gross",
        ),
        // Apostrophes.
        (
            "don't don’t DON`T don´t ｄｏｎ＇ｔ",
            "dont dont dont dont dont",
        ),
        ("Mel's we're I've I'll he'd I'm", "mels were ive ill hed im"),
        ("a'b l'amour O'Brien o'clock", "a b l amour o brien o clock"),
        ("'quoted' `code` dogs' 's", "quoted code dogs s"),
        (
            "a's's a'ś a's\u{301} a'sb a's\u{ad}b",
            "ass a s a s a sb a sb",
        ),
        ("aʼsʼs we'res a'lle", "ass we res a lle"),
        ("Hawaiʻi Hawai'i Qurʾān", "hawai i hawai i qur an"),
        ("п'ять п’ять 'слово'", "пять пять слово"),
        ("ג'ירפה ג׳ירפה ג’ירפה רח'", "גירפה גירפה גירפה רח"),
        ("צה\"ל צה״ל צה”ל", "צהל צהל צהל"),
        ("\"צהל\" \"מילה\" צה\"слово", "צהל מילה צה слово"),
        ("בן־אדם", "בן אדם"),
        // Where another script begins.
        ("הpicopix ב2016 2016ב", "ה picopix ב 2016 2016 ב"),
        ("我爱Rust编程2024年", "我爱 rust 编程 2024 年"),
        ("iPhone用のケース", "iphone 用のケース"),
        ("μm µm", "μ m μ m"),
        // Runs.
        ("東京タワーへ行く。明日", "東京タワーへ行く 明日"),
        ("コーヒー・サーバー 々〆", "コーヒー サーバー 々〆"),
        ("한국어를 배운다", "한국어를 배운다"),
        ("ㅋㅋ ㅠㅠ", "\u{110f}\u{110f} \u{1172}\u{1172}"),
        ("ภาษาไทย 123 ๑๒", "ภาษาไทย 123 ๑๒"),
        ("ພາສາລາວ", "ພາສາລາວ"),
        ("ភាសាខ្មែរ។", "ភាសាខ្មែរ"),
        ("မြန်မာဘာသာ၊", "မြန်မာဘာသာ"),
        ("ꦗꦮ ᨅᨔ ᬩᬮᬶ ꆈꌠ", "ꦗꦮ ᨅᨔ ᬩᬮᬶ ꆈꌠ"),
        ("𠀀𠀁 𛀁", "𠀀𠀁 𛀁"),
        ("🦀🎉 ok", "🦀🎉 ok"),
        // Words.
        ("བོད་སྐད།", "བོད སྐད"),
        ("ኢትዮጵያ፡ሰላም", "ኢትዮጵያ ሰላም"),
        ("Привет, МИР", "привет мир"),
        ("Αθήνα-Πάτρα", "αθηνα πατρα"),
        ("Երևան։", "երեւան"),
        ("नमस्ते दुनिया।", "नमस्ते दुनिया"),
        ("Azərbaycan ɓaɗɛ Ǝǝ", "azərbaycan ɓaɗɛ ǝǝ"),
        ("٣٤ १२ 𝟙", "٣٤ १२ 1"),
        ("𐐔𐐇 𐌰𐌱", "𐐼𐐯 𐌰𐌱"),
    ] {
        // As they are compared: composed.
        let expected: String = expected.nfc().collect();
        assert_eq!(folded(text), expected, "{text}");
        let expected = kinds(text);
        for form in [text.nfc().collect::<String>(), text.nfd().collect()] {
            assert_eq!(kinds(&form), expected, "{form}");
        }
    }
}

#[test]
fn only_unspaced_scripts_and_pictographs_make_runs() {
    for text in [
        "漢字",
        "かな",
        "한글",
        "ไทย",
        "ລາວ",
        "ខ្មែរ",
        "မြန်မာ",
        "ㄅㄆ",
        "🦀",
        "→",
        "ꦗꦮ",
        "ᬩᬮᬶ",
        "ꆈꌠ",
        "𠀀",
    ] {
        let all: Vec<Kind> = tokens(text).map(|token| token.kind).collect();
        assert_eq!(all, [Kind::Run], "{text}");
    }
    for text in [
        "word",
        "слово",
        "מילה",
        "كلمة",
        "शब्द",
        "བོད",
        "ሰላም",
        "ᠮᠣᠩᠭᠣᠯ",
        "42",
        "٤٢",
    ] {
        let all: Vec<Kind> = tokens(text).map(|token| token.kind).collect();
        assert_eq!(all, [Kind::Word], "{text}");
    }
}

#[test]
fn a_token_says_where_it_stands() {
    for (text, expected) in [
        ("Über, Mel's C++", ["Über", "Mel's", "C", "++"].as_slice()),
        // Nothing that is drawn with the last letter is left behind.
        ("cafe\u{301} x", &["cafe\u{301}", "x"]),
        ("👍🏽! ❤\u{fe0f}", &["👍🏽", "❤\u{fe0f}"]),
        ("'слово' רח' צה\"ל", &["слово", "רח", "צה\"ל"]),
        ("הpicopix", &["ה", "picopix"]),
        ("3½㎏", &["3", "½", "½", "㎏"]),
        ("日本語 한국", &["日本語", "한국"]),
        ("\u{301}\u{200d} a", &["a"]),
        ("\u{feff}a", &["a"]),
    ] {
        assert_eq!(slices(text), expected, "{text}");
    }
}

#[test]
fn numbers_are_told() {
    for (text, number) in [
        ("42", true),
        ("٤٢", true),
        ("४२", true),
        ("Ⅳ", false),
        ("4a", false),
        ("๔๒", false),
        ("四", false),
    ] {
        let all: Vec<bool> = tokens(text).map(|token| token.is_number()).collect();
        assert_eq!(all, [number], "{text}");
    }
}

#[test]
fn a_latin_word_is_its_english_stem() {
    for (word, stem) in [
        ("running", "run"),
        ("runs", "run"),
        ("memories", "memori"),
        ("memory", "memori"),
        ("Mel's", "mel"),
        ("generously", "generous"),
        ("national", "nation"),
        ("hopping", "hop"),
        ("hoping", "hope"),
        ("dying", "die"),
        ("skies", "sky"),
        ("ties", "tie"),
        ("YES", "yes"),
        ("year", "year"),
        ("says", "say"),
        ("déjà", "deja"),
        ("naïveté", "naivet"),
        ("T78", "t78"),
        ("2024", "2024"),
        ("a", "a"),
        ("s", "s"),
        // What English would do to it has no place elsewhere.
        ("машины", "машины"),
        ("λόγους", "λογουσ"),
        ("ספרים", "ספרים"),
        ("मशीनें", "मशीनें"),
    ] {
        assert_eq!(words(word), stem, "{word}");
    }
}

#[test]
fn another_folding_is_another_version() {
    // FNV-1a.
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    for c in '\0'..='\u{ffff}' {
        for token in tokens(&format!("a{c}b {c}\u{5d0}{c}\u{5d0}\u{5d0}\u{5d0}")) {
            for byte in token.text.bytes().chain([b' ']) {
                sum = (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }
    assert_eq!(format!("{VERSION} {sum:016x}"), "remora 3 57dfd8bd4bb25582");
}

#[test]
fn another_stemmer_and_other_stop_words_are_another_version() {
    const ROOTS: &str = "able act add age allow answer apply argue ask base be begin believe \
        bother box boy bring build busy buy call care carry cause change child city clear come \
        common compute consider copy country cry decide define deny depend describe die differ \
        do draw easy eat employ enjoy equal excite fact family fly force form free friend general \
        give go great happy hate have help hope hop house idea index internal inform just key know \
        large late lay lead learn leave lie life like live local long look love make manage match \
        mean meet memory move name nation need nerve notice number observe occur offer open order \
        organise own party pay perform place plan play please possible prefer press produce prove \
        provide public quick quiet read real reason record refer relate rely require rest run say \
        search see sense sensible serve set simple sit sky small sort speak stop store study sun \
        system tag take talk tell term test text think tie time transfer travel try turn type use \
        value vary visit wait walk want watch water week win wish word work world write year yet";
    const ENDS: &str = "- s es ed ing er ers ly ness ful ation ations able ment ity ive ize al \
        ist ists logy less est ies ied y eed edly ingly";
    // FNV-1a.
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    let mut count = 0;
    for root in ROOTS.split_whitespace() {
        for end in ENDS.split_whitespace() {
            let stem = words(&format!("{root}{}", end.trim_start_matches('-')));
            for byte in stem.bytes().chain([b' ']) {
                sum = (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
            count += 1;
        }
    }
    for word in crate::search::stop::STOP_WORDS {
        for byte in word.bytes().chain([b' ']) {
            sum = (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    assert_eq!(count, 5394);
    assert_eq!(format!("{VERSION} {sum:016x}"), "remora 3 e38f194202d08a95");
}

#[test]
fn hebrew_and_arabic_words_are_found_without_their_prefixes() {
    for (term, texts) in [
        (
            "ספר",
            ["ספר", "הספר", "בספר", "ושבספר", "לספר", "סֵפֶר"].as_slice(),
        ),
        // Whose first letter looks like a prefix too.
        ("חשב", &["מחשב", "המחשב", "במחשב", "שהמחשב"]),
        ("לום", &["שלום", "השלום", "בשלום"]),
        ("بيت", &["بيت", "البيت", "والبيت", "بالبيت", "للبيت"]),
        (
            "كتاب",
            &["كتاب", "الكتاب", "والكتاب", "فالكتاب", "كالكتاب", "للكتاب"],
        ),
        ("مانيا", &["ألمانيا", "الألمانيا", "بألمانيا"]),
        // Three letters are left.
        ("בית", &["בית", "הבית", "בבית"]),
        ("של", &["של"]),
        ("ולו", &["ולו"]),
        ("הב", &["הב"]),
        ("الى", &["إلى", "الى"]),
        ("الله", &["الله"]),
        ("والد", &["والد"]),
        // Without an article, a letter is a letter.
        ("بكتاب", &["بكتاب"]),
        ("وكتاب", &["وكتاب"]),
        ("لكتاب", &["لكتاب"]),
        ("گالکتاب", &["گالکتاب"]),
    ] {
        for text in texts {
            assert_eq!(words(text), term, "{text}");
        }
    }
}

#[test]
fn a_run_is_its_characters_and_pairs() {
    for (text, terms) in [
        ("東京都", "東 東京 京 京都 都"),
        ("京", "京"),
        ("한국", "한 한국 국"),
        ("が", "が"),
        ("🇩🇪", "🇩 🇩🇪 🇪"),
        ("C++", "c ➕ ➕➕ ➕"),
        ("𠀀𠀁", "𠀀 𠀀𠀁 𠀁"),
    ] {
        let nfd: String = text.nfd().collect();
        assert_eq!(words(text), terms);
        assert_eq!(words(&nfd), terms);
        if !text.is_ascii() {
            assert!(grams(text).is_empty(), "{text}");
        }
    }
}

#[test]
fn a_word_has_grams_of_four_characters() {
    for (text, expected) in [
        ("a", ["_a_"].as_slice()),
        ("ab", &["_ab_"]),
        ("abc", &["_abc", "abc_"]),
        ("Words", &["_wor", "word", "ords", "rds_"]),
        ("t78", &["_t78", "t78_"]),
        ("мир", &["_мир", "мир_"]),
        ("𐐔𐐇𐐔", &["_𐐼𐐯𐐼", "𐐼𐐯𐐼_"]),
        ("2024 ٤٢ 漢字 🦀", &[]),
        ("a b", &["_a_", "_b_"]),
    ] {
        assert_eq!(grams(text), expected, "{text}");
    }
    // Of the word as it is written, not of its stem.
    assert!(grams("memories").contains(&"ies_".to_owned()));
}

#[test]
fn of_too_many_marks_the_same_are_left_out_in_any_normal_form() {
    // Written in another order than the canonical one, by twos and threes.
    for marks in [
        "\u{3099}\u{9bc}",
        "\u{e48}\u{3099}\u{9bc}",
        "\u{e48}\u{e38}\u{93c}\u{9be}",
    ] {
        for letter in ["ka", "ی", "か"] {
            for times in [MOST_CONTINUED / 2 - 1, MOST_CONTINUED / 2, MOST_CONTINUED] {
                keeps_the_promises(&format!("{letter}{}", marks.repeat(times)));
                keeps_the_promises(&format!("{letter}{}{letter}{marks}", marks.repeat(times)));
            }
        }
    }
}

#[test]
fn long_words_are_cut() {
    for letter in [
        "x",
        "ж",
        "漢",
        "한",
        "が",
        "🦀",
        "𐐼",
        "7",
        "é",
        "ย\u{e38}",
        "का",
    ] {
        for (count, pieces) in [(63, 1), (64, 1), (65, 2), (128, 2), (129, 3)] {
            for decomposed in [false, true] {
                let mut text = letter.repeat(count);
                if decomposed {
                    text = text.nfd().collect();
                }
                let all: Vec<Token> = tokens(&text).collect();
                assert_eq!(all.len(), pieces, "{letter} {count}");
                // Between letters, never inside of one.
                let sum: String = all.iter().map(|token| token.text.as_str()).collect();
                assert_eq!(sum, folded(letter).repeat(count));
                for token in &all {
                    assert!(token.text.chars().filter(|c| !continues(*c)).count() <= LONGEST);
                    assert_eq!(token.text.len() % folded(letter).len(), 0, "{letter}");
                }
            }
        }
    }
    // The apostrophe of an ending may stand at the cut.
    let text = format!("{}'s", "x".repeat(LONGEST));
    assert_eq!(folded(&text), format!("{} s", "x".repeat(LONGEST)));
}

#[test]
fn a_text_of_one_character_takes_no_longer_than_another() {
    const SIZE: usize = 1_000_000;
    for (piece, count) in [
        ("x", SIZE.div_ceil(LONGEST)),
        ("漢", SIZE.div_ceil(3).div_ceil(LONGEST)),
        ("🦀", SIZE.div_ceil(4).div_ceil(LONGEST)),
        ("\u{301}", 0),
        ("\u{94d}", 0),
        ("\u{1172}", 1),
        ("'", 0),
        ("\u{2bc}", 0),
        ("\u{5f4}", 0),
        ("\0", 0),
        ("\u{200d}", 0),
        ("+", 0),
        ("a'", SIZE / 2),
        ("a\u{2bc}", SIZE / 3 + 1),
        ("я'", 1 + SIZE / 3 / LONGEST),
        ("א\"", 1 + SIZE / 3 / LONGEST),
        ("a'\u{200d}\u{94d}", SIZE / 8),
        ("\u{fdfa}", 4 * SIZE.div_ceil(3)),
    ] {
        let text = piece.repeat(SIZE.div_ceil(piece.len()));
        // What ends one ligature goes on in the next.
        let slack = if piece == "\u{fdfa}" { text.len() } else { 0 };
        let found = tokens(&text).count();
        assert!(found.abs_diff(count) <= slack, "{piece:?}: {found}");
    }
    // One letter under all of them, and one before.
    for pile in ["\u{301}", "\u{94d}", "\u{200d}", "\u{2bc}", "'", "\u{3099}"] {
        let text = format!("a{}b", pile.repeat(SIZE / pile.len()));
        for token in tokens(&text) {
            assert!(token.text.chars().count() <= LONGEST + MOST_CONTINUED);
        }
    }
}

#[test]
fn every_character_keeps_the_promises() {
    // Of the many Han characters beyond the BMP, and what is behind them, some.
    let rare = ('\u{20000}'..=char::MAX).step_by(97);
    for c in ('\0'..='\u{1ffff}').chain(rare) {
        for text in [format!("{c}"), format!("a{c}s "), format!("ב{c}漢")] {
            keeps_the_promises(&text);
        }
    }
}

fn keeps_the_promises(text: &str) {
    let all: Vec<Token> = tokens(text).collect();
    let mut before: Option<&Token> = None;
    for (place, token) in all.iter().enumerate() {
        let slice = text.get(token.start..token.end).unwrap();
        assert!(!slice.is_empty() && !token.text.is_empty(), "{text:?}");
        let next = all.get(place + 1);
        let shared = before.is_some_and(|before| before.end > token.start)
            || next.is_some_and(|next| next.start < token.end);
        if let Some(before) = before {
            assert!(
                before.start <= token.start && before.end <= token.end,
                "{text:?}"
            );
            // Only one character can be in two tokens.
            let common = text.get(token.start..before.end).unwrap_or_default();
            let ignored = |c: &char| !is_dropped_mark(*c) && !is_ignored(*c);
            assert!(common.chars().filter(ignored).count() <= 1, "{text:?}");
        }
        // By itself it is the same.
        let counted = token.text.chars().filter(|c| !continues(*c)).count();
        assert!(counted <= LONGEST, "{text:?}");
        assert!(
            token.text.chars().count() <= LONGEST + MOST_CONTINUED,
            "{text:?}"
        );
        assert_eq!(
            kinds(&token.text),
            [(token.text.clone(), token.kind)],
            "{text:?}"
        );
        let sign = token.text.starts_with(['\u{2795}', '\u{266f}']);
        if !shared && !sign {
            assert_eq!(
                kinds(slice),
                [(token.text.clone(), token.kind)],
                "{text:?} {slice:?}"
            );
        }
        let check = |term: &str, edge: bool| {
            assert!(!term.is_empty(), "{text:?}");
            for c in term.chars() {
                // What FTS5's `ascii` tokenizer takes for a part of a token.
                let kept = !c.is_ascii() || c.is_ascii_alphanumeric() || (edge && c == EDGE);
                assert!(kept, "{text:?} {term:?}");
                assert!(c.to_lowercase().eq([c]), "{text:?} {term:?}");
            }
        };
        Analyser::new().words(token, |term| check(term, false));
        Analyser::new().grams(token, |gram| {
            check(gram, true);
            assert!(gram.chars().count() <= GRAM);
        });
        before = Some(token);
    }
    let nfc: String = text.nfc().collect();
    let nfd: String = text.nfd().collect();
    assert_eq!(kinds(&nfc), kinds(text), "{text:?}");
    assert_eq!(kinds(&nfd), kinds(text), "{text:?}");
}

/// Characters that something is done about.
fn tricky() -> impl Strategy<Value = char> {
    const POOLS: [&str; 12] = [
        "aAbBsStTyY019_ -.\0\n",
        "'`\u{b4}\u{2018}\u{2019}\u{2bc}\u{2bb}\u{374}\u{5f3}\u{1fef}\u{1ffd}\u{ff07}\"\u{201d}\u{5f4}",
        "+#\u{ff0b}\u{ff03}\u{207a}♯➕",
        "\u{300}\u{301}\u{307}\u{308}\u{327}\u{345}\u{483}\u{5b8}\u{5c1}\u{64e}\u{653}\u{20e3}",
        "\u{93c}\u{93f}\u{94d}\u{9be}\u{9c7}\u{e31}\u{e38}\u{e48}\u{3099}\u{309a}\u{f71}\u{f72}",
        "\u{ad}\u{34f}\u{200b}\u{200c}\u{200d}\u{200f}\u{fe0f}\u{feff}\u{e0100}🏽™՞\u{640}",
        "éÉßẞıİſǅﬁﬃøəʰŉÅÅᾳΐΣςσµйЁѷ",
        "½㎏℃Ⅳ①²ﷺﷲ㍿ｶﾞｰ㈱㋀가한\u{1112}\u{1161}\u{11ab}\u{3160}\u{3164}\u{a960}\u{d7b0}",
        "אבהשלםװ\u{fb2a}\u{fb1f}־والبكفیگ٣",
        "かがカー々漢字𠀀ไทยำລາວខមြကབ་ሰ፡ΩЖԵეᎩꮳ𐐔𐌰",
        "🦀👩🇩🇪❤⭐→─█≠",
        "कखडড়য়ক়\u{958}\u{f43}\u{fb4b}\u{2adc}\u{1d15e}",
    ];
    prop_oneof![
        12 => prop::sample::select(POOLS.to_vec())
            .prop_flat_map(|pool| prop::sample::select(pool.chars().collect::<Vec<_>>())),
        1 => any::<char>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_text_keeps_the_promises(chars in prop::collection::vec(tricky(), 0..24)) {
        keeps_the_promises(&chars.into_iter().collect::<String>());
    }

    #[test]
    fn long_texts_keep_the_promises(
        parts in prop::collection::vec((prop::collection::vec(tricky(), 1..4), 1_usize..40), 1..5)
    ) {
        let text: String = parts
            .iter()
            .map(|(chars, times)| chars.iter().collect::<String>().repeat(*times))
            .collect();
        // More marks than are kept may be others in another order.
        prop_assume!(text.nfd().filter(|c| continues(*c)).count() <= MOST_CONTINUED);
        keeps_the_promises(&text);
    }

    #[test]
    fn any_text_can_be_taken_apart(text in any::<String>()) {
        keeps_the_promises(&text);
    }

    #[test]
    fn a_prefix_changes_nothing(
        prefixes in "[והבלמשכ]{0,4}", hebrew in "[א-ת]{3,8}",
        article in "([وفبك]?ال|لل)?", arabic in "[ءابتثجحخدرسعفكلمنهوي]{3,8}",
    ) {
        let (with, word) = (format!("{prefixes}{hebrew}"), hebrew);
        prop_assert_eq!(without_prefix(&with), without_prefix(&word));
        let (with, word) = (format!("{article}{arabic}"), arabic);
        prop_assert_eq!(without_prefix(&with), without_prefix(&word));
    }
}
