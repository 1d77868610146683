//! The thread that computes for all conversations with one model. Who asks leaves its request there and hears of it as it
//! goes on, so that no other thread waits for an answer, however many there are.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use shoal_engine::llm::{Computes, Conversations, Heard};
use shoal_protocol::Failure;
use shoal_text::Asked;

use crate::program::Answers;

pub(in crate::languages) struct Voice {
    desk: Arc<Desk>,
}

/// Who asked, and hears.
pub(crate) struct Caller {
    /// Set when nobody wants the answer any more.
    pub(crate) cancel: Arc<AtomicBool>,
    pub(crate) hear: Box<dyn Fn(Word) + Send>,
}

/// What becomes of a request.
pub(crate) enum Word {
    /// Some tokens of the answer, as soon as they are chosen.
    Part(Vec<u8>),
    /// The end of it, behind its length, as a unit's.
    End(Result<Vec<u8>, Failure>),
}

/// Where requests are left.
#[derive(Default)]
struct Desk {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    asked: Vec<(Asked, Caller)>,
    /// Nobody asks any more.
    is_left: bool,
    /// Nobody answers any more.
    is_broken: bool,
}

impl Voice {
    pub(in crate::languages) fn start<C: Computes + Send + 'static>(
        conversations: Conversations<C>,
    ) -> Result<Voice, Failure> {
        let desk = Arc::<Desk>::default();
        let own = desk.clone();
        let thread = std::thread::Builder::new().name("llm-0".into());
        let started = thread.spawn(move || serve(conversations, &own));
        let no_thread =
            |error| Failure::Internal { message: format!("cannot start a thread: {error}") };
        started.map(|_| Voice { desk }).map_err(no_thread)
    }

    /// Whether nobody answers any more.
    pub(in crate::languages) fn is_broken(&self) -> bool {
        self.desk.state().is_broken
    }

    /// Given back if the engine broke.
    pub(in crate::languages) fn ask(
        &self,
        asked: Asked,
        caller: Caller,
    ) -> Result<(), Box<(Asked, Caller)>> {
        let mut state = self.desk.state();
        if state.is_broken {
            return Err(Box::new((asked, caller)));
        }
        state.asked.push((asked, caller));
        self.desk.changed.notify_all();
        Ok(())
    }
}

impl Drop for Voice {
    fn drop(&mut self) {
        self.desk.state().is_left = true;
        self.desk.changed.notify_all();
    }
}

impl Desk {
    /// Those who asked meanwhile; waits for one if there is nothing else to do. None when nobody will ever ask again.
    fn take(&self, waits: bool) -> Option<Vec<(Asked, Caller)>> {
        let mut state = self.state();
        while waits && state.asked.is_empty() {
            if state.is_left {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Some(std::mem::take(&mut state.asked))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serve<C: Computes>(mut conversations: Conversations<C>, desk: &Desk) {
    let mut callers = BTreeMap::new();
    let speaks = || speak(&mut conversations, desk, &mut callers);
    if let Ok(End::Left) = catch_unwind(AssertUnwindSafe(speaks)) {
        return;
    }
    // Another one is loaded once this one is known to be broken: both may not fit.
    drop(conversations);
    let mut state = desk.state();
    state.is_broken = true;
    let unheard = std::mem::take(&mut state.asked).into_iter().map(|(_, caller)| caller);
    let unheard: Vec<Caller> = callers.into_values().chain(unheard).collect();
    drop(state);
    for caller in unheard {
        let message = "the engine failed while it computed".into();
        (caller.hear)(Word::End(Err(Failure::Internal { message })));
    }
}

/// Why nobody answers any more.
enum End {
    /// Nobody will ever ask again.
    Left,
    /// What computes is gone.
    Lost,
}

/// Goes on as long as there is something to do.
fn speak<C: Computes>(
    conversations: &mut Conversations<C>,
    desk: &Desk,
    callers: &mut BTreeMap<u64, Caller>,
) -> End {
    let (began, mut last) = (Instant::now(), 0);
    let clock = || began.elapsed().as_micros() as u64;
    while let Some(new) = desk.take(conversations.is_idle()) {
        for (asked, caller) in new {
            last += 1;
            conversations.ask(last, asked);
            callers.insert(last, caller);
        }
        for (number, caller) in callers.extract_if(.., |_, it| it.cancel.load(Ordering::Relaxed)) {
            conversations.leave(number);
            let message = "ended on request".into();
            (caller.hear)(Word::End(Err(Failure::Internal { message })));
        }
        let all = conversations.go(&clock);
        // Whoever hears of it may ask again at once.
        desk.state().is_broken |= conversations.is_lost();
        for (number, heard) in all {
            let end = match heard {
                Heard::Part(words) => {
                    if let Some(caller) = callers.get(&number) {
                        (caller.hear)(Word::Part(words));
                    }
                    continue;
                }
                Heard::Done(words) => Answers::one(&words),
                Heard::Failed(message) => Err(Failure::Model { message }),
                // Another node may do better.
                Heard::Broke(message) => Err(Failure::Internal { message }),
            };
            if let Some(caller) = callers.remove(&number) {
                (caller.hear)(Word::End(end));
            }
        }
        if conversations.is_lost() {
            return End::Lost;
        }
    }
    End::Left
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_engine::llm::{Holds, Room, Step};
    use shoal_text::{Ask, Bounds, Sampling};
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// Behind each token the next one is the likeliest. It waits for leave before each go, and says how many it computed.
    struct Counter {
        leave: Receiver<()>,
        sizes: Sender<usize>,
        is_lost: bool,
    }

    impl Computes for Counter {
        fn run(&mut self, steps: &[Step]) -> Result<Vec<Option<Vec<f32>>>, String> {
            self.leave.recv().map_err(|_| "nobody gives leave")?;
            let _ = self.sizes.send(steps.len());
            self.is_lost |= steps.iter().any(|step| step.tokens.contains(&80));
            if self.is_lost {
                return Err("its process ended".into());
            }
            let give = |step: &Step| {
                let last = step.tokens.last().copied().unwrap_or_default();
                assert!(last < 90, "it breaks here");
                let number = |token| if token == last + 1 { 1.0 } else { 0.0 };
                (step.wants > 0).then(|| (0..100).map(number).collect())
            };
            Ok(steps.iter().map(give).collect())
        }
    }

    impl Holds for Counter {
        fn is_lost(&self) -> bool {
            self.is_lost
        }

        fn drop_sequence(&mut self, _: u64) {}

        fn truncate(&mut self, _: u64, _: u32) -> Result<(), String> {
            Ok(())
        }

        fn copy_prefix(&mut self, _: u64, _: u64, _: u32) -> Result<(), String> {
            Ok(())
        }
    }

    fn voice() -> (Voice, Sender<()>, Receiver<usize>) {
        let (give, leave) = channel();
        let (sizes, seen) = channel();
        let bounds = Bounds { words: 100, context: 40, step: 4 };
        let room = Room { seats: 3, tokens: 16, guesses: true };
        let talk = Conversations::new(Counter { leave, sizes, is_lost: false }, bounds, room, None);
        (Voice::start(talk).expect("a thread"), give, seen)
    }

    struct Asker {
        cancel: Arc<AtomicBool>,
        ends: Receiver<Result<Vec<u8>, Failure>>,
    }

    fn asked(from: u32, most: u32) -> Asked {
        let sampling = Sampling { temperature: 0.0, ..Sampling::default() };
        let ask = Ask {
            prompt: [from].into(),
            most,
            ends: [99].into(),
            sampling,
            form: None,
            embed: None,
            guess: true,
        };
        Asked { ask, said: Vec::new() }
    }

    fn ask(voice: &Voice, from: u32, most: u32) -> Option<Asker> {
        let (end, ends) = channel();
        let cancel = Arc::<AtomicBool>::default();
        let hear = move |word| match word {
            Word::Part(_) => {}
            Word::End(result) => end.send(result).expect("somebody hears"),
        };
        let caller = Caller { cancel: cancel.clone(), hear: Box::new(hear) };
        voice.ask(asked(from, most), caller).ok().map(|()| Asker { cancel, ends })
    }

    #[test]
    fn those_who_ask_share_goes_and_one_that_is_ended_leaves_them() {
        let (voice, give, seen) = voice();
        let first = ask(&voice, 1, 4).expect("it is asked");
        give.send(()).expect("it computes");
        assert_eq!(seen.recv(), Ok(1));
        let second = ask(&voice, 20, 3).expect("it is asked");
        let ended = ask(&voice, 40, 30).expect("it is asked");
        (0..2).for_each(|_| give.send(()).expect("it computes"));
        // They came while it waited for leave, or before: with the next go all three are there.
        assert!(seen.recv().is_ok_and(|size| size <= 3));
        assert_eq!(seen.recv(), Ok(3));
        ended.cancel.store(true, Ordering::Relaxed);
        (0..8).for_each(|_| give.send(()).expect("it computes"));
        assert!(ended.ends.recv().is_ok_and(|end| end.is_err()));
        assert!(first.ends.recv().is_ok_and(|end| end.is_ok()));
        assert!(second.ends.recv().is_ok_and(|end| end.is_ok()));
        drop(voice);
        assert!(seen.iter().all(|size| size <= 3), "and the thread ends");
    }

    #[test]
    fn where_the_engine_is_lost_all_are_told_and_another_is_to_be_loaded() {
        let (voice, give, _seen) = voice();
        let beside = ask(&voice, 1, 30).expect("it is asked");
        give.send(()).expect("it computes");
        let lost = ask(&voice, 80, 4).expect("it is asked");
        // It may be lost with the first of these, and take no other.
        (0..2).for_each(|_| _ = give.send(()));
        for asker in [lost, beside] {
            let end = asker.ends.recv().expect("it is told");
            assert!(matches!(end, Err(Failure::Internal { .. })), "{end:?}");
        }
        assert!(ask(&voice, 1, 1).is_none());
    }

    #[test]
    fn where_the_engine_breaks_all_are_told_and_nobody_is_left_waiting() {
        let (voice, give, _seen) = voice();
        let broken = ask(&voice, 90, 4).expect("it is asked");
        let beside = ask(&voice, 1, 30).expect("it is asked");
        // It may break with the first of these, and take no other.
        (0..2).for_each(|_| _ = give.send(()));
        for asker in [broken, beside] {
            let end = asker.ends.recv().expect("it is told");
            assert!(matches!(end, Err(Failure::Internal { .. })), "{end:?}");
        }
        assert!(ask(&voice, 1, 1).is_none(), "another is to be loaded");
    }
}
