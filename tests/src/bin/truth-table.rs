//! Writes the truth table to standard output.

fn main() {
    print!("{}", remora_tests::table::generate());
}
