//! Services: a request, and its answer while it comes.

use std::cell::Cell;
use std::time::{Duration, Instant};

use bytes::Bytes;
use reqwest::Method;

use super::Client;
use crate::fail::Fail;

/// A program that fails in the middle of its answer looks like a connection that breaks. Who gets no further in so many
/// tries does not meet bad luck.
const MOST_IN_PLACE: u32 = 3;

/// How a try ended.
enum End {
    Whole,
    /// In the middle, with what the connection said.
    Broke(Fail),
}

impl Client {
    /// A request to a service, which is answered within so many milliseconds or not at all. Hands the answer to
    /// `each` while it comes. Where it breaks off, it asks again and goes on behind what was handed on.
    pub(crate) async fn ask(
        &self,
        name: &str,
        (body, millis): (Vec<u8>, u64),
        mut each: impl FnMut(&[u8]) -> Result<(), Fail>,
    ) -> Result<(), Fail> {
        let (path, body) = (format!("/api/v1/services/{name}"), Bytes::from(body));
        // Behind half a line of the answer it would not be seen.
        let is_begun = Cell::new(false);
        let note = |text: &str| match is_begun.get() {
            true => self.note(&format!("\n[{text}]")),
            false => self.note(text),
        };
        let (mut tries, mut shown, mut in_place) = (self.tries(&note), Shown::default(), 0);
        loop {
            let (before, began) = (shown.size, Instant::now());
            shown.begin_again();
            let request = self.request(Method::POST, &path).header("x-shoal-deadline-ms", millis);
            let sent = request.body(body.clone()).send().await;
            let end = match self.accept(sent).await {
                Ok(answer) => self.hear(answer, &mut shown, &mut each).await?,
                Err(fail) => {
                    tries.again(fail).await?;
                    continue;
                }
            };
            let End::Broke(fail) = end else { return Ok(()) };
            is_begun.set(shown.size > 0);
            in_place = if shown.size > before { 1 } else { in_place + 1 };
            if in_place == 1 {
                tries.moved();
            }
            // Past its deadline the coordinator breaks an answer off.
            if in_place >= MOST_IN_PLACE || began.elapsed() >= Duration::from_millis(millis) {
                return Err(broken_off(shown.size, fail));
            }
            if let Err(fail) = tries.again(fail).await {
                return Err(broken_off(shown.size, fail));
            }
        }
    }

    async fn hear(
        &self,
        mut answer: reqwest::Response,
        shown: &mut Shown,
        each: &mut impl FnMut(&[u8]) -> Result<(), Fail>,
    ) -> Result<End, Fail> {
        loop {
            match answer.chunk().await {
                Ok(Some(part)) => match shown.new_of(&part)? {
                    [] => {}
                    new => each(new)?,
                },
                Ok(None) => return shown.end().map(|()| End::Whole),
                Err(error) => return Ok(End::Broke(self.unreachable(&error))),
            }
        }
    }
}

/// What was handed on, whatever try it came from.
#[derive(Default)]
struct Shown {
    size: u64,
    hash: blake3::Hasher,
    /// How much of it this try has told, in the same bytes or in others.
    told: u64,
    told_hash: blake3::Hasher,
}

impl Shown {
    fn begin_again(&mut self) {
        self.told = 0;
        self.told_hash.reset();
    }

    /// What of a part was not handed on before. What was must come again in the same bytes: an answer that is made of
    /// two would be a third one.
    fn new_of<'a>(&mut self, part: &'a [u8]) -> Result<&'a [u8], Fail> {
        let left = self.size - self.told;
        let known = usize::try_from(left).map_or(part.len(), |left| left.min(part.len()));
        let (known, new) = part.split_at(known);
        if left > 0 {
            self.told += known.len() as u64;
            self.told_hash.update(known);
            if self.told == self.size && self.told_hash.finalize() != self.hash.finalize() {
                return Err(another());
            }
        }
        self.hash.update(new);
        self.size += new.len() as u64;
        self.told += new.len() as u64;
        Ok(new)
    }

    /// The answer is over, with this try.
    fn end(&self) -> Result<(), Fail> {
        if self.told == self.size { Ok(()) } else { Err(another()) }
    }
}

fn another() -> Fail {
    let message = "the answer broke off, and the service gave another one when it was asked again: what was shown is \
                   not whole";
    Fail::world("other_answer", message)
}

fn broken_off(size: u64, fail: Fail) -> Fail {
    let Fail::World { message, .. } = fail else { return fail };
    let message = format!(
        "the answer broke off after {size} bytes and is not whole: its program failed, its deadline passed, or {message}"
    );
    Fail::world("broken_off", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is handed on of these parts.
    fn rest(shown: &mut Shown, parts: &[&str]) -> Result<String, Fail> {
        shown.begin_again();
        let mut rest = Vec::new();
        for part in parts {
            rest.extend_from_slice(shown.new_of(part.as_bytes())?);
        }
        Ok(String::from_utf8(rest).expect("text"))
    }

    #[test]
    fn an_answer_that_comes_again_goes_on_behind_what_was_shown() {
        let mut shown = Shown::default();
        assert_eq!(rest(&mut shown, &["one ", "two"]).expect("new"), "one two");
        assert_eq!(rest(&mut shown, &["on"]).expect("the same"), "", "it broke off earlier");
        assert_eq!(rest(&mut shown, &["o", "ne two th", "ree"]).expect("the same"), " three");
        assert!(shown.end().is_ok());
        assert_eq!(rest(&mut shown, &["one two three"]).expect("the same"), "");
        assert!(shown.end().is_ok());
    }

    #[test]
    fn another_answer_is_no_continuation() {
        let mut shown = Shown::default();
        rest(&mut shown, &["one two"]).expect("new");
        for other in [&["one too"][..], &["one ", "tvo three"]] {
            let fail = rest(&mut shown, other).expect_err("other bytes");
            assert!(matches!(fail, Fail::World { code, .. } if code == "other_answer"));
        }
        rest(&mut shown, &["one"]).expect("the same so far");
        assert!(shown.end().is_err(), "it is over too early");
    }
}
