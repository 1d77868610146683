//! `shoal chat`: a conversation with a language model, in the terminal or from a script.

use std::io::{BufRead, IsTerminal, Read, Write, stdin, stdout};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Context;
use crate::args::Chat;
use crate::client::Client;
use crate::fail::Fail;
use crate::interrupt::Interrupts;
use crate::show;

/// A prompt from a pipe: more than any model reads.
const MOST_PROMPT_BYTES: u64 = 8 << 20;
const HELP: &str = "\
/reset   begin a new conversation
/system TEXT   begin a new conversation with these instructions
/again   answer the last question again
/quit    end the chat (Ctrl-D does the same)
Ctrl-C stops an answer; at the prompt it ends the chat.";

pub(super) async fn run(context: &Context, args: Chat) -> Result<(), Fail> {
    let interrupts = Interrupts::listen();
    let client = context.client(&args.server)?;
    let model = client.language(&args.model).await?;
    if model["shoal"]["chats"] == false {
        let message = format!(
            "{} has no chat template; it can only continue texts: use POST /v1/completions",
            args.model
        );
        return Err(Fail::Input { code: "no_chat_template".into(), message });
    }
    let mut talk = Talk::new(client, &args, context.json);
    if let Some(prompt) = alone(&args)? {
        let answer = interrupts.guard(talk.ask(prompt, &interrupts)).await?;
        return talk.end_alone(&answer);
    }
    if context.json {
        return Err(Fail::input("--json needs a prompt, as an argument or on stdin"));
    }
    show::line(&format!("{}: /help for help", args.model))?;
    talk.converse(&interrupts).await
}

/// The prompt of somebody who has one question only.
fn alone(args: &Chat) -> Result<Option<String>, Fail> {
    if !args.prompt.is_empty() {
        return Ok(Some(args.prompt.join(" ")));
    }
    if stdin().is_terminal() {
        return Ok(None);
    }
    let mut prompt = String::new();
    let read = stdin().take(MOST_PROMPT_BYTES).read_to_string(&mut prompt);
    read.map_err(|error| Fail::input(format!("stdin cannot be read as text: {error}")))?;
    if prompt.trim().is_empty() {
        return Err(Fail::input("the prompt on stdin is empty"));
    }
    Ok(Some(prompt.trim_end_matches('\n').to_owned()))
}

struct Talk<'a> {
    client: Client,
    args: &'a Chat,
    quiet: bool,
    system: Option<String>,
    messages: Vec<Value>,
}

/// What came of a question.
#[derive(Default)]
struct Answer {
    text: String,
    finish: Option<String>,
    usage: Value,
    timings: Value,
    first: Option<Duration>,
    took: Duration,
    stopped: bool,
}

/// What a line of the user means.
enum Line {
    Say(String),
    Again,
    Reset(Option<String>),
    Help,
    Quit,
    Unknown(String),
    Nothing,
}

impl<'a> Talk<'a> {
    fn new(client: Client, args: &'a Chat, quiet: bool) -> Talk<'a> {
        Talk { client, args, quiet, system: args.system.clone(), messages: Vec::new() }
    }

    async fn converse(&mut self, interrupts: &Interrupts) -> Result<(), Fail> {
        loop {
            let seen = interrupts.count();
            let line = tokio::select! {
                line = tokio::task::spawn_blocking(next_line) => line.unwrap_or(Ok(None))?,
                // Whoever waits for a line waits in a thread that nothing ends but the process.
                () = interrupts.after(seen) => {
                    write_out("\n");
                    std::process::exit(0);
                }
            };
            let Some(line) = line else { return Ok(()) };
            let prompt = match read(&line) {
                Line::Say(prompt) => prompt,
                Line::Again => match self.take_back() {
                    Some(prompt) => prompt,
                    None => continue,
                },
                Line::Reset(system) => {
                    self.messages.clear();
                    self.system = system.or(self.system.take());
                    continue;
                }
                Line::Help => {
                    show::line(HELP)?;
                    continue;
                }
                Line::Unknown(word) => {
                    show::line(&format!("{word} is not a command; /help lists all commands"))?;
                    continue;
                }
                Line::Quit => return Ok(()),
                Line::Nothing => continue,
            };
            match self.ask(prompt, interrupts).await {
                Ok(answer) => {
                    write_out("\n");
                    eprintln!("{}", answer.told());
                }
                // The conversation goes on; what was refused is not part of it.
                Err(fail) => {
                    self.messages.pop();
                    fail.report(false);
                }
            }
        }
    }

    /// The last question, as if it had not been asked.
    fn take_back(&mut self) -> Option<String> {
        while let Some(message) = self.messages.pop() {
            if message["role"] == "user" {
                return message["content"].as_str().map(str::to_owned);
            }
        }
        None
    }

    async fn ask(&mut self, prompt: String, interrupts: &Interrupts) -> Result<Answer, Fail> {
        self.messages.push(json!({"role": "user", "content": prompt}));
        let body = self.body();
        let (began, seen) = (Instant::now(), interrupts.count());
        let _hold = interrupts.hold();
        let mut answer = Answer::default();
        let quiet = self.quiet;
        let speaking = self.client.chat(&body, |part| answer.hear(part, began, quiet));
        let ended = tokio::select! {
            ended = speaking => Some(ended),
            // Dropping the connection stops the node.
            () = interrupts.after(seen) => None,
        };
        answer.stopped = ended.is_none();
        ended.unwrap_or(Ok(()))?;
        answer.took = began.elapsed();
        self.messages.push(json!({"role": "assistant", "content": answer.text}));
        Ok(answer)
    }

    fn body(&self) -> Value {
        let system = self.system.iter().map(|text| json!({"role": "system", "content": text}));
        let messages: Vec<Value> = system.chain(self.messages.iter().cloned()).collect();
        let Chat { model, temperature, top_p, top_k, max_tokens, .. } = self.args;
        // Where an answer breaks off, the same words are asked for again.
        let seed = self.args.seed.or_else(|| getrandom::u32().ok().map(u64::from));
        let mut body = json!({
            "model": model, "messages": messages, "stream": true,
            "stream_options": {"include_usage": true}, "temperature": temperature,
            "top_p": top_p, "top_k": top_k, "seed": seed, "max_completion_tokens": max_tokens,
        });
        if let Some(fields) = body.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
        body
    }

    fn end_alone(&self, answer: &Answer) -> Result<(), Fail> {
        if self.quiet {
            return show::json(&json!({
                "model": self.args.model, "content": answer.text, "finish": answer.finish,
                "usage": answer.usage, "timings": answer.timings,
                "firstTokenSeconds": answer.first.map(|first| first.as_secs_f64()),
            }));
        }
        if !answer.text.ends_with('\n') {
            write_out("\n");
        }
        eprintln!("{}", answer.told());
        if answer.stopped {
            return Err(Fail::Interrupted { message: "interrupted".into() });
        }
        Ok(())
    }
}

impl Answer {
    fn hear(&mut self, part: &Value, began: Instant, quiet: bool) -> Result<(), Fail> {
        let choice = &part["choices"][0];
        if let Some(text) = choice["delta"]["content"].as_str().filter(|text| !text.is_empty()) {
            self.first.get_or_insert_with(|| began.elapsed());
            self.text += text;
            if !quiet {
                let mut out = stdout().lock();
                let said = out.write_all(show::harmless(text).as_bytes());
                said.and_then(|()| out.flush())
                    .map_err(|error| Fail::world("stdout", format!("stdout: {error}")))?;
            }
        }
        if let Some(finish) = choice["finish_reason"].as_str() {
            self.finish = Some(finish.to_owned());
        }
        if part["usage"].is_object() {
            self.usage = part["usage"].clone();
            self.timings = part["timings"].clone();
        }
        Ok(())
    }

    /// How it went, in a line.
    fn told(&self) -> String {
        let count = self.usage["completion_tokens"].as_u64();
        let mut told = match (count, self.timings["predicted_per_second"].as_f64()) {
            (Some(count), Some(rate)) => format!("[{count} tokens, {rate:.1} tokens/s"),
            (Some(count), None) => format!("[{count} tokens"),
            (None, _) => format!("[{}", show::duration(self.took.as_secs_f64())),
        };
        if let Some(first) = self.first {
            told += &format!(", first after {}", show::duration(first.as_secs_f64()));
        }
        if let Some(before @ 1..) = self.timings["taken_over_n"].as_u64() {
            told += &format!(", interrupted after {before} and continued");
        }
        match self.finish.as_deref() {
            _ if self.stopped => told + ", stopped]",
            Some("length") => told + ", cut off at the most tokens]",
            _ => told + "]",
        }
    }
}

/// At once. Where nobody reads, nothing is lost by it.
fn write_out(text: &str) {
    let mut out = stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// The next line of the user; none at the end.
fn next_line() -> Result<Option<String>, Fail> {
    write_out("> ");
    let mut line = String::new();
    let read = stdin().lock().read_line(&mut line);
    match read.map_err(|error| Fail::input(format!("stdin cannot be read: {error}")))? {
        0 => Ok(None),
        _ => Ok(Some(line)),
    }
}

fn read(line: &str) -> Line {
    let line = line.trim();
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    match word {
        "" => Line::Nothing,
        "/help" => Line::Help,
        "/reset" => Line::Reset(None),
        "/system" => Line::Reset(Some(rest.trim().to_owned())),
        "/again" => Line::Again,
        "/quit" | "/exit" => Line::Quit,
        word if word.starts_with('/') && word.len() > 1 => Line::Unknown(word.to_owned()),
        _ => Line::Say(line.to_owned()),
    }
}
