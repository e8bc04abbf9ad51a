//! Seals: keyed digests that show whether a row is still the one that Remora wrote.
//!
//! Every sealed row carries keyed BLAKE3 over all its columns, under a key that
//! is derived from `store.key` for one purpose only, so that a seal made for one
//! kind of row never fits another. What a seal covers is encoded so that no two
//! different rows have the same encoding: each value is its type, its length and
//! its bytes, and an absent value is a type of its own.
//!
//! A seal does not show that a row or a file is *missing*, or that a whole file
//! was put back as it once was: the audit chain and its head show the first
//! within one file, nothing shows the second.

use std::fmt;

/// What a seal or digest is for. Each has a key of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A record.
    Record,
    /// An edge: what superseded what.
    Edge,
    /// A stamp: that somebody said a record is still true.
    Stamp,
    /// That a record was erased for good.
    Erased,
    /// A session.
    Session,
    /// A row of a file's own description.
    Meta,
    /// A link of an audit trail.
    Event,
    /// A link of another store's audit trail, which an import brought along.
    Foreign,
    /// The digest of a key, by which an audit line names it without saying it.
    Key,
}

/// A seal or digest.
pub(crate) type Digest = [u8; blake3::OUT_LEN];

/// The keys that `store.key` yields.
#[derive(Clone)]
pub(crate) struct Sealer {
    record: Digest,
    edge: Digest,
    stamp: Digest,
    session: Digest,
    meta: Digest,
    event: Digest,
    erased: Digest,
    foreign: Digest,
    key: Digest,
    name: Digest,
}

impl Sealer {
    /// Derives the keys from the store's secret.
    pub(crate) fn new(secret: &Digest) -> Self {
        // A context is part of what a seal means: changing one unseals every store.
        Self {
            record: blake3::derive_key("remora 2026-11-30 record seal", secret),
            edge: blake3::derive_key("remora 2026-11-30 edge seal", secret),
            stamp: blake3::derive_key("remora 2026-11-30 stamp seal", secret),
            erased: blake3::derive_key("remora 2026-11-30 erased seal", secret),
            session: blake3::derive_key("remora 2026-11-30 session seal", secret),
            meta: blake3::derive_key("remora 2026-11-30 meta seal", secret),
            event: blake3::derive_key("remora 2026-11-30 event chain", secret),
            foreign: blake3::derive_key("remora 2026-11-30 foreign event seal", secret),
            key: blake3::derive_key("remora 2026-11-30 key digest", secret),
            name: blake3::derive_key("remora 2026-11-30 store name", secret),
        }
    }

    /// A name for the store that holds this secret: the same wherever its files
    /// are, another for every other store, and no help to find the secret.
    pub(crate) fn store_name(&self) -> String {
        let name: String = blake3::Hash::from_bytes(self.name).to_hex().to_string();
        name.chars().take(32).collect()
    }

    /// Begins a seal.
    pub(crate) fn begin(&self, purpose: Purpose) -> Encoder {
        let key = match purpose {
            Purpose::Record => &self.record,
            Purpose::Edge => &self.edge,
            Purpose::Stamp => &self.stamp,
            Purpose::Session => &self.session,
            Purpose::Meta => &self.meta,
            Purpose::Event => &self.event,
            Purpose::Erased => &self.erased,
            Purpose::Foreign => &self.foreign,
            Purpose::Key => &self.key,
        };
        Encoder(blake3::Hasher::new_keyed(key))
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealer(..)")
    }
}

/// A seal being made: values in a fixed order.
pub(crate) struct Encoder(blake3::Hasher);

impl Encoder {
    fn value(mut self, kind: u8, bytes: &[u8]) -> Self {
        self.0.update(&[kind]);
        // A usize always fits: no platform has a wider one.
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.0.update(&length.to_le_bytes());
        self.0.update(bytes);
        self
    }

    /// An absent value.
    pub(crate) fn none(self) -> Self {
        self.value(0, &[])
    }

    /// A text.
    pub(crate) fn text(self, text: &str) -> Self {
        self.value(1, text.as_bytes())
    }

    /// A text or its absence.
    pub(crate) fn optional(self, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.text(text),
            None => self.none(),
        }
    }

    /// A whole number.
    pub(crate) fn integer(self, number: i64) -> Self {
        self.value(2, &number.to_le_bytes())
    }

    /// Bytes.
    pub(crate) fn bytes(self, bytes: &[u8]) -> Self {
        self.value(3, bytes)
    }

    /// Bytes or their absence.
    pub(crate) fn optional_bytes(self, bytes: Option<&[u8]>) -> Self {
        match bytes {
            Some(bytes) => self.bytes(bytes),
            None => self.none(),
        }
    }

    /// The seal.
    pub(crate) fn finish(self) -> Digest {
        *self.0.finalize().as_bytes()
    }

    /// Whether this is the seal that was kept. Takes the same time whatever
    /// differs.
    pub(crate) fn fits(self, kept: &[u8]) -> bool {
        match Digest::try_from(kept) {
            Ok(kept) => self.0.finalize() == blake3::Hash::from_bytes(kept),
            Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealer() -> Sealer {
        Sealer::new(&[7; 32])
    }

    #[test]
    fn a_seal_fits_what_it_was_made_of_and_nothing_else() {
        let make = || sealer().begin(Purpose::Record).text("a").integer(1);
        let seal = make().finish();
        assert!(make().fits(&seal));
        assert!(!make().fits(&seal[1..]));
        assert!(
            !sealer()
                .begin(Purpose::Edge)
                .text("a")
                .integer(1)
                .fits(&seal)
        );
        assert!(
            !Sealer::new(&[8; 32])
                .begin(Purpose::Record)
                .text("a")
                .integer(1)
                .fits(&seal)
        );
    }

    #[test]
    fn no_two_rows_share_an_encoding() {
        let of = |make: fn(Encoder) -> Encoder| make(sealer().begin(Purpose::Record)).finish();
        let all = [
            of(|e| e.text("ab").text("c")),
            of(|e| e.text("a").text("bc")),
            of(|e| e.text("abc")),
            of(|e| e.text("").text("abc")),
            of(|e| e.none().text("abc")),
            of(|e| e.bytes(b"ab").text("c")),
            of(|e| e.integer(0)),
            of(|e| e.bytes(&[0; 8])),
            of(|e| e.none()),
            of(|e| e.text("")),
            of(|e| e),
        ];
        for (i, a) in all.iter().enumerate() {
            for b in &all[..i] {
                assert_ne!(a, b);
            }
        }
    }
}
