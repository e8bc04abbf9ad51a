//! The tools by name and JSON, for hosts that discover them when they run. A thin layer:
//! `arguments` reads the JSON, [`Tools`] does the work, `answers` writes the JSON, and
//! `description` is what a model is told.

mod arguments;
mod description;
mod expiry;

use crate::answers;
use crate::contract::{
    ListArguments, MemoryError, ReviewArguments, SaveArguments, Tool, ToolError,
};
use crate::host::Host;
use crate::ignored;
use crate::tools::Tools;
use crate::validate::{self, LIST_LIMIT, REVIEW_DAYS, REVIEW_LIMIT, SEARCH_LIMIT, invalid};

use arguments::{Arguments, quoted};

/// The tools, in a fixed order.
pub fn describe() -> Vec<Tool> {
    description::tools()
}

/// Text for a system prompt.
pub fn instructions() -> &'static str {
    description::INSTRUCTIONS
}

/// Calls the tool `name` with `arguments`, a JSON object (or nothing). The answer is a JSON
/// object that the tool's output schema describes.
pub fn invoke<H: Host>(
    tools: &Tools<'_, H>,
    name: &str,
    arguments: &str,
) -> Result<String, ToolError> {
    let call: Call<H> = match name {
        "memory_save" => save,
        "memory_get" => get,
        "memory_search" => search,
        "memory_list" => list,
        "memory_delete" => delete,
        "memory_confirm" => confirm,
        "memory_review" => review,
        "memory_history" => history,
        "memory_status" => status,
        _ => return Err(unknown(name)),
    };
    run(tools, name, call, arguments).map_err(tool_error)
}

/// A tool: its arguments and the notices of ignored ones in, its answer out.
type Call<H> = fn(&Tools<'_, H>, Arguments, &[String]) -> Result<String, MemoryError>;

fn run<H: Host>(
    tools: &Tools<'_, H>,
    name: &str,
    call: Call<H>,
    arguments: &str,
) -> Result<String, MemoryError> {
    let mut arguments = Arguments::parse(name, arguments)?;
    let mut notices = Vec::new();
    for ignored in ignored::ARGUMENTS {
        if arguments.remove(ignored) {
            // Audited also where the call fails afterwards.
            tools.host().note(ignored)?;
            notices.push(ignored::notice(ignored));
        }
    }
    call(tools, arguments, &notices)
}

fn save<H: Host>(
    tools: &Tools<'_, H>,
    mut arguments: Arguments,
    notices: &[String],
) -> Result<String, MemoryError> {
    arguments.only(&[
        "key",
        "content",
        "tags",
        "source",
        "expires_at",
        "expires_in",
        "supersedes",
    ])?;
    let saved = tools.save(SaveArguments {
        key: arguments.text("key")?,
        content: arguments.text("content")?,
        tags: arguments.optional_texts("tags")?.unwrap_or_default(),
        source: arguments.optional_text("source")?,
        expires_at: expiry::take(&mut arguments, || tools.host().now())?,
        supersedes: arguments.optional_texts("supersedes")?.unwrap_or_default(),
    })?;
    Ok(answers::save(&saved, notices))
}

fn get<H: Host>(
    tools: &Tools<'_, H>,
    mut arguments: Arguments,
    notices: &[String],
) -> Result<String, MemoryError> {
    arguments.only(&["key"])?;
    // The answer names the key as it was looked up.
    let key = validate::key(&arguments.text("key")?)?;
    let found = tools.get(&key)?;
    Ok(answers::get(&key, found.as_ref(), notices))
}

fn search<H: Host>(
    tools: &Tools<'_, H>,
    mut arguments: Arguments,
    notices: &[String],
) -> Result<String, MemoryError> {
    arguments.only(&["query", "max_results"])?;
    let query = arguments.text("query")?;
    let max_results = arguments.optional_number(&SEARCH_LIMIT)?;
    let results = tools.search(&query, max_results)?;
    Ok(answers::search(
        &results,
        &query,
        tools.host().now(),
        notices,
    ))
}

fn list<H: Host>(
    tools: &Tools<'_, H>,
    mut arguments: Arguments,
    notices: &[String],
) -> Result<String, MemoryError> {
    arguments.only(&["tag", "tags", "match", "cursor", "limit"])?;
    let tag = arguments.optional_text("tag")?;
    let tags = arguments.optional_texts("tags")?;
    let tags = match (tag, tags) {
        (Some(_), Some(_)) => {
            return Err(invalid(
                "tag and tags are both given",
                "A list is filtered by tag, or by tags, or not at all",
                "Put every tag into tags",
            ));
        }
        (Some(tag), None) => vec![tag],
        (None, tags) => tags.unwrap_or_default(),
    };
    let match_all = match arguments.optional_text("match")?.as_deref() {
        None | Some("any") => false,
        Some("all") => true,
        Some(other) => {
            return Err(invalid(
                format!("match is {}", quoted(other)),
                "match is \"any\" or \"all\", and \"any\" when left out",
                "Call again with one of the two",
            ));
        }
    };
    let listing = tools.list(ListArguments {
        tags,
        match_all,
        cursor: arguments.optional_text("cursor")?,
        limit: arguments.optional_number(&LIST_LIMIT)?,
    })?;
    Ok(answers::list(&listing, notices))
}

fn delete<H: Host>(
    tools: &Tools<'_, H>,
    mut arguments: Arguments,
    notices: &[String],
) -> Result<String, MemoryError> {
    arguments.only(&["key", "hide_lower"])?;
    let key = arguments.text("key")?;
    let hide_lower = arguments.optional_flag("hide_lower")?.unwrap_or(false);
    Ok(answers::delete(&tools.delete(&key, hide_lower)?, notices))
}

fn confirm<H: Host>(
    tools: &Tools<'_, H>,
    mut arguments: Arguments,
    notices: &[String],
) -> Result<String, MemoryError> {
    arguments.only(&["key", "source"])?;
    let key = arguments.text("key")?;
    let source = arguments.optional_text("source")?;
    Ok(answers::confirm(
        &tools.confirm(&key, source.as_deref())?,
        notices,
    ))
}

fn review<H: Host>(
    tools: &Tools<'_, H>,
    mut arguments: Arguments,
    notices: &[String],
) -> Result<String, MemoryError> {
    arguments.only(&["older_than_days", "limit"])?;
    let queue = tools.review(ReviewArguments {
        older_than_days: arguments.optional_number(&REVIEW_DAYS)?,
        limit: arguments.optional_number(&REVIEW_LIMIT)?,
    })?;
    Ok(answers::review(&queue, notices))
}

fn history<H: Host>(
    tools: &Tools<'_, H>,
    mut arguments: Arguments,
    notices: &[String],
) -> Result<String, MemoryError> {
    arguments.only(&["key"])?;
    let timeline = tools.history(&arguments.text("key")?)?;
    Ok(answers::history(&timeline, tools.host().now(), notices))
}

fn status<H: Host>(
    tools: &Tools<'_, H>,
    arguments: Arguments,
    notices: &[String],
) -> Result<String, MemoryError> {
    arguments.only(&[])?;
    Ok(answers::status(&tools.status()?, notices))
}

fn unknown(name: &str) -> ToolError {
    let tools = description::NAMES.join(", ");
    ToolError {
        code: "unknown_tool".to_owned(),
        message: sentences([
            &format!("There is no tool {}", quoted(name)),
            &format!("The tools are {tools}"),
            "Call one of these",
        ]),
    }
}

fn tool_error(error: MemoryError) -> ToolError {
    let (code, problem) = match error {
        MemoryError::InvalidArgument(problem) => ("invalid_argument", problem),
        MemoryError::NotFound(problem) => ("not_found", problem),
        MemoryError::NoSuchRecordAtLevel(problem) => ("no_such_record_at_level", problem),
        MemoryError::TooLarge(problem) => ("too_large", problem),
        MemoryError::Refused(problem) => ("refused", problem),
        MemoryError::Unavailable(problem) => ("unavailable", problem),
    };
    ToolError {
        code: code.to_owned(),
        message: sentences([&problem.what, &problem.allowed, &problem.remedy]),
    }
}

/// What was wrong, what is allowed, what to do next: one sentence each.
fn sentences(parts: [&str; 3]) -> String {
    let mut message = String::new();
    for part in parts
        .map(str::trim)
        .into_iter()
        .filter(|part| !part.is_empty())
    {
        if !message.is_empty() {
            message.push(' ');
        }
        message.push_str(part);
        if !part.ends_with(['.', '!', '?']) {
            message.push('.');
        }
    }
    message
}

#[cfg(test)]
mod tests;
