//! `mcp-config`: the settings with which an MCP client starts this server.
//!
//! They go to standard output and nothing else does, so they can be sent to a
//! file; where they belong is said on standard error. Paths are absolute, since
//! a client starts its servers from a folder of its own.

use std::io::{self, Write as _};
use std::path::Path;

use anyhow::Context as _;
use remora_host::Error;
use serde_json::{Value, json};

use super::globals::Globals;
use super::text::quoted;

/// The name under which clients list the server.
const NAME: &str = "remora";

/// The arguments of `mcp-config`.
#[derive(Debug, clap::Args)]
pub(crate) struct McpConfigArgs {
    /// The client that is to start the server
    client: Client,
    /// Without a session that is kept: a new one whenever the client starts it
    #[arg(long)]
    ephemeral: bool,
}

/// The clients whose settings are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Client {
    ClaudeCode,
    ClaudeDesktop,
    Codex,
    Cursor,
    GeminiCli,
    /// Visual Studio Code
    Vscode,
    Windsurf,
    Zed,
    /// What most other clients read
    Generic,
}

/// Prints the settings for a client.
///
/// # Errors
/// Without a session and without `--ephemeral`, or with both, or when a path is
/// not Unicode, since the settings can't name it then.
pub(crate) fn run(globals: &Globals, args: McpConfigArgs) -> anyhow::Result<()> {
    let McpConfigArgs { client, ephemeral } = args;
    let binary = std::env::current_exe().context("The path of this program is unknown")?;
    let command = unicode(&binary)?;
    let arguments = serve_arguments(ephemeral, globals)?;
    let mut out = io::stdout();
    out.write_all(settings(client, &command, &arguments).as_bytes())?;
    out.flush()?;
    let mut err = io::stderr();
    writeln!(err, "{}", place(client))?;
    if let Some(group) = group(client) {
        writeln!(
            err,
            "Where the file has \"{group}\" already, add only what stands inside it."
        )?;
    }
    if client == Client::ClaudeCode {
        writeln!(err, "Or run: {}", claude_mcp_add(&command, &arguments))?;
    }
    let dollar = |text: &String| text.contains('$');
    if expands_variables(client) && (dollar(&command) || arguments.iter().any(dollar)) {
        writeln!(
            err,
            "Something here has a \"$\", which this client may replace: check that it starts."
        )?;
    }
    Ok(())
}

/// What stands after the program's name.
fn serve_arguments(ephemeral: bool, globals: &Globals) -> anyhow::Result<Vec<String>> {
    let mut arguments = vec!["serve".to_owned()];
    match (&globals.session, ephemeral) {
        (Some(session), false) => push(&mut arguments, "--session", session),
        (None, true) => arguments.push("--ephemeral".to_owned()),
        (None, false) => {
            return Err(Error::invalid(
                "The settings need a session",
                "With --session NAME a client that restarts the server keeps its level; with \
                 --ephemeral each start is a session of its own, and its level is forgotten",
                "Give one of the two",
            )
            .into());
        }
        (Some(_), true) => {
            return Err(Error::invalid(
                "--session and --ephemeral exclude each other",
                "A named session is kept, an ephemeral one is not",
                "Give one of the two",
            )
            .into());
        }
    }
    push(
        &mut arguments,
        "--store",
        &absolute(&globals.store_folder()?)?,
    );
    if let Some(agent) = &globals.agent {
        push(&mut arguments, "--agent", agent);
    }
    if let Some(taint) = globals.taint {
        push(&mut arguments, "--taint", taint.name());
    }
    if let Some(clearance) = globals.clearance {
        push(&mut arguments, "--clearance", clearance.name());
    }
    if let Some(origin) = globals.origin {
        push(&mut arguments, "--origin", origin.name());
    }
    if let Some(component) = &globals.component {
        push(&mut arguments, "--component", &absolute(component)?);
    }
    Ok(arguments)
}

/// In one word where the value would be taken for an option itself.
fn push(arguments: &mut Vec<String>, option: &str, value: &str) {
    if value.starts_with('-') {
        arguments.push(format!("{option}={value}"));
    } else {
        arguments.extend([option.to_owned(), value.to_owned()]);
    }
}

fn absolute(path: &Path) -> anyhow::Result<String> {
    let path = std::path::absolute(path)
        .with_context(|| format!("The path {} can't be made absolute", path.display()))?;
    unicode(&path)
}

fn unicode(path: &Path) -> anyhow::Result<String> {
    match path.to_str() {
        Some(path) => Ok(path.to_owned()),
        None => Err(Error::invalid(
            format!("The path {} is not Unicode", path.display()),
            "Clients' settings are Unicode text",
            "Move it, or link to it from a path that is",
        )
        .into()),
    }
}

/// The settings as the client reads them, with a line end.
fn settings(client: Client, command: &str, arguments: &[String]) -> String {
    let plain = json!({"command": command, "args": arguments});
    let typed = json!({"type": "stdio", "command": command, "args": arguments});
    let server = match client {
        Client::ClaudeCode | Client::Vscode => typed,
        // Older versions want the source, newer ones pass it over.
        Client::Zed => {
            json!({"source": "custom", "command": command, "args": arguments, "env": {}})
        }
        _ => plain,
    };
    let Some(group) = group(client) else {
        let arguments: Vec<String> = arguments.iter().map(|text| toml_text(text)).collect();
        return format!(
            "[mcp_servers.{NAME}]\ncommand = {}\nargs = [{}]\n",
            toml_text(command),
            arguments.join(", ")
        );
    };
    format!("{:#}\n", json!({group: {NAME: server}}))
}

/// The object in which the client's JSON names its servers; none where it is TOML.
fn group(client: Client) -> Option<&'static str> {
    match client {
        Client::ClaudeCode
        | Client::ClaudeDesktop
        | Client::Cursor
        | Client::GeminiCli
        | Client::Windsurf
        | Client::Generic => Some("mcpServers"),
        Client::Vscode => Some("servers"),
        Client::Zed => Some("context_servers"),
        Client::Codex => None,
    }
}

/// The command with which Claude Code adds a server to its settings itself.
fn claude_mcp_add(command: &str, arguments: &[String]) -> String {
    let server: Vec<String> = std::iter::once(command)
        .chain(arguments.iter().map(String::as_str))
        .map(quoted)
        .collect();
    format!("claude mcp add {NAME} -- {}", server.join(" "))
}

/// A basic string of TOML. All that JSON escapes is escaped the same way there;
/// TOML wants U+007F escaped as well.
fn toml_text(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

/// Where the settings go.
fn place(client: Client) -> &'static str {
    match client {
        Client::ClaudeCode => {
            "Put this into .mcp.json at the top of the project, or for all projects into \
             ~/.claude.json; then start Claude Code again."
        }
        Client::ClaudeDesktop => {
            if cfg!(target_os = "macos") {
                "Put this into ~/Library/Application Support/Claude/claude_desktop_config.json \
                 (Settings, Developer, Edit Config); then start Claude again."
            } else if cfg!(windows) {
                "Put this into %APPDATA%\\Claude\\claude_desktop_config.json (Settings, \
                 Developer, Edit Config); then start Claude again."
            } else {
                "Put this into ~/.config/Claude/claude_desktop_config.json (Settings, Developer, \
                 Edit Config); then start Claude again."
            }
        }
        Client::Codex => {
            "Add this to ~/.codex/config.toml, or to .codex/config.toml of a project that Codex \
             trusts; then start Codex again."
        }
        Client::Cursor => {
            "Put this into ~/.cursor/mcp.json, or for one project into its .cursor/mcp.json."
        }
        Client::GeminiCli => {
            "Put this into ~/.gemini/settings.json, or for one project into its \
             .gemini/settings.json; then start Gemini CLI again."
        }
        Client::Vscode => {
            "Put this into .vscode/mcp.json of the workspace, or for all of them into the file \
             that the command \"MCP: Open User Configuration\" opens."
        }
        Client::Windsurf => {
            if cfg!(windows) {
                "Put this into %USERPROFILE%\\.codeium\\windsurf\\mcp_config.json; then refresh \
                 the list of servers."
            } else {
                "Put this into ~/.codeium/windsurf/mcp_config.json; then refresh the list of \
                 servers."
            }
        }
        Client::Zed => {
            if cfg!(windows) {
                "Put this into %APPDATA%\\Zed\\settings.json (the command \"zed: open settings \
                 file\")."
            } else {
                "Put this into ~/.config/zed/settings.json (the command \"zed: open settings \
                 file\")."
            }
        }
        Client::Generic => {
            "Most clients read this from a JSON file of their own; see the client's documentation \
             on MCP servers over stdio."
        }
    }
}

/// Whether the client replaces `$NAME` or `${NAME}` in its settings.
fn expands_variables(client: Client) -> bool {
    matches!(
        client,
        Client::ClaudeCode | Client::Cursor | Client::GeminiCli | Client::Vscode | Client::Windsurf
    )
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    const HARD: &str = "C:\\Ünï code\\it's \"my\" $tore\u{7f}\u{1}";

    fn arguments() -> Vec<String> {
        vec!["serve".to_owned(), "--store".to_owned(), HARD.to_owned()]
    }

    #[test]
    fn every_clients_json_names_the_command_and_its_arguments() {
        for (client, server) in [
            (Client::ClaudeCode, "/mcpServers/remora"),
            (Client::ClaudeDesktop, "/mcpServers/remora"),
            (Client::Cursor, "/mcpServers/remora"),
            (Client::GeminiCli, "/mcpServers/remora"),
            (Client::Vscode, "/servers/remora"),
            (Client::Windsurf, "/mcpServers/remora"),
            (Client::Zed, "/context_servers/remora"),
            (Client::Generic, "/mcpServers/remora"),
        ] {
            let printed = settings(client, HARD, &arguments());
            let settings: Value = serde_json::from_str(&printed).expect("valid JSON");
            let server = settings.pointer(server).expect("the server");
            assert_eq!(server["command"], HARD, "{client:?}");
            assert_eq!(server["args"], json!(arguments()), "{client:?}");
            assert!(printed.ends_with("}\n"));
        }
    }

    #[test]
    fn vs_code_and_claude_code_are_told_the_transport() {
        for (client, kind) in [
            (Client::Vscode, "/servers/remora/type"),
            (Client::ClaudeCode, "/mcpServers/remora/type"),
        ] {
            let settings: Value =
                serde_json::from_str(&settings(client, HARD, &[])).expect("valid JSON");
            assert_eq!(settings.pointer(kind), Some(&json!("stdio")));
        }
    }

    #[test]
    fn codex_gets_a_table_of_toml() {
        assert_eq!(
            settings(Client::Codex, HARD, &arguments()),
            "[mcp_servers.remora]\n\
             command = \"C:\\\\Ünï code\\\\it's \\\"my\\\" $tore\\u007F\\u0001\"\n\
             args = [\"serve\", \"--store\", \"C:\\\\Ünï code\\\\it's \\\"my\\\" $tore\\u007F\\u0001\"]\n"
        );
    }

    #[test]
    fn claude_code_can_add_it_by_a_command() {
        assert_eq!(
            claude_mcp_add(
                "/a b/remora",
                &["serve".to_owned(), "--session=-x".to_owned()]
            ),
            "claude mcp add remora -- '/a b/remora' serve --session=-x"
        );
    }

    #[test]
    fn the_help_lists_every_client() {
        for client in Client::value_variants() {
            let name = client.to_possible_value().expect("shown");
            assert!(
                super::super::EXAMPLES.contains(name.get_name()),
                "{client:?}"
            );
        }
    }

    #[test]
    fn a_value_that_looks_like_an_option_is_bound_to_its_own() {
        let mut arguments = Vec::new();
        push(&mut arguments, "--session", "-x");
        push(&mut arguments, "--agent", "a b");
        assert_eq!(arguments, ["--session=-x", "--agent", "a b"]);
    }

    #[test]
    fn every_client_is_told_where_the_settings_go() {
        for client in Client::value_variants() {
            assert!(place(*client).ends_with('.'), "{client:?}");
        }
    }
}
