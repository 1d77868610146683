//! A model as others see it: loaded once, asked often, by whichever engine is best.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use shoal_kinds::OnnxWork;
use shoal_kinds::onnx::COPIES;
use shoal_kinds::onnx::tensor::{pack, unpack};
use shoal_kinds::onnx::{Element, Head, Port, Side, Tensor};
use shoal_onnx::LONGEST_ROW;
use shoal_protocol::Failure;

use super::built_in::{BuiltIn, Threads};
use super::choice::{Choice, RUNS, Which};
use super::engine::{Note, Second, Trouble};
use super::memory::{Memory, Stays};
use super::room::{Fits, Room};
use super::sight::Seen;

/// What made-up inputs may take together, with which engines are timed before the first request.
const MOST_MADE_UP: usize = 64 << 20;

/// A model that can run at once. Several requests may run it at a time.
pub struct Model {
    room: Room,
    work: OnnxWork,
    threads: Threads,
    built_in: Mutex<BuiltInState>,
    second: Option<Second>,
    choice: Mutex<Choice>,
    memory: Memory,
    /// The file, as engines hold it.
    _held: Stays,
}

/// The built-in engine's share of a model.
enum BuiltInState {
    Loaded(Arc<BuiltIn>),
    /// The other engine answers; loaded again if that one fails.
    Dropped,
    /// It lacks something, in these words.
    Unable(String),
}

impl Model {
    /// Loads a file. What it lacks, or the built-in engine, is said.
    pub fn load(
        file: impl Into<Bytes>,
        work: &OnnxWork,
        threads: &Threads,
    ) -> Result<Model, Failure> {
        Model::load_beside(file, work, (threads, &Memory::unlimited()), |_| None)
    }

    /// The same with a second engine where `second` has one for this file. Both are timed at once if the model says
    /// what shapes it takes, and with the first requests otherwise. What it holds, and its runs, is counted in `memory`.
    pub fn load_beside(
        file: impl Into<Bytes>,
        work: &OnnxWork,
        (threads, memory): (&Threads, &Memory),
        second: impl FnOnce(&Bytes) -> Option<Second>,
    ) -> Result<Model, Failure> {
        let file = file.into();
        let held = memory.hold(COPIES.saturating_mul(file.len() as u64));
        let graph = shoal_onnx::Model::read(file.clone());
        // The built-in engine knows less of what files leave to their readers than others do.
        let graph = graph.map_err(|error| unable(error.to_string()))?.spelled_out();
        let row = graph.longest_row();
        if row > LONGEST_ROW {
            let words = format!("at most {LONGEST_ROW} may be");
            return Err(unable(format!("{row} operators in a row are too many; {words}")));
        }
        let second = second(&file);
        // Where the graph was rewritten, nothing else needs these bytes, and the engine makes a copy of its own.
        drop(file);
        let preferred = second.as_ref().is_some_and(|second| second.preferred);
        let built_in = match BuiltIn::load(&graph, work) {
            Ok(_) if preferred => BuiltInState::Dropped,
            Ok(engine) => BuiltInState::Loaded(Arc::new(engine)),
            Err(why) if second.is_none() => return Err(unable(why)),
            Err(why) => BuiltInState::Unable(why),
        };
        let choice = match (&built_in, &second) {
            (BuiltInState::Loaded(_), Some(_)) => Choice::default(),
            (BuiltInState::Loaded(_), None) => Choice::only(Which::BuiltIn),
            (BuiltInState::Dropped | BuiltInState::Unable(_), _) => Choice::only(Which::Second),
        };
        let model = Model {
            room: Room::new(graph),
            work: work.clone(),
            threads: threads.clone(),
            built_in: Mutex::new(built_in),
            second,
            choice: Mutex::new(choice),
            memory: memory.clone(),
            _held: held,
        };
        model.time();
        Ok(model)
    }

    /// Answers a request: packed tensors in, packed tensors out.
    pub fn run(&self, work: &OnnxWork, request: &[u8]) -> Result<Vec<u8>, Failure> {
        self.run_in(&self.threads, work, request)
    }

    /// The same in other threads than the model's own, if the built-in engine answers.
    pub fn run_in(
        &self,
        threads: &Threads,
        work: &OnnxWork,
        request: &[u8],
    ) -> Result<Vec<u8>, Failure> {
        let (seen, fits) = self.look(work, request)?;
        let runs = self.memory.run(fits.peak)?;
        let answer = self.answer(threads, &seen.request(), fits.doubt)?;
        drop(runs);
        seen.told(answer).map_err(refused)
    }

    /// Asks the engine that is best, and the other if that one gives no answer.
    fn answer(
        &self,
        threads: &Threads,
        request: &[u8],
        doubt: Option<String>,
    ) -> Result<Vec<u8>, Failure> {
        let first = if doubt.is_some() { Which::Second } else { self.choice().next() };
        let order = match first {
            Which::BuiltIn => [Which::BuiltIn, Which::Second],
            Which::Second => [Which::Second, Which::BuiltIn],
        };
        let (mut refusal, mut broken) = (None, None);
        for which in order {
            let asked = match which {
                Which::BuiltIn => match &doubt {
                    Some(why) => Some(Err(Trouble::Refused(why.clone()))),
                    None => Some(self.by_built_in(threads, request)),
                },
                Which::Second => self.by_second(request),
            };
            match asked {
                Some(Ok(answer)) => return Ok(answer),
                Some(Err(Trouble::Refused(why))) => refusal = refusal.or(Some(why)),
                Some(Err(Trouble::Broken(why))) => broken = broken.or(Some(why)),
                None => {}
            }
        }
        // Where an engine broke, another device may know better than what is left here.
        match (broken, refusal) {
            (None, Some(why)) => Err(refused(why)),
            (Some(message), _) => Err(Failure::DeviceLost { message }),
            (None, None) => Err(Failure::DeviceLost { message: "no engine is ready".into() }),
        }
    }

    fn by_built_in(&self, threads: &Threads, request: &[u8]) -> Result<Vec<u8>, Trouble> {
        let engine = self.kept_engine().map_err(Trouble::Refused)?;
        self.timed(Which::BuiltIn, || checked(&self.work, engine.run(threads, request)))
    }

    /// None if there is no such engine for this model.
    fn by_second(&self, request: &[u8]) -> Option<Result<Vec<u8>, Trouble>> {
        let second = self.second.as_ref().filter(|second| second.engine.is_ready())?;
        let asked = self.timed(Which::Second, || checked(&self.work, second.engine.run(request)));
        if let Err(Trouble::Broken(why)) = &asked {
            (second.tell)(Note::Broke { name: second.name.clone(), why: why.clone() });
        }
        Some(asked)
    }

    /// The built-in engine, loaded again if it was dropped.
    fn kept_engine(&self) -> Result<Arc<BuiltIn>, String> {
        let mut kept = lock(&self.built_in);
        match &*kept {
            BuiltInState::Loaded(engine) => Ok(engine.clone()),
            BuiltInState::Unable(why) => Err(why.clone()),
            BuiltInState::Dropped => {
                let loaded = BuiltIn::load(self.room.graph(), &self.work);
                let engine = loaded.map(Arc::new)?;
                *kept = BuiltInState::Loaded(engine.clone());
                Ok(engine)
            }
        }
    }

    /// Runs it, and counts what it took as long as nothing is chosen.
    fn timed(
        &self,
        which: Which,
        run: impl FnOnce() -> Result<Vec<u8>, Trouble>,
    ) -> Result<Vec<u8>, Trouble> {
        let Some(second) = self.second.as_ref().filter(|_| self.choice().chosen().is_none()) else {
            return run();
        };
        let began = (second.clock)();
        let answer = run();
        let took = (second.clock)().saturating_sub(began);
        let decides = self.choice().took(which, answer.is_ok().then_some(took));
        if decides {
            self.settle(second);
        }
        answer
    }

    /// One is chosen: the built-in engine's memory is given back if it is not the one.
    fn settle(&self, second: &Second) {
        let (chosen, (built_in, other)) = {
            let choice = self.choice();
            (choice.chosen(), choice.best())
        };
        if chosen == Some(Which::Second) {
            self.rest();
        }
        let name = second.name.clone();
        (second.tell)(Note::Chose { name, built_in, second: other });
    }

    /// The built-in engine is not asked for now: its memory is given back. It is loaded again for the next request.
    pub fn rest(&self) {
        let mut kept = lock(&self.built_in);
        if let BuiltInState::Loaded(_) = *kept {
            *kept = BuiltInState::Dropped;
        }
    }

    /// Reads a request and says what it is to an engine, and what is known of its run.
    pub(super) fn look<'a>(
        &self,
        work: &OnnxWork,
        request: &'a [u8],
    ) -> Result<(Seen<'a>, Fits), Failure> {
        let seen = Seen::open(work, request).map_err(refused)?;
        let fits = self.room.check(seen.heads()).map_err(refused)?;
        Ok((seen, fits))
    }

    /// Refuses a run that does not fit into the memory that is lent.
    pub(super) fn must_fit(&self, fits: &Fits) -> Result<(), Failure> {
        self.memory.run(fits.peak).map(drop)
    }

    /// Times both engines on made-up numbers, until one is chosen or there is nothing to be learned.
    fn time(&self) {
        if self.choice().chosen().is_some() {
            return;
        }
        let Some(request) = made_up(&self.work) else { return };
        for _ in 0..2 * RUNS {
            if self.choice().chosen().is_some() || self.run(&self.work, &request).is_err() {
                return;
            }
        }
    }

    fn choice(&self) -> MutexGuard<'_, Choice> {
        lock(&self.choice)
    }
}

/// What an engine answered, if it is what the model declares.
pub(super) fn checked(
    work: &OnnxWork,
    answer: Result<Vec<u8>, Trouble>,
) -> Result<Vec<u8>, Trouble> {
    let answer = answer?;
    let broken = |words: String| Trouble::Broken(format!("the engine's answer: {words}"));
    let tensors = unpack(&answer).map_err(|error| broken(error.to_string()))?;
    if tensors.len() != work.outputs.len() {
        let (found, expected) = (tensors.len(), work.outputs.len());
        return Err(broken(format!("{found} outputs, where the model has {expected}")));
    }
    for (Tensor { head, .. }, port) in tensors.iter().zip(&work.outputs) {
        let Head { name, element, dims } = head;
        if (name, *element) != (&port.name, port.element) {
            return Err(broken(format!("{name:?} of {element}, not {:?} of {port}", port.name)));
        }
        if !port.allows(dims) {
            return Err(Trouble::Refused(format!(
                "the output {name:?} came out as {dims:?}: the model declares {port}"
            )));
        }
    }
    Ok(answer)
}

/// A request of the model's own shapes, with batches of one; none if it does not say them.
fn made_up(work: &OnnxWork) -> Option<Vec<u8>> {
    let head = |port: &Port| {
        let dims = port.dims.as_ref()?.iter().enumerate().map(|(at, side)| match side {
            Side::Fixed(dim) => Some(*dim),
            Side::Open(_) => (at == 0).then_some(1),
        });
        let dims = dims.collect::<Option<_>>()?;
        Some(Head { name: port.name.clone(), element: port.element, dims })
    };
    let heads = work.inputs.iter().map(head).collect::<Option<Vec<_>>>()?;
    let mut all = Vec::with_capacity(heads.len());
    let mut left = MOST_MADE_UP;
    for head in heads {
        let bytes = head.bytes()?;
        left = left.checked_sub(bytes)?;
        // Whole numbers are places in tables more often than not, and every table has a first row.
        let numbers = if head.element == Element::F32 {
            ramp().take(bytes / 4).flat_map(f32::to_le_bytes).collect()
        } else {
            vec![0; bytes]
        };
        all.push((head, numbers));
    }
    let tensors = all.iter().map(|(head, bytes)| Tensor { head: head.clone(), bytes });
    Some(pack(&tensors.collect::<Vec<_>>()))
}

/// From 0 up to 1, again and again.
fn ramp() -> impl Iterator<Item = f32> {
    (0..256u16).cycle().map(|step| f32::from(step) / 256.0)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// This device cannot; another one may.
pub(super) fn unable(message: impl Into<String>) -> Failure {
    Failure::Unable { message: message.into() }
}

/// It would go wrong everywhere.
pub(super) fn refused(message: impl ToString) -> Failure {
    Failure::Model { message: message.to_string() }
}

#[cfg(test)]
mod tests {
    use super::super::engine::Engine;
    use super::super::made::{Graph, With};
    use super::super::work_of;
    use super::*;
    use shoal_kinds::onnx::Wire;
    use shoal_onnx::DType;
    use shoal_protocol::{BlobRef, Hash};
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    /// The classifier among the examples, which both engines know.
    fn classifier() -> (Vec<u8>, OnnxWork) {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/cifar10/cifar10.onnx");
        let file = std::fs::read(path).expect("the example");
        let graph = shoal_onnx::Model::read(file.clone()).expect("a model");
        let port = |name: &str, dims: &[u64]| Port {
            name: name.into(),
            element: Element::F32,
            dims: Some(dims.iter().map(|dim| Side::Fixed(*dim)).collect()),
        };
        let input = graph.inputs().next().expect("an input").name().to_owned();
        let output = graph.outputs()[0].name().to_owned();
        let model = BlobRef { hash: Hash([0; 32]), size: file.len() as u64 };
        let (inputs, outputs) =
            (vec![port(&input, &[1, 3, 32, 32])], vec![port(&output, &[1, 10])]);
        (file, OnnxWork { model, inputs, outputs, parts: Vec::new(), wire: Wire::F32, batch: None })
    }

    /// Gives this to every request, after it has counted it.
    struct Says(Result<Vec<u8>, Trouble>, Arc<AtomicUsize>);

    impl Engine for Says {
        fn run(&self, _request: &[u8]) -> Result<Vec<u8>, Trouble> {
            self.1.fetch_add(1, Ordering::Relaxed);
            self.0.clone()
        }
    }

    /// A second engine that says this, how often it was asked, and what was told of it.
    fn second(
        says: Result<Vec<u8>, Trouble>,
        preferred: bool,
    ) -> (Second, Arc<AtomicUsize>, Arc<Mutex<Vec<Note>>>) {
        let (asked, notes) = (Arc::default(), Arc::<Mutex<Vec<Note>>>::default());
        let (engine, told) = (Arc::new(Says(says, Arc::clone(&asked))), Arc::clone(&notes));
        let tell = Arc::new(move |note| lock(&told).push(note));
        let name = "other".to_owned();
        (Second { name, engine, preferred, clock: || 0, tell }, asked, notes)
    }

    #[test]
    fn whatever_the_other_engine_does_the_answer_is_the_built_in_ones() {
        let (file, work) = classifier();
        let (threads, memory) = (Threads::new(1), Memory::unlimited());
        let request = made_up(&work).expect("it says its shapes");
        let alone = Model::load(file.clone(), &work, &threads).expect("it loads");
        let right = alone.run(&work, &request).expect("an answer");
        let elsewhere = Head { name: "z".into(), element: Element::F32, dims: vec![1] };
        let wrong = pack(&[Tensor { head: elsewhere, bytes: &[0; 4] }]);
        for says in [
            Err(Trouble::Broken("gone".into())),
            Err(Trouble::Refused("no".into())),
            Ok(Vec::new()),
            Ok(wrong),
        ] {
            let (second, asked, notes) = second(says.clone(), true);
            let model =
                Model::load_beside(file.clone(), &work, (&threads, &memory), |_| Some(second));
            let answer = model.expect("it loads").run(&work, &request);
            assert_eq!(answer.as_ref(), Ok(&right), "{says:?}");
            assert_eq!(asked.load(Ordering::Relaxed), 1);
            let refused = matches!(says, Err(Trouble::Refused(_)));
            assert_eq!(lock(&notes).is_empty(), refused, "{says:?}");
        }
    }

    #[test]
    fn one_that_never_answers_is_not_chosen_and_bad_requests_reach_nobody() {
        let (file, work) = classifier();
        let (threads, memory) = (Threads::new(1), Memory::unlimited());
        let (second, asked, notes) = second(Err(Trouble::Broken("gone".into())), false);
        let model = Model::load_beside(file, &work, (&threads, &memory), |_| Some(second))
            .expect("it loads");
        let built_in = Some(0);
        let chose = Note::Chose { name: "other".into(), built_in, second: None };
        assert_eq!(lock(&notes).last(), Some(&chose));
        let timed = asked.load(Ordering::Relaxed);
        let request = made_up(&work).expect("it says its shapes");
        model.run(&work, &request).expect("an answer");
        model.run(&work, b"no tensors").expect_err("they are none");
        model.run(&work, &pack(&[])).expect_err("the input is missing");
        assert_eq!(asked.load(Ordering::Relaxed), timed);
    }

    /// A file's bytes, which tell when nobody has them any more.
    struct Lent(Vec<u8>, Arc<AtomicBool>);

    impl AsRef<[u8]> for Lent {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }

    impl Drop for Lent {
        fn drop(&mut self) {
            self.1.store(true, Ordering::Relaxed);
        }
    }

    /// Asked while a model is loaded, to be timed: whether its file is back by then.
    struct Looks {
        is_back: Arc<AtomicBool>,
        asked: Arc<AtomicBool>,
    }

    impl Engine for Looks {
        fn run(&self, _request: &[u8]) -> Result<Vec<u8>, Trouble> {
            assert!(self.is_back.load(Ordering::Relaxed), "two copies of it are there already");
            self.asked.store(true, Ordering::Relaxed);
            Err(Trouble::Broken("gone".into()))
        }
    }

    #[test]
    fn a_file_that_was_rewritten_is_given_back_while_the_model_loads() {
        let window = [With::Ints("kernel_shape", &[2, 2])];
        let graph = Graph::new("x", DType::Float32, &[1, 1, 4, 4]);
        let graph = graph.node("MaxPool", &["x"], "y", &window).output("y", DType::Float32);
        let file = graph.file();
        let work = work_of(&file).expect("its inputs");
        let is_back = Arc::new(AtomicBool::new(false));
        let file = Bytes::from_owner(Lent(file, is_back.clone()));
        let asked = Arc::new(AtomicBool::new(false));
        let (mut second, _, _) = second(Err(Trouble::Broken("gone".into())), false);
        second.engine = Arc::new(Looks { is_back, asked: asked.clone() });
        let means = (&Threads::new(1), &Memory::unlimited());
        Model::load_beside(file, &work, means, |_| Some(second)).map(drop).expect("it loads");
        assert!(asked.load(Ordering::Relaxed));
    }

    #[test]
    fn a_type_that_only_the_other_engine_has_needs_it() {
        let (file, mut work) = classifier();
        work.inputs[0].element = Element::F64;
        let (threads, memory) = (Threads::new(1), Memory::unlimited());
        let failed = Model::load(file.clone(), &work, &threads).map(drop);
        let Err(Failure::Unable { message }) = failed else { panic!("{failed:?}") };
        assert!(message.contains("float64"), "{message}");
        let (second, asked, _) = second(Err(Trouble::Broken("gone".into())), false);
        let model = Model::load_beside(file, &work, (&threads, &memory), |_| Some(second))
            .expect("it loads");
        let request = made_up(&work).expect("it says its shapes");
        let lost = model.run(&work, &request).expect_err("nobody answers");
        assert_eq!(lost, Failure::DeviceLost { message: "gone".into() });
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_run_needs_room_beside_the_model_that_is_loaded() {
        let (file, work) = classifier();
        let threads = Threads::new(1);
        let request = made_up(&work).expect("it says its shapes");
        let (least, mib) = (COPIES * file.len() as u64, 1 << 20);
        let load = |memory: &Memory| {
            Model::load_beside(file.clone(), &work, (&threads, memory), |_| None).expect("it loads")
        };
        let plenty = Memory::of(least + 64 * mib);
        let (one, tight) = (load(&plenty), Memory::of(least + 1024));
        one.run(&work, &request).expect("an answer");
        let tight = load(&tight);
        let failed = tight.run(&work, &request).expect_err("no room for its values");
        assert_eq!(tight.ask(&work, &request).err(), Some(failed.clone()), "nor elsewhere");
        let Failure::OutOfMemory { message } = &failed else { panic!("{failed}") };
        assert!(message.contains("MiB; 0 MiB are left of the"), "{message}");
        // Another model leaves less; once that is gone, there is room again.
        let other = plenty.hold(64 * mib);
        assert!(matches!(one.run(&work, &request), Err(Failure::OutOfMemory { .. })));
        drop(other);
        one.run(&work, &request).expect("an answer");
    }
}
