//! What guessing the next tokens gains here: for texts of several sorts, answers with and without guesses in turns, as a
//! JSON object a line. `faster` is the median of the ratios of both times (of this thread alone, where the system
//! counts it), `sum` the ratio of their sums, `rows` what steps of 1 to 9 tokens cost, in
//! steps of one. The words must be the same.
//!
//! `llm-guesses MODEL.gguf [--threads N] [--rounds N] [--most N]`

#![allow(clippy::print_stdout, reason = "what it prints is read by another program")]

use std::error::Error;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use shoal_engine::llm::{Computes, Conversations, Heard, Holds, Options, Room, Stage, Step, Whole};
use shoal_gguf::Model;
use shoal_text::{
    Ask, Asked, Bounds, Done, Form, Json, Message, Role, Said, Sampling, Spelling, Texts, Token,
    Words,
};

const CONTEXT: u32 = 2048;
const SCHEMA: &str = r#"{"type": "array", "minItems": 4, "maxItems": 4, "items": {"type": "object", "properties": {
    "name": {"type": "string", "maxLength": 20}, "length": {"type": "integer", "minimum": 1, "maximum": 500},
    "lives": {"enum": ["sea", "river", "lake"]}}, "required": ["name", "length", "lives"]}}"#;
const CODE: &str = "def total(values):\n    result = 0\n    for value in values:\n        result += value\n    return result\n\n\
    def largest(values):\n    result = values[0]\n    for value in values:\n        if value > result:\n            result = value\n    return result\n";

/// Sorts of texts: a name, what is asked, and whether the answer is JSON by the schema.
const SORTS: [(&str, &str, bool); 5] = [
    ("story", "Tell me a long story about a fish.", false),
    ("prose", "Explain in a few paragraphs why the sea is salt.", false),
    ("code", "Write Python functions that give the smallest and the mean of a list.", false),
    ("edit", "Write this code again, with `values` renamed to `numbers`:\n\n", false),
    ("json", "List four fish as JSON with name, length in cm and where each lives.", true),
];

struct Here {
    model: Model,
    file: Arc<Vec<u8>>,
    texts: Texts,
    spelling: Arc<Spelling>,
    threads: usize,
    most: u32,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("which model?")?;
    let (mut threads, mut rounds, mut most) = (1, 5, 200);
    while let Some(word) = args.next() {
        let value = args.next().ok_or("a value is missing")?;
        match word.as_str() {
            "--threads" => threads = value.parse()?,
            "--rounds" => rounds = value.parse()?,
            "--most" => most = value.parse()?,
            other => return Err(format!("{other} is not known").into()),
        }
    }
    let file = std::fs::read(&path)?;
    let model = Model::read(file.clone(), file.len() as u64)?;
    let texts = Texts::read(model.head())?;
    let spelling = Arc::new(Spelling::new(&texts.tokenizer));
    let here = Here { model, file: Arc::new(file), texts, spelling, threads, most };
    println!("{{\"rows\":{:?}}}", here.rows()?);
    for (name, text, is_json) in SORTS {
        for temperature in [0.0, 0.8] {
            let asked = here.asked(text, is_json, temperature)?;
            let (mut ratios, mut last, mut sums) = (Vec::new(), None, [0.0; 2]);
            for _ in 0..rounds {
                let (plain, slow, _) = here.answer(&asked, false)?;
                let (words, quick, done) = here.answer(&asked, true)?;
                if words != plain {
                    return Err(format!("{name}: the words are not the same").into());
                }
                ratios.push(slow / quick);
                sums = [sums[0] + slow, sums[1] + quick];
                last = Some((words.len(), done));
            }
            ratios.sort_by(f64::total_cmp);
            let (tokens, done) = last.ok_or("no rounds")?;
            let (faster, Done { guessed, right, .. }) = (ratios[ratios.len() / 2], done);
            println!(
                "{{\"text\":\"{name}\",\"temperature\":{temperature},\"tokens\":{tokens},\"guessed\":{guessed},\"right\":{right},\"faster\":{faster:.3},\"sum\":{:.3}}}",
                sums[0] / sums[1]
            );
        }
    }
    Ok(())
}

/// How long this thread has had a core, in microseconds: what else runs on the machine does not count.
fn on_a_core() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split(' ').next()?.parse::<f64>().ok()? / 1e3)
}

impl Here {
    fn whole(&self) -> Result<Whole, Box<dyn Error>> {
        let options =
            Options { threads: self.threads, context: CONTEXT, sequences: 1, kernel: None };
        let file = self.file.clone();
        let mut read = |at: Range<u64>| Ok(file[at.start as usize..at.end as usize].to_vec());
        Ok(Whole::new(Stage::load(&self.model, self.model.whole(), &options, &mut read)?))
    }

    fn asked(&self, text: &str, json: bool, temperature: f32) -> Result<Asked, Box<dyn Error>> {
        let content = if text.ends_with("\n\n") { format!("{text}{CODE}") } else { text.into() };
        let tokenizer = &self.texts.tokenizer;
        let prompt = match &self.texts.template {
            Some(template) => {
                let rendered = template.render(&[Message { role: Role::User, content }], 0)?;
                tokenizer.encode_rendered(&rendered)?
            }
            None => tokenizer.encode(&content)?,
        };
        let form = match json {
            true => Some(Form::of_schema(&Json::read(SCHEMA).ok_or("no schema")?)?),
            false => None,
        };
        let sampling = Sampling { temperature, seed: 7, ..Sampling::default() };
        let ends = tokenizer.words().ends().to_vec();
        let ask = Ask { prompt, most: self.most, ends, sampling, form, embed: None, guess: true };
        Ok(Asked { ask, said: Vec::new() })
    }

    /// The words, the time from the first to the last, and what was counted.
    fn answer(
        &self,
        asked: &Asked,
        guesses: bool,
    ) -> Result<(Vec<Token>, f64, Done), Box<dyn Error>> {
        let bounds = Bounds { words: self.model.config().vocab, context: CONTEXT, step: 128 };
        let room = Room { seats: 1, tokens: 512, guesses };
        let spelling = Some(self.spelling.clone());
        let mut talk = Conversations::new(self.whole()?, bounds, room, spelling);
        talk.ask(1, asked.clone());
        let start = Instant::now();
        let (mut words, mut tokens, mut first) = (Words::default(), Vec::new(), None);
        while !talk.is_idle() {
            for (_, heard) in talk.go(&|| start.elapsed().as_micros() as u64) {
                match heard {
                    Heard::Part(bytes) | Heard::Done(bytes) => words.push(&bytes),
                    Heard::Failed(why) | Heard::Broke(why) => return Err(why.into()),
                }
            }
            while let Some(said) = words.take()? {
                match said {
                    Said::Token(chosen) => {
                        tokens.push(chosen.token);
                        first = first.or_else(on_a_core);
                    }
                    Said::Done(done) => {
                        let took = on_a_core().zip(first).map(|(end, first)| end - first);
                        return Ok((tokens, took.unwrap_or(done.answer_micros as f64), done));
                    }
                    Said::Embedding(_) => return Err("numbers".into()),
                }
            }
        }
        Err("no end".into())
    }

    /// Medians of what steps of 1 to 9 tokens take behind 200 others, in steps of one.
    fn rows(&self) -> Result<Vec<f64>, Box<dyn Error>> {
        let mut whole = self.whole()?;
        let step = |position: u32, count: usize| {
            let tokens = (0..count as u32).map(|at| at * 7919 % 3_000).collect();
            Step { sequence: 1, position, tokens, wants: count }
        };
        whole.run(&[step(0, 200)])?;
        let mut times = vec![Vec::new(); 9];
        for _ in 0..40 {
            for (at, times) in times.iter_mut().enumerate() {
                let start = Instant::now();
                whole.run(&[step(200, at + 1)])?;
                times.push(start.elapsed().as_secs_f64());
                whole.truncate(1, 200)?;
            }
        }
        let medians: Vec<f64> = times
            .into_iter()
            .map(|mut times| {
                times.sort_by(f64::total_cmp);
                times[times.len() / 2]
            })
            .collect();
        Ok(medians.iter().map(|it| (it / medians[0] * 100.0).round() / 100.0).collect())
    }
}
