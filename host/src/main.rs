//! The binary `remora`: the memory for people at a terminal, and for agents over
//! MCP.

mod cli;
mod mcp;

fn main() -> std::process::ExitCode {
    cli::main()
}
