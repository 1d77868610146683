//! Where all conversations with one model meet. Whoever comes while nobody computes takes everything that waits and
//! computes it in one go; the others get their part of what comes out. So conversations share the reading of weights, and
//! none waits for more than one go before its own.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use shoal_engine::llm::{Computes, Outcome, Step};

pub(super) struct Desk<C> {
    state: Mutex<State<C>>,
    changed: Condvar,
    /// Tokens computed in one go.
    most: usize,
}

struct State<C> {
    /// None while somebody computes.
    engine: Option<C>,
    waiting: VecDeque<(u64, Step)>,
    done: BTreeMap<u64, Outcome>,
    /// Conversations that ended while somebody computed.
    gone: Vec<u64>,
    last: u64,
}

impl<C: Computes> Desk<C> {
    pub(super) fn new(engine: C, most: usize) -> Desk<C> {
        let state = State {
            engine: Some(engine),
            waiting: VecDeque::new(),
            done: BTreeMap::new(),
            gone: Vec::new(),
            last: 0,
        };
        Desk { state: Mutex::new(state), changed: Condvar::new(), most }
    }

    /// Computes a step, together with whatever else waits.
    pub(super) fn step(&self, step: Step) -> Outcome {
        let mut state = self.state();
        state.last += 1;
        let own = state.last;
        state.waiting.push_back((own, step));
        loop {
            if let Some(outcome) = state.done.remove(&own) {
                return outcome;
            }
            let Some(engine) = state.engine.take() else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let batch = state.batch(self.most);
            let gone = std::mem::take(&mut state.gone);
            drop(state);
            // Whatever happens in there, the engine comes back, or everybody would wait for ever.
            let mut turn = Turn { desk: self, engine: Some(engine), done: Vec::new() };
            turn.compute(batch, &gone);
            drop(turn);
            state = self.state();
        }
    }

    /// A conversation ended.
    pub(super) fn drop_sequence(&self, sequence: u64) {
        let mut state = self.state();
        match &mut state.engine {
            Some(engine) => engine.drop_sequence(sequence),
            None => state.gone.push(sequence),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> State<C> {
    /// What waits, the first come first, up to so many tokens; at least one step.
    fn batch(&mut self, most: usize) -> Vec<(u64, Step)> {
        let (mut batch, mut tokens) = (Vec::new(), 0);
        while let Some((_, step)) = self.waiting.front() {
            tokens += step.tokens.len();
            if tokens > most && !batch.is_empty() {
                break;
            }
            batch.extend(self.waiting.pop_front());
        }
        batch
    }
}

/// Somebody's turn to compute.
struct Turn<'a, C: Computes> {
    desk: &'a Desk<C>,
    engine: Option<C>,
    done: Vec<(u64, Outcome)>,
}

impl<C: Computes> Turn<'_, C> {
    fn compute(&mut self, batch: Vec<(u64, Step)>, gone: &[u64]) {
        let Some(engine) = &mut self.engine else { return };
        gone.iter().for_each(|sequence| engine.drop_sequence(*sequence));
        let (numbers, steps): (Vec<u64>, Vec<Step>) = batch.into_iter().unzip();
        // Told even if computing panics.
        let lost = || Err(String::from("the engine failed while it computed"));
        self.done = numbers.iter().map(|number| (*number, lost())).collect();
        let outcomes = engine.run_each(&steps);
        for ((_, place), outcome) in self.done.iter_mut().zip(outcomes) {
            *place = outcome;
        }
    }
}

impl<C: Computes> Drop for Turn<'_, C> {
    fn drop(&mut self) {
        let mut state = self.desk.state();
        state.engine = self.engine.take();
        state.done.extend(std::mem::take(&mut self.done));
        self.desk.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, channel};

    /// Adds up the tokens of each sequence, and waits for leave before each go.
    struct Adder {
        sums: BTreeMap<u64, u32>,
        leave: Receiver<()>,
        sizes: Arc<Mutex<Vec<usize>>>,
    }

    impl Computes for Adder {
        fn run(&mut self, steps: &[Step]) -> Result<Vec<Option<Vec<f32>>>, String> {
            if steps.iter().any(|step| step.tokens.contains(&0)) {
                return Err("a zero".into());
            }
            self.leave.recv().map_err(|_| "nobody gives leave")?;
            self.sizes.lock().expect("as it should be").push(steps.len());
            let mut give = |step: &Step| {
                let sum = self.sums.entry(step.sequence).or_default();
                *sum += step.tokens.iter().sum::<u32>();
                step.wants.then(|| vec![*sum as f32])
            };
            Ok(steps.iter().map(&mut give).collect())
        }

        fn drop_sequence(&mut self, sequence: u64) {
            self.sums.remove(&sequence);
        }
    }

    fn step(sequence: u64, tokens: &[u32]) -> Step {
        Step { sequence, position: 0, tokens: tokens.into(), wants: true }
    }

    #[test]
    fn those_who_wait_are_computed_together_and_get_their_own() {
        let (give, leave) = channel();
        let sizes = Arc::<Mutex<Vec<usize>>>::default();
        let adder = Adder { sums: BTreeMap::new(), leave, sizes: sizes.clone() };
        let desk = &Desk::new(adder, 4);
        std::thread::scope(|scope| {
            let first = scope.spawn(|| desk.step(step(1, &[5, 5])));
            while desk.state().engine.is_some() {
                std::thread::yield_now();
            }
            let others: Vec<_> =
                (2..6).map(|at| scope.spawn(move || desk.step(step(at, &[at as u32])))).collect();
            while desk.state().waiting.len() < 4 {
                std::thread::yield_now();
            }
            (0..2).for_each(|_| give.send(()).expect("as it should be"));
            assert_eq!(first.join().expect("as it should be"), Ok(Some(vec![10.0])));
            let sums: Vec<_> =
                others.into_iter().map(|other| other.join().expect("as it should be")).collect();
            let expected: Vec<_> = (2..6).map(|at| Ok(Some(vec![at as f32]))).collect();
            assert_eq!(sums, expected);
        });
        assert_eq!(*sizes.lock().expect("as it should be"), [1, 4]);
    }

    #[test]
    fn a_wrong_step_fails_alone() {
        let (give, leave) = channel();
        let adder = Adder { sums: BTreeMap::new(), leave, sizes: Arc::default() };
        let desk = Desk::new(adder, 64);
        std::thread::scope(|scope| {
            let first = scope.spawn(|| desk.step(step(1, &[1])));
            while desk.state().engine.is_some() {
                std::thread::yield_now();
            }
            let wrong = scope.spawn(|| desk.step(step(2, &[0])));
            let right = scope.spawn(|| desk.step(step(3, &[3])));
            while desk.state().waiting.len() < 2 {
                std::thread::yield_now();
            }
            desk.drop_sequence(1);
            (0..2).for_each(|_| give.send(()).expect("as it should be"));
            assert_eq!(first.join().expect("as it should be"), Ok(Some(vec![1.0])));
            assert_eq!(wrong.join().expect("as it should be"), Err("a zero".into()));
            assert_eq!(right.join().expect("as it should be"), Ok(Some(vec![3.0])));
        });
        give.send(()).expect("as it should be");
        assert_eq!(desk.step(step(1, &[2])), Ok(Some(vec![2.0])), "it was dropped meanwhile");
    }
}
