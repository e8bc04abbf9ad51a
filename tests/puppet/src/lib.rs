//! A hostile plugin: it has no policy at all and makes whatever import calls it
//! is told to.
//!
//! The tool `run` takes a JSON list of [`Step`]s and answers a JSON list with
//! what became of each: `{"ok": …}` or `{"err": {"code": …, "what": …}}`. Steps
//! that ask a shelf name it by its place among those held, so a test can also
//! hold more than there are, drop one and go on using its number, or make a
//! number up. A trap answers nothing, as it should.
//!
//! Two more things a plugin could try are there without being asked for:
//! `describe`, which gets no session, tries to read and write all the same and
//! puts what came of it into the description of its only tool; and the step
//! `remember` leaves a word in the instance's memory for the next call to find.

mod glue;
mod script;

pub use script::Step;
