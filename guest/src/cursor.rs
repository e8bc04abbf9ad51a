//! Where a list goes on. A cursor says one thing, "the keys behind this one", and the key
//! is one that the caller has just been shown: nothing hidden is in it, and it stays good
//! whatever is saved or deleted between two pages.
//!
//! Callers treat it as opaque. It is the key in unpadded base64url (RFC 4648, section 5)
//! behind a version byte, so that it can be told from other text and changed later.

use crate::contract::MemoryError;
use crate::validate;

/// The first byte of every cursor of this form.
const VERSION: u8 = 1;

/// The length of the cursor for the longest key.
const LONGEST: usize = 343;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The cursor for the keys behind `key`.
pub fn after(key: &str) -> String {
    let mut bytes = Vec::with_capacity(key.len().saturating_add(1));
    bytes.push(VERSION);
    bytes.extend_from_slice(key.as_bytes());
    encode(&bytes)
}

/// The key behind which to go on.
pub fn read(cursor: &str) -> Result<String, MemoryError> {
    let key = Some(cursor)
        .filter(|cursor| cursor.len() <= LONGEST)
        .and_then(decode)
        .and_then(|bytes| match bytes.split_first() {
            Some((&VERSION, key)) => String::from_utf8(key.to_vec()).ok(),
            _ => None,
        })
        // A key that no record can have was not written by `after`.
        .filter(|key| validate::key(key).is_ok_and(|valid| valid == *key));
    key.ok_or_else(|| {
        validate::invalid(
            "cursor is not one that memory_list gave",
            "A cursor is the next_cursor of an earlier page, unchanged",
            "Leave cursor out to begin at the first page",
        )
    })
}

fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().saturating_mul(4).div_ceil(3));
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let group = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for i in 0..=chunk.len() {
            let shift = 18_usize.saturating_sub(i.saturating_mul(6));
            let digit = (group >> shift) & 63;
            text.extend(ALPHABET.get(digit as usize).map(|&c| char::from(c)));
        }
    }
    text
}

/// None for anything that `encode` would not have written.
fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let (mut group, mut bits) = (0_u32, 0_u32);
    for c in text.bytes() {
        let digit = ALPHABET.iter().position(|&a| a == c)?;
        group = ((group << 6) | u32::try_from(digit).ok()?) & 0xffff;
        bits = bits.saturating_add(6);
        if bits >= 8 {
            bits = bits.saturating_sub(8);
            bytes.push(u8::try_from((group >> bits) & 0xff).ok()?);
        }
    }
    // One spelling for each cursor.
    (encode(&bytes) == text).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "", "AQ", "a", "AWE=", "Ag", "%%", "AWF", "AQ==", "é", "AWEK", "AP8", "AWH_",
        ] {
            assert!(
                matches!(read(text), Err(MemoryError::InvalidArgument(_))),
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_cursor_is_short_enough_for_any_key() {
        assert_eq!(after(&"k".repeat(validate::KEY_BYTES)).len(), LONGEST);
    }

    proptest! {
        #[test]
        fn a_cursor_gives_its_key_back(raw in "\\PC{1,60}") {
            if let Ok(key) = validate::key(&raw) {
                let cursor = after(&key);
                prop_assert!(cursor.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'_'));
                prop_assert_eq!(read(&cursor).unwrap(), key);
            }
        }

        #[test]
        fn reading_never_panics_and_has_one_spelling(text in "[A-Za-z0-9_-]{0,40}") {
            if let Ok(key) = read(&text) {
                prop_assert_eq!(after(&key), text);
            }
        }
    }
}
