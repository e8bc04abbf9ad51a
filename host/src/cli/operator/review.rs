//! `review`: going through what waits for a person, and then through what nobody
//! has confirmed for longest.
//!
//! What waits on the session's own level is shown first, whole, to be accepted or
//! refused. That is the operator's, and no tool's: see
//! `remora_host::storage::sqlite::operator`.
//!
//! For the rest it sees and changes what a session at `--taint` sees and changes, through the
//! same tools. Whatever is decided takes a memory off the queue, so a review that
//! was broken off goes on where it stopped; what is skipped comes again the next
//! time.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead as _, IsTerminal as _};

use anyhow::Context as _;
use clap::Args;
use remora_host::storage::SqliteStorage;
use remora_host::storage::sqlite::operator::Waiting;
use remora_host::{Error, ErrorKind, Instant, Origin, Plugin, Session, SessionOptions, ToolError};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::span::Days;
use super::{ask, can_ask, counted, now};
use crate::cli::context::Context;
use crate::cli::failure::{Exit, Failure};
use crate::cli::memory::{Shown, header};
use crate::cli::text::{fields, when};
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
  {\"id\": …, \"do\": \"accept\" | \"refuse\" | \"skip\"}     of what waits
and answers each with a line. It sees what a session at --taint, or else PUBLIC, sees, and
changes its own level: review the levels below one by one.

What waits comes first: what the model saved over the person's own words (pending), and
what a tool said (quarantined). Accepted, it takes its key's place as if the person had
saved it, and is served; its origin stays, so the model may change its own words later.
To make words the person's own, save them. Refused, it is deleted.")]
pub(crate) struct ReviewArgs {
    /// The most memories to go through, of those that wait and of the others
    #[arg(long, value_name = "N", default_value_t = 20,
          value_parser = clap::value_parser!(u64).range(1..=10_000))]
    limit: u64,
    /// Only memories neither saved nor confirmed for so many days: 90, or 12w
    #[arg(
        long,
        allow_hyphen_values = true,
        value_name = "DAYS",
        default_value = "90"
    )]
    older_than: Days,
}

/// What to do with one memory.
#[derive(Debug, Default)]
struct Decision {
    /// Which memory.
    key: Option<String>,
    /// Which of those that wait: of one key there may be several.
    id: Option<String>,
    what: What,
    content: Option<String>,
    source: Option<String>,
    expires_in: Option<String>,
    expires_at: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum What {
    Keep,
    Replace,
    Expire,
    Delete,
    #[default]
    Skip,
    Accept,
    Refuse,
}

impl What {
    const ALL: [Self; 7] = [
        Self::Keep,
        Self::Replace,
        Self::Expire,
        Self::Delete,
        Self::Skip,
        Self::Accept,
        Self::Refuse,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Replace => "replace",
            Self::Expire => "expire",
            Self::Delete => "delete",
            Self::Skip => "skip",
            Self::Accept => "accept",
            Self::Refuse => "refuse",
        }
    }
}

/// The fields of a JSON object as they stand, each time they stand there.
struct Fields(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Fields;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

impl Decision {
    fn new(key: &str, what: What) -> Self {
        Self {
            key: Some(key.to_owned()),
            what,
            ..Self::default()
        }
    }

    /// Reads the line with that number.
    fn read(line: &[u8], number: u64) -> Result<Self, Error> {
        let wrong = |what: String| {
            Error::invalid(
                what,
                "A decision is a JSON object with key (or id, of what waits) and do, and with \
                 content, source, expires_in or expires_at where do takes them, each a text",
                "See `remora review --help`",
            )
        };
        let fields: Fields = serde_json::from_slice(line).map_err(|error| {
            wrong(if error.is_data() {
                format!("Decision {number} is no JSON object")
            } else {
                format!(
                    "Decision {number} is no JSON, from column {} on",
                    error.column()
                )
            })
        })?;
        let mut decision = Self::default();
        let mut what = None;
        for (name, value) in fields.0 {
            let place = match name.as_str() {
                "key" => &mut decision.key,
                "id" => &mut decision.id,
                "do" => &mut what,
                "content" => &mut decision.content,
                "source" => &mut decision.source,
                "expires_in" => &mut decision.expires_in,
                "expires_at" => &mut decision.expires_at,
                _ => {
                    let name = name.escape_debug();
                    return Err(wrong(format!("Decision {number} has a field \"{name}\"")));
                }
            };
            if place.is_some() {
                return Err(wrong(format!("Decision {number} has {name} twice")));
            }
            match value {
                Value::String(text) => *place = Some(text),
                // Left out.
                Value::Null if name != "key" && name != "do" => {}
                _ => return Err(wrong(format!("The {name} of decision {number} is no text"))),
            }
        }
        let Some(what) = what else {
            return Err(wrong(format!("Decision {number} does not say what to do")));
        };
        let known = What::ALL.into_iter().find(|known| known.name() == what);
        decision.what = known.ok_or_else(|| {
            let all = What::ALL.map(What::name);
            Error::invalid(
                format!(
                    "Decision {number} is to \"{}\", which is none",
                    what.escape_debug()
                ),
                format!("A decision is one of {}", all.join(", ")),
                "Choose one",
            )
        })?;
        Ok(decision)
    }

    /// The memory as it is named, for people.
    fn name(&self) -> &str {
        self.key.as_deref().or(self.id.as_deref()).unwrap_or("")
    }

    /// Refuses what belongs to another decision: it would be lost.
    fn check(&self) -> Result<(), Error> {
        let expiry = self.expires_in.is_some() || self.expires_at.is_some();
        let named = match self.what {
            What::Accept | What::Refuse => self.id.is_some() && self.key.is_none(),
            What::Skip => self.id.is_some() != self.key.is_some(),
            What::Keep | What::Replace | What::Expire | What::Delete => {
                self.key.is_some() && self.id.is_none()
            }
        };
        let wrong = match self.what {
            _ if !named => Some(
                "accept and refuse take the id of what waits, skip an id or a key, and all others \
                 the key of a memory",
            ),
            What::Replace if self.content.is_none() => Some("replace needs content"),
            What::Replace => None,
            _ if self.content.is_some() => Some("only replace takes content"),
            What::Keep if !expiry => None,
            What::Expire if self.source.is_none() => None,
            _ if self.source.is_some() && self.what != What::Keep => {
                Some("only keep and replace take a source")
            }
            _ if expiry => Some("only expire and replace take expires_in or expires_at"),
            _ => None,
        };
        match wrong {
            Some(wrong) => Err(Error::invalid(
                format!(
                    "The decision on \"{}\" is not whole",
                    self.name().escape_debug()
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
    /// The store, for what no tool does.
    storage: SqliteStorage,
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

    /// The ids of what waits on the session's own level, the oldest first, at most
    /// so many; and whether there are more.
    fn waiting(&self, most: u64) -> anyhow::Result<(Vec<String>, bool)> {
        let state = self.session.state()?;
        let operator = self.storage.operator(now());
        let mut ids = operator.waiting(&state.agent, state.taint, most.saturating_add(1))?;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let more = ids.len() > most;
        ids.truncate(most);
        Ok((ids, more))
    }

    /// One of these, unless it was answered meanwhile.
    fn waits(&self, id: &str) -> anyhow::Result<Option<Waiting>> {
        let state = self.session.state()?;
        let operator = self.storage.operator(now());
        Ok(operator.waits(&state.agent, state.taint, id)?)
    }

    /// Accepts or refuses what waits.
    fn answer(&self, id: &str, what: What) -> anyhow::Result<Value> {
        let state = self.session.state()?;
        if state.origin != Origin::User {
            return Err(Error::refused(
                format!("This session passes on the words of {}", state.origin),
                "What waits is accepted or refused by the person alone",
                "Leave --origin out, or review in another session",
            )
            .into());
        }
        let operator = self.storage.operator(now());
        let answered = if what == What::Accept {
            operator.accept(&state.agent, state.taint, id)?
        } else {
            operator.refuse(&state.agent, state.taint, id)?
        };
        Ok(serde_json::to_value(answered)?)
    }

    /// Does what was decided.
    fn apply(&self, decision: &Decision) -> anyhow::Result<Value> {
        decision.check()?;
        let key = decision.name();
        match decision.what {
            What::Accept | What::Refuse => self.answer(key, decision.what),
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
            What::Expire => self.expire(key, decision),
        }
    }

    /// Saves the same words again with an end. They are no more trusted for that
    /// than they were: who decides when they end has not said them.
    fn expire(&self, key: &str, decision: &Decision) -> anyhow::Result<Value> {
        let memory = self.whole(key)?;
        let state = self.session.state()?;
        let level = memory["classification"].as_str().unwrap_or_default();
        if level != state.taint.name() {
            return Err(Error::new(
                ErrorKind::NoSuchRecordAtLevel,
                format!(
                    "\"{}\" is a memory of {level}, and the session is at {}",
                    key.escape_debug(),
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
            "key": key,
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
    // The queue is asked for in whole days: what is younger than was said is never shown.
    let days = args.older_than.0.length().as_secs().div_ceil(24 * 60 * 60);
    let mut review = Review {
        session,
        plugin: &plugin,
        storage: super::open_existing(context)?,
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
    let (ids, waiting_more) = review.waiting(limit)?;
    let mut waiting = 0_u64;
    for id in ids {
        if let Some(record) = review.waits(&id)? {
            let mut line = serde_json::to_value(record)?;
            if let Some(line) = line.as_object_mut() {
                line.insert("type".to_owned(), "waiting".into());
            }
            context.console.line(&line.to_string())?;
            waiting = waiting.saturating_add(1);
        }
    }
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
        "waiting": waiting,
        "waiting_more": waiting_more,
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
        let decision = Decision::read(line.trim_ascii(), number);
        let mut said = json!({ "type": "decision", "key": null, "do": null });
        if let (Ok(decision), Some(said)) = (&decision, said.as_object_mut()) {
            if let Some(id) = &decision.id {
                said.insert("id".to_owned(), id.as_str().into());
            }
            said.insert("key".to_owned(), decision.key.as_deref().into());
            said.insert("do".to_owned(), decision.what.name().into());
        }
        let done = decision
            .map_err(anyhow::Error::from)
            .and_then(|decision| review.apply(&decision));
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
    let (ids, waiting_more) = review.waiting(limit)?;
    let enough = !answer_all(context, review, ids, &mut did)?;
    if enough {
        left = 0;
    }
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
        if more || waiting_more {
            " There are more: run it again."
        } else if done == 0 {
            " Nothing waits for a review at this level."
        } else {
            ""
        },
    ))?;
    Ok(Exit::Done)
}

/// Shows what waits one by one, and asks. False: enough for now.
fn answer_all(
    context: &mut Context<'_>,
    review: &Review<'_>,
    ids: Vec<String>,
    did: &mut BTreeMap<&'static str, u64>,
) -> anyhow::Result<bool> {
    for id in ids {
        // Answering one may have answered others of its key.
        let Some(waiting) = review.waits(&id)? else {
            continue;
        };
        show_waiting(context, &waiting)?;
        loop {
            let Some(answer) = ask(context, "[a]ccept, [r]efuse, [s]kip, [q]uit? ")? else {
                return Ok(false);
            };
            let what = match answer.to_lowercase().as_str() {
                "a" | "accept" => What::Accept,
                "r" | "refuse" => What::Refuse,
                "s" | "skip" => What::Skip,
                "q" | "quit" => return Ok(false),
                _ => continue,
            };
            let decision = Decision {
                id: Some(id.clone()),
                what,
                ..Decision::default()
            };
            match review.apply(&decision) {
                Ok(_) => {
                    let count = did.entry(what.name()).or_insert(0);
                    *count = count.saturating_add(1);
                    break;
                }
                Err(error) => {
                    Failure::of(&error).report(&mut context.console, false);
                }
            }
        }
    }
    Ok(true)
}

fn show_waiting(context: &mut Context<'_>, waiting: &Waiting) -> anyhow::Result<()> {
    let console = &mut context.console;
    console.line("")?;
    console.line(&format!(
        "{}  {} · {} · {}",
        visible::line(&waiting.key),
        waiting.level,
        visible::line(&waiting.origin),
        visible::line(&waiting.standing),
    ))?;
    let moment = |at: Instant| when(&at.to_string());
    let mut lines = vec![
        ("saved", moment(waiting.saved_at)),
        ("by session", visible::line(&waiting.session)),
        (
            "confirmed",
            waiting
                .confirmed_at
                .map_or_else(|| "never".to_owned(), moment),
        ),
    ];
    if let Some(expires) = waiting.expires_at {
        lines.push(("expires", moment(expires)));
    }
    let source = waiting.source.as_deref();
    lines.push((
        "source",
        source.map_or_else(|| "-".to_owned(), visible::line),
    ));
    if !waiting.tags.is_empty() {
        lines.push(("tags", visible::line(&waiting.tags.join(", "))));
    }
    if !waiting.supersedes.is_empty() {
        let number = u64::try_from(waiting.supersedes.len()).unwrap_or(u64::MAX);
        let others = counted(number, "other memory", "other memories");
        lines.push(("replaces", format!("{others} besides its key's")));
    }
    fields(console, &lines)?;
    console.line("")?;
    words_of(context, &waiting.content)?;
    if let Some(stands) = &waiting.stands {
        context.console.line("")?;
        let origin = visible::line(&stands.origin);
        if stands.is_tombstone {
            context.console.line(&format!(
                "Now the key is deleted, with what lower levels have ({origin}, {}).",
                moment(stands.saved_at)
            ))?;
        } else {
            context.console.line(&format!(
                "Now this stands there ({origin}, {}):",
                moment(stands.saved_at)
            ))?;
            words_of(context, &stands.content)?;
        }
    }
    context.console.line("")?;
    Ok(())
}

fn words_of(context: &mut Context<'_>, content: &str) -> io::Result<()> {
    let content = visible::block(content);
    context
        .console
        .line(content.strip_suffix('\n').unwrap_or(&content))
}

fn show(context: &mut Context<'_>, shown: &Shown) -> anyhow::Result<()> {
    context.console.line("")?;
    header(&mut context.console, shown)?;
    context.console.line("")?;
    words_of(context, &shown.content)?;
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
