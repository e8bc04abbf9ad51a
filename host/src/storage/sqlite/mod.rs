//! SQLite.
/// x
#[derive(Debug)]
pub struct SqliteStorage;
