//! The block for a prompt: as a prompt that a person picks, and as a resource that
//! a client takes in by itself.
//!
//! The session's level bounds it as it does any call. A model can't ask for it
//! with arguments of its own: prompts and resources are for clients.

use remora_host::{ContextOptions, ToolError};
use rmcp::model::{
    ErrorData, GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage,
    ReadResourceResult, Resource, ResourceContents, Role,
};
use serde_json::Value;

/// The prompt's name.
pub(super) const PROMPT: &str = "memory_context";
/// The resource's address.
pub(super) const RESOURCE: &str = "remora://context";

const DESCRIPTION: &str = "The memories that matter most in this session, each with its dates, \
    source and origin, within a budget.";

/// The prompt, as it is listed.
pub(super) fn prompt() -> Prompt {
    let argument = |name: &str, description: &str| {
        PromptArgument::new(name)
            .with_description(description)
            .with_required(false)
    };
    Prompt::new(
        PROMPT,
        Some(DESCRIPTION),
        Some(vec![
            argument(
                "query",
                "What the conversation is about: memories that answer it come first.",
            ),
            argument(
                "budget",
                "The most tokens, a whole number from 50 to 20000. 1000 when left out.",
            ),
            argument(
                "tag",
                "Memories with this tag come next; a JSON array of texts is read as several tags.",
            ),
        ]),
    )
    .with_title("What is remembered")
}

/// The resource, as it is listed.
pub(super) fn resource() -> Resource {
    Resource::new(RESOURCE, "context")
        .with_title("What is remembered")
        .with_description(DESCRIPTION)
        .with_mime_type("text/plain")
}

/// What a client asks for with the prompt's arguments. They are texts; a number
/// is read as one.
pub(super) fn options(arguments: Option<&JsonObject>) -> Result<ContextOptions, ErrorData> {
    let wrong = |what: String| Err(ErrorData::invalid_params(what, None));
    let mut options = ContextOptions::default();
    for (name, value) in arguments.into_iter().flatten() {
        let text = match value {
            Value::Null => continue,
            Value::String(text) if text.trim().is_empty() => continue,
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return wrong(format!("The argument {name} of {PROMPT} is no text")),
        };
        match name.as_str() {
            "query" => options = options.query(text),
            "budget" => match text.trim().parse() {
                Ok(tokens) => options = options.budget(tokens),
                Err(_) => {
                    return wrong(format!(
                        "budget is {text:?}. It is a whole number from 50 to 20000, and 1000 when \
                         left out. Call again with one."
                    ));
                }
            },
            "tag" => {
                // A tag may itself be such a text; then it is given in an array.
                let tags = serde_json::from_str(&text).unwrap_or_else(|_| vec![text]);
                options = options.tags(tags);
            }
            _ => {
                return wrong(format!(
                    "{PROMPT} has no argument {name:?}. It has query, budget and tag. Leave it \
                     out."
                ));
            }
        }
    }
    Ok(options)
}

/// The block as the prompt's one message.
pub(super) fn prompt_result(text: String) -> GetPromptResult {
    GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)])
        .with_description(DESCRIPTION)
}

/// The block as what the resource holds.
pub(super) fn resource_result(text: String) -> ReadResourceResult {
    let contents = ResourceContents::text(text, RESOURCE).with_mime_type("text/plain");
    ReadResourceResult::new(vec![contents])
}

/// Why there is no block, as an error of the protocol: these have no other.
pub(super) fn failed(error: ToolError) -> ErrorData {
    match error.code.as_str() {
        "invalid_argument" | "too_large" => ErrorData::invalid_params(error.message, None),
        _ => ErrorData::internal_error(error.message, None),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(arguments: Value) -> Result<ContextOptions, String> {
        options(arguments.as_object()).map_err(|error| error.message.into_owned())
    }

    #[test]
    fn arguments_are_texts_and_may_all_be_missing() {
        assert_eq!(options(None).ok(), Some(ContextOptions::default()));
        assert_eq!(
            read(json!({ "query": "", "budget": " ", "tag": null })),
            Ok(ContextOptions::default())
        );
        assert_eq!(
            read(json!({ "query": "the deploy", "budget": "500", "tag": "ops" })),
            Ok(ContextOptions::default()
                .query("the deploy")
                .budget(500)
                .tags(vec!["ops".to_owned()]))
        );
        assert_eq!(
            read(json!({ "budget": 500, "tag": "[\"a,b\", \"c\"]" })),
            Ok(ContextOptions::default()
                .budget(500)
                .tags(vec!["a,b".to_owned(), "c".to_owned()]))
        );
    }

    #[test]
    fn what_is_no_argument_is_said() {
        for (arguments, named) in [
            (json!({ "budget": "many" }), "50 to 20000"),
            (json!({ "budget": "-1" }), "50 to 20000"),
            (json!({ "tags": "x" }), "no argument \"tags\""),
            (json!({ "query": ["x"] }), "query"),
        ] {
            let message = read(arguments).expect_err("refused");
            assert!(message.contains(named), "{message}");
        }
    }
}
