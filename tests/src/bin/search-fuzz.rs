//! Searches of random documents, for as long as one likes:
//!
//! ```text
//! search-fuzz [INPUTS] [SEED]
//! ```
//!
//! One input in a hundred goes through the component. Says how many there were and
//! how long they took; ends in a panic that names the seed of its batch when
//! anything is not as it should be.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use remora_tests::fuzz::{Tally, Way, batch};

fn main() {
    let mut numbers = std::env::args().skip(1).map(|argument| {
        argument
            .parse::<u64>()
            .unwrap_or_else(|_| panic!("{argument} is not a number: search-fuzz [INPUTS] [SEED]"))
    });
    let inputs = numbers.next().unwrap_or(100_000);
    let seed = numbers.next().unwrap_or(1);
    let began = Instant::now();
    for (way, inputs) in [
        (Way::Component, inputs / 100),
        (Way::Storage, inputs - inputs / 100),
    ] {
        let tally = Mutex::new(Tally::default());
        let next = AtomicU64::new(seed << 32);
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while tally.lock().expect("no panic").inputs() < inputs {
                        let done = batch(way, next.fetch_add(1, Ordering::Relaxed));
                        let mut tally = tally.lock().expect("no panic");
                        tally.add(&done);
                        if tally.stores % 100 == 0 {
                            eprintln!("{way:?}: {} of {inputs}", tally.inputs());
                        }
                    }
                });
            }
        });
        let tally = tally.into_inner().expect("no panic");
        println!("{way:?}: {} inputs: {tally:?}", tally.inputs());
    }
    println!("{:.0} s", began.elapsed().as_secs_f64());
}
