//! placeholder front page
#![deny(missing_docs)]

mod clock;
mod error;
mod level;
mod provenance;
pub mod storage;

pub use clock::{Clock, Instant, SystemClock};
pub use error::{Error, ErrorKind};
pub use level::{Level, can_flow_to};
pub use provenance::{Origin, Standing};
