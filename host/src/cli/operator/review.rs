//! `review`: going through what nobody has confirmed for longest.
//!
//! It sees and changes what a session at `--taint` sees and changes, through the
//! same tools. Whatever is decided takes a memory off the queue, so a review that
//! was broken off goes on where it stopped; what is skipped comes again the next
//! time.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead as _, IsTerminal as _};

use anyhow::Context as _;
use clap::Args;
use remora_host::{Error, ErrorKind, Origin, Plugin, Session, SessionOptions, ToolError};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::span::Days;
use super::{ask, can_ask, counted};
use crate::cli::context::Context;
use crate::cli::failure::{Exit, Failure};
use crate::cli::memory::{Shown, header};
use crate::cli::{visible, words};

/// The most that the tool returns at once.
const PAGE: u64 = 200;
/// Bytes of a decision's line: the largest content, every byte of it escaped.
const LINE_BYTES: usize = 4 * 1024 * 1024;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  remora review
  remora --taint confidential review --limit 5
  remora review --json < /dev/null
  echo '{\"key\": \"deploy\", \"do\": \"keep\"}' | remora review --json

On a terminal it shows one memory after the other and asks. With --json it prints the
queue, a line for each memory, then reads decisions from standard input, a line each:
  {\"key\": …, \"do\": \"keep\" | \"skip\" | \"delete\"}
  {\"key\": …, \"do\": \"replace\", \"content\": …, \"source\": …}
  {\"key\": …, \"do\": \"expire\", \"expires_in\": \"7d\"}    or expires_at; else within a minute
and answers each with a line. It sees what a session at --taint, or else PUBLIC, sees, and
changes its own level: review the levels below one by one.")]
pub(crate) struct ReviewArgs {
    /// The most memories to go through
    #[arg(long, value_name = "N", default_value_t = 20,
          value_parser = clap::value_parser!(u64).range(1..=10_000))]
    limit: u64,
    /// Only memories neither saved nor confirmed for so many days: 90, or 12w
    #[arg(long, value_name = "DAYS", default_value = "90")]
    older_than: Days,
}

/// What to do with one memory.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Decision {
    key: String,
    #[serde(rename = "do")]
    what: What,
    content: Option<String>,
    source: Option<String>,
    expires_in: Option<String>,
    expires_at: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum What {
    Keep,
    Replace,
    Expire,
    Delete,
    Skip,
}

impl What {
    const fn name(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Replace => "replace",
            Self::Expire => "expire",
            Self::Delete => "delete",
            Self::Skip => "skip",
        }
    }
}

impl Decision {
    fn new(key: &str, what: What) -> Self {
        Self {
            key: key.to_owned(),
            what,
            content: None,
            source: None,
            expires_in: None,
            expires_at: None,
        }
    }

    /// Refuses what belongs to another decision: it would be lost.
    fn check(&self) -> Result<(), Error> {
        let expiry = self.expires_in.is_some() || self.expires_at.is_some();
        let wrong = match self.what {
            What::Replace if self.content.is_none() => Some("replace needs content"),
            What::Keep | What::Expire | What::Delete | What::Skip if self.content.is_some() => {
                Some("only replace takes content")
            }
            What::Expire | What::Delete | What::Skip if self.source.is_some() => {
                Some("only keep and replace take a source")
            }
            What::Keep | What::Delete | What::Skip if expiry => {
                Some("only expire and replace take expires_in or expires_at")
            }
            _ => None,
        };
        match wrong {
            Some(wrong) => Err(Error::invalid(
                format!(
                    "The decision on \"{}\" is not whole",
                    self.key.escape_debug()
                ),
                wrong,
                "See `remora review --help`",
            )),
            None => Ok(()),
        }
    }
}

/// A page of the queue.
#[derive(Debug, Deserialize)]
struct Queue {
    memories: Vec<Map<String, Value>>,
    more: bool,
    truncated: bool,
}

/// The queue as far as it was fetched.
struct Review<'a> {
    session: Session,
    plugin: &'a Plugin,
    days: u64,
    /// Keys that were offered in this run: they don't come again in it.
    offered: BTreeSet<String>,
}

impl Review<'_> {
    fn invoke(&self, tool: &str, arguments: &Value) -> Result<Value, ToolError> {
        invoke(self.plugin, &self.session, tool, arguments)
    }

    /// The next memories that this run has not offered, at most so many; and
    /// whether there are more behind.
    fn next(&mut self, most: u64) -> anyhow::Result<(Vec<Map<String, Value>>, bool)> {
        // What was skipped stands before the rest.
        let offered = u64::try_from(self.offered.len()).unwrap_or(PAGE);
        let limit = most.saturating_add(offered).clamp(1, PAGE);
        let arguments = json!({ "older_than_days": self.days, "limit": limit });
        let answer = self.invoke("memory_review", &arguments)?;
        let queue: Queue = serde_json::from_value(answer)
            .context("The answer of memory_review is not understood")?;
        let mut fresh = queue.memories;
        let fetched = fresh.len();
        fresh.retain(|memory| !self.offered.contains(text(memory, "key")));
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let left = fresh.len() > most;
        fresh.truncate(most);
        for memory in &fresh {
            self.offered.insert(text(memory, "key").to_owned());
        }
        Ok((
            fresh,
            left || queue.more || (queue.truncated && fetched > 0),
        ))
    }

    /// Does what was decided.
    fn apply(&self, decision: &Decision) -> anyhow::Result<Value> {
        decision.check()?;
        let key = &decision.key;
        match decision.what {
            What::Keep => {
                let mut arguments = json!({ "key": key });
                put(&mut arguments, "source", &decision.source);
                Ok(self.invoke("memory_confirm", &arguments)?)
            }
            What::Delete => Ok(self.invoke("memory_delete", &json!({ "key": key }))?),
            What::Skip => Ok(json!({})),
            What::Replace => {
                let memory = self.whole(key)?;
                let mut arguments = json!({
                    "key": key,
                    "content": decision.content,
                    "tags": memory["tags"],
                });
                put(&mut arguments, "source", &decision.source);
                put(&mut arguments, "expires_in", &decision.expires_in);
                put(&mut arguments, "expires_at", &decision.expires_at);
                Ok(self.invoke("memory_save", &arguments)?)
            }
            What::Expire => self.expire(decision),
        }
    }

    /// Saves the same words again with an end. They are no more trusted for that
    /// than they were: who decides when they end has not said them.
    fn expire(&self, decision: &Decision) -> anyhow::Result<Value> {
        let memory = self.whole(&decision.key)?;
        let state = self.session.state()?;
        let level = memory["classification"].as_str().unwrap_or_default();
        if level != state.taint.name() {
            return Err(Error::new(
                ErrorKind::NoSuchRecordAtLevel,
                format!(
                    "\"{}\" is a memory of {level}, and the session is at {}",
                    decision.key.escape_debug(),
                    state.taint
                ),
                "A session changes its own level only",
                format!("Review {level} by itself, with --taint {level}"),
            )
            .into());
        }
        let origin: Origin = memory["origin"].as_str().unwrap_or_default().parse()?;
        let session = if state.observed.is_some() {
            // It writes no more, and the tool says so.
            self.session.clone()
        } else {
            self.session.store().one_shot(
                &SessionOptions::new(&state.agent)
                    .clearance(state.clearance)
                    .taint(state.taint)
                    .origin(state.origin.meet(origin)),
            )?
        };
        let mut arguments = json!({
            "key": decision.key,
            "content": memory["content"],
            "tags": memory["tags"],
        });
        let source = memory["source"].as_str().map(str::to_owned);
        put(&mut arguments, "source", &source);
        put(&mut arguments, "expires_in", &decision.expires_in);
        put(&mut arguments, "expires_at", &decision.expires_at);
        if decision.expires_in.is_none() && decision.expires_at.is_none() {
            // The least that the tool takes: an end lies ahead.
            put(&mut arguments, "expires_in", &Some("1m".to_owned()));
        }
        Ok(invoke(self.plugin, &session, "memory_save", &arguments)?)
    }

    fn whole(&self, key: &str) -> anyhow::Result<Value> {
        let memory = self.invoke("memory_get", &json!({ "key": key }))?;
        if memory["found"] != true {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!(
                    "There is no memory \"{}\" that this session can see",
                    key.escape_debug()
                ),
                "",
                "Take the key from the queue",
            )
            .into());
        }
        Ok(memory)
    }
}

fn invoke(
    plugin: &Plugin,
    session: &Session,
    tool: &str,
    arguments: &Value,
) -> Result<Value, ToolError> {
    let answer = plugin.invoke(session, tool, &arguments.to_string())?;
    serde_json::from_str(&answer).map_err(|error| ToolError {
        code: ErrorKind::Plugin.code().to_owned(),
        message: format!("The answer of {tool} is not understood: {error}."),
    })
}

fn put(arguments: &mut Value, name: &str, value: &Option<String>) {
    if let (Some(arguments), Some(value)) = (arguments.as_object_mut(), value) {
        arguments.insert(name.to_owned(), value.as_str().into());
    }
}

fn text<'a>(memory: &'a Map<String, Value>, name: &str) -> &'a str {
    memory.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn run(context: &mut Context<'_>, args: &ReviewArgs) -> anyhow::Result<Exit> {
    let json = context.globals.json;
    if !json && !can_ask() {
        return Err(Error::invalid(
            "Nobody can be asked: there is no terminal",
            "A review asks on a terminal; over a pipe it wants --json, prints the queue and reads \
             decisions from standard input",
            "Add --json",
        )
        .into());
    }
    // Looked for first: a review should not make a store.
    super::existing(context)?;
    let session = context.session()?;
    let plugin = context.plugin()?;
    let days = args.older_than.0.length().as_secs() / (24 * 60 * 60);
    let mut review = Review {
        session,
        plugin: &plugin,
        days,
        offered: BTreeSet::new(),
    };
    if json {
        over_a_pipe(context, &mut review, args.limit)
    } else {
        with_a_person(context, &mut review, args.limit)
    }
}

fn over_a_pipe(
    context: &mut Context<'_>,
    review: &mut Review<'_>,
    limit: u64,
) -> anyhow::Result<Exit> {
    let mut left = limit;
    let mut more = true;
    while left > 0 && more {
        let (memories, behind) = review.next(left)?;
        more = behind;
        if memories.is_empty() {
            break;
        }
        left = left.saturating_sub(u64::try_from(memories.len()).unwrap_or(u64::MAX));
        for memory in memories {
            let mut line = Map::new();
            line.insert("type".to_owned(), "memory".into());
            line.extend(memory);
            context.console.line(&Value::Object(line).to_string())?;
        }
    }
    let end = json!({
        "type": "queue",
        "memories": review.offered.len(),
        "more": more,
    });
    context.console.line(&end.to_string())?;
    context.console.flush()?;
    if io::stdin().is_terminal() {
        return Ok(Exit::Done);
    }
    let mut exit = Exit::Done;
    let mut input = io::stdin().lock();
    let mut number = 0_u64;
    loop {
        number = number.saturating_add(1);
        let Some(line) = read_line(&mut input)? else {
            break;
        };
        if line.trim_ascii().is_empty() {
            continue;
        }
        let decision = serde_json::from_slice::<Decision>(line.trim_ascii());
        let (key, what) = match &decision {
            Ok(decision) => (Some(decision.key.clone()), Some(decision.what.name())),
            Err(_) => (None, None),
        };
        let done = decision
            .map_err(|error| {
                anyhow::Error::from(Error::invalid(
                    format!("Decision {number} can't be read: {error}"),
                    "A decision is a JSON object with key and do",
                    "See `remora review --help`",
                ))
            })
            .and_then(|decision| review.apply(&decision));
        let mut said = json!({ "type": "decision", "key": key, "do": what });
        let answer = match done {
            Ok(answer) => ("answer", answer),
            Err(error) => {
                let failure = Failure::of(&error);
                if exit == Exit::Done {
                    exit = failure.exit();
                }
                ("error", failure.in_json())
            }
        };
        if let Some(said) = said.as_object_mut() {
            said.insert("done".to_owned(), (answer.0 == "answer").into());
            said.insert(answer.0.to_owned(), answer.1);
        }
        context.console.line(&said.to_string())?;
        context.console.flush()?;
    }
    Ok(exit)
}

/// A line without its end; none behind the last.
fn read_line(input: &mut impl io::BufRead) -> anyhow::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let most = u64::try_from(LINE_BYTES).unwrap_or(u64::MAX);
    let mut bounded = io::Read::take(&mut *input, most);
    if bounded.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.len() == LINE_BYTES && line.last() != Some(&b'\n') {
        return Err(Error::new(
            ErrorKind::TooLarge,
            format!("A decision is longer than {LINE_BYTES} bytes"),
            "A decision is one line",
            "End each with a line end",
        )
        .into());
    }
    Ok(Some(line))
}

fn with_a_person(
    context: &mut Context<'_>,
    review: &mut Review<'_>,
    limit: u64,
) -> anyhow::Result<Exit> {
    let own = review.session.state()?.taint;
    let mut did: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut left = limit;
    let mut more = true;
    'queue: while left > 0 && more {
        let (memories, behind) = review.next(left)?;
        more = behind;
        if memories.is_empty() {
            break;
        }
        for memory in memories {
            left = left.saturating_sub(1);
            let shown: Shown = serde_json::from_value(Value::Object(memory))
                .context("A memory of the queue is not understood")?;
            show(context, &shown)?;
            let is_own = shown.classification == own.name();
            loop {
                let Some(decision) = decide(context, &shown, is_own, own.name())? else {
                    more = true;
                    break 'queue;
                };
                match review.apply(&decision) {
                    Ok(answer) => {
                        let count = did.entry(decision.what.name()).or_insert(0);
                        *count = count.saturating_add(1);
                        crate::cli::memory::notices(context, &answer)?;
                        break;
                    }
                    Err(error) => {
                        // Asked again: there is mostly another thing to do.
                        Failure::of(&error)
                            .in_words_of(words::of_the_command_line)
                            .report(&mut context.console, false);
                    }
                }
            }
        }
    }
    let said: Vec<String> = did
        .iter()
        .map(|(what, number)| format!("{number} {what}"))
        .collect();
    context.console.line("")?;
    let done = did.values().copied().fold(0, u64::saturating_add);
    context.console.line(&format!(
        "Reviewed {}{}{}.{}",
        counted(done, "memory", "memories"),
        if said.is_empty() { "" } else { ": " },
        said.join(", "),
        if more {
            " There are more: run it again."
        } else if done == 0 {
            " Nothing waits for a review at this level."
        } else {
            ""
        },
    ))?;
    Ok(Exit::Done)
}

fn show(context: &mut Context<'_>, shown: &Shown) -> anyhow::Result<()> {
    context.console.line("")?;
    header(&mut context.console, shown)?;
    context.console.line("")?;
    let content = visible::block(&shown.content);
    context
        .console
        .line(content.strip_suffix('\n').unwrap_or(&content))?;
    if shown.content_truncated {
        context
            .console
            .line("… That is its beginning; `remora get` shows all of it.")?;
    }
    context.console.line("")?;
    Ok(())
}

/// What the person says. None: enough for now.
fn decide(
    context: &mut Context<'_>,
    shown: &Shown,
    is_own: bool,
    own: &str,
) -> anyhow::Result<Option<Decision>> {
    if !is_own {
        context.console.note(&format!(
            "it is a memory of {}, and this session is at {own}: to keep it is said at {own} and \
             seen from there up, a replacement stands at {own} and hides it there. To expire or \
             delete it, review {} by itself.",
            shown.classification, shown.classification
        ))?;
    }
    let question = if is_own {
        "[k]eep, [r]eplace, [e]xpire, [d]elete, [s]kip, [q]uit? "
    } else {
        "[k]eep, [r]eplace, [s]kip, [q]uit? "
    };
    loop {
        let Some(answer) = ask(context, question)? else {
            return Ok(None);
        };
        let key = &shown.key;
        match answer.to_lowercase().as_str() {
            "k" | "keep" => return Ok(Some(Decision::new(key, What::Keep))),
            "s" | "skip" => return Ok(Some(Decision::new(key, What::Skip))),
            "d" | "delete" if is_own => return Ok(Some(Decision::new(key, What::Delete))),
            "q" | "quit" => return Ok(None),
            "r" | "replace" => {
                let words = ask(context, "What is true now (one line; empty: leave it)? ")?;
                let Some(words) = words.filter(|words| !words.is_empty()) else {
                    continue;
                };
                let source = ask(context, "Where is that from (may be empty)? ")?;
                let mut decision = Decision::new(key, What::Replace);
                decision.content = Some(words);
                decision.source = source.filter(|source| !source.is_empty());
                return Ok(Some(decision));
            }
            "e" | "expire" if is_own => {
                let when = ask(
                    context,
                    "When (7d, 12h, a day such as 2027-01-31; empty: within a minute)? ",
                )?;
                let mut decision = Decision::new(key, What::Expire);
                match when.filter(|when| !when.is_empty()) {
                    Some(when) if when.contains('-') => decision.expires_at = Some(when),
                    when => decision.expires_in = when,
                }
                return Ok(Some(decision));
            }
            _ => {}
        }
    }
}
