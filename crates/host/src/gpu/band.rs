//! One crew's part in the GPU process: a thread that has the band and does what the member asks, in order, and
//! one that stores what was read while the band goes on.

use std::sync::{Arc, mpsc};
use std::time::Instant;

use pollster::block_on;
use shoal_engine::wgsl::{Edges, Readback, SimBand, SimProgram};
use shoal_kinds::SimWork;
use shoal_node::{SimAnswer, SimCommand};
use shoal_protocol::limit::MAX_VIEW_SIDE;
use shoal_protocol::{CheckpointPart, CrewId, Epoch, Failure, JobId, Lease, Micros, Span, Time};

use super::super::courier::Courier;
use super::device::{Device, internal, lock, say};
use super::talk::FromWorker;

/// Commands that wait for the band: a member has one step under way, and a checkpoint, a picture and a
/// correction beside it.
const MAX_COMMANDS: usize = 16;
/// What waits to be stored. A band that is faster than its checkpoints travel waits for them.
const MAX_STORES: usize = 2;

/// The way to a crew's thread, which ends when this is dropped.
pub(super) type Band = mpsc::SyncSender<SimCommand>;

pub(super) fn start(crew: CrewId, device: &Arc<Device>, couriers: [Courier; 2]) -> Band {
    let [courier, storing] = couriers;
    let (stores, todo) = mpsc::sync_channel(MAX_STORES);
    std::thread::spawn(move || store_all(crew, storing, &todo));
    let (band, commands) = mpsc::sync_channel(MAX_COMMANDS);
    let seat = Station { crew, device: device.clone(), courier, stores, open: None };
    std::thread::spawn(move || seat.work(&commands));
    band
}

/// Measures what a step of a job takes on this device.
pub(super) fn audition(device: &Device, crew: CrewId, job: JobId) {
    let result = device.program(job).and_then(|(program, _)| {
        let _turn = lock(&device.turn);
        let start = Instant::now();
        block_on(program.time(|| Time(start.elapsed().as_micros() as u64)))
    });
    say(&FromWorker::Auditioned { crew, result });
    device.leave_if_lost();
}

struct Station {
    crew: CrewId,
    device: Arc<Device>,
    courier: Courier,
    stores: mpsc::SyncSender<Store>,
    open: Option<Open>,
}

/// The band of the present epoch.
struct Open {
    epoch: Epoch,
    job: JobId,
    band: SimBand,
}

/// Something that was read and is to be stored.
enum Store {
    Kept { epoch: Epoch, step: u64, rows: Readback },
    View { epoch: Epoch, path: String, pixels: Readback },
}

impl Station {
    fn work(mut self, commands: &mpsc::Receiver<SimCommand>) {
        while let Ok(command) = commands.recv() {
            let epoch = command.epoch();
            match self.serve(command) {
                Ok(Some(answer)) => answer_with(self.crew, answer),
                Ok(None) => {}
                Err(failure) => answer_with(self.crew, SimAnswer::Failed { epoch, failure }),
            }
            self.device.leave_if_lost();
        }
    }

    fn serve(&mut self, command: SimCommand) -> Result<Option<SimAnswer>, Failure> {
        match command {
            SimCommand::Open { epoch, job, rows, step, kept, apart } => {
                self.open(epoch, job, (rows, apart), &kept)?;
                let (began, device) = (Instant::now(), self.device.clone());
                let open = self.at(epoch)?;
                let _turn = lock(&device.turn);
                let edges = block_on(open.band.edges())?;
                Ok(Some(answer(epoch, step, &edges, began)))
            }
            SimCommand::Step { epoch, step, above, below, poke } => {
                let device = self.device.clone();
                let open = self.at(epoch)?;
                let _turn = lock(&device.turn);
                let began = Instant::now();
                let edges = block_on(open.band.step(step, &above, &below, poke))?;
                Ok(Some(answer(epoch, step + 1, &edges, began)))
            }
            SimCommand::Back { epoch } => match self.at(epoch)?.band.back() {
                true => Ok(None),
                false => Err(internal("there is no step to take back")),
            },
            SimCommand::Keep { epoch, step } => {
                let rows = self.read(epoch)?;
                self.reduce(epoch, step, &rows)?;
                self.store(Store::Kept { epoch, step, rows });
                Ok(None)
            }
            SimCommand::Finish { epoch, step, attempt } => {
                let rows = self.read(epoch)?;
                self.reduce(epoch, step, &rows)?;
                let open = self.at(epoch)?;
                let lease = Lease { attempt, job: open.job, span: open.band.rows() };
                let output = self.courier.deliver(&lease, &rows)?;
                Ok(Some(SimAnswer::Final { epoch, output }))
            }
            SimCommand::Show { epoch, step } => {
                let view = self.view(epoch, step)?;
                match view {
                    Some(view) => self.store(view),
                    None => return Ok(Some(SimAnswer::Shown { epoch })),
                }
                Ok(None)
            }
        }
    }

    fn at(&mut self, epoch: Epoch) -> Result<&mut Open, Failure> {
        let open = self.open.as_mut().filter(|open| open.epoch == epoch);
        open.ok_or_else(|| internal("there is no band for this epoch"))
    }

    fn open(
        &mut self,
        epoch: Epoch,
        job: JobId,
        (rows, apart): (Span, bool),
        kept: &[CheckpointPart],
    ) -> Result<(), Failure> {
        // Its memory is needed for the next.
        self.open = None;
        let (program, work) = self.device.program(job)?;
        let mut band = {
            let _turn = lock(&self.device.turn);
            block_on(program.open(rows, apart))?
        };
        match (kept, work.first) {
            ([], None) => {
                let _turn = lock(&self.device.turn);
                block_on(band.init())?;
            }
            ([], Some(blob)) => {
                let all = Span::new(0, u64::from(work.height));
                self.load(&mut band, &work, &CheckpointPart { rows: all, blob })?;
            }
            (kept, _) => {
                for part in kept {
                    self.load(&mut band, &work, part)?;
                }
            }
        }
        self.open = Some(Open { epoch, job, band });
        Ok(())
    }

    /// The rows of a stored part that are this band's.
    fn load(
        &mut self,
        band: &mut SimBand,
        work: &SimWork,
        part: &CheckpointPart,
    ) -> Result<(), Failure> {
        let (mine, row) = (band.rows(), work.row_bytes());
        let first = mine.start.max(part.rows.start);
        let end = mine.end().min(part.rows.end());
        if first >= end {
            return Ok(());
        }
        let (from, to) = (first - part.rows.start, end - part.rows.start);
        let bytes = self.courier.part(part.blob, from * row..to * row)?;
        let _turn = lock(&self.device.turn);
        band.load(first, &bytes)
    }

    fn read(&mut self, epoch: Epoch) -> Result<Readback, Failure> {
        let device = self.device.clone();
        let open = self.at(epoch)?;
        let _turn = lock(&device.turn);
        block_on(open.band.read(open.band.rows()))
    }

    /// What the rows come to, if the job asks for that.
    fn reduce(&mut self, epoch: Epoch, step: u64, rows: &Readback) -> Result<(), Failure> {
        let job = self.at(epoch)?.job;
        let (_, work) = self.device.program(job)?;
        if let Some(how) = work.reduce {
            let rows = how.rows(&work, rows);
            answer_with(self.crew, SimAnswer::Reduced { epoch, step, rows });
        }
        Ok(())
    }

    /// A picture, if the band has any row of it.
    fn view(&mut self, epoch: Epoch, step: u64) -> Result<Option<Store>, Failure> {
        let (device, crew) = (self.device.clone(), self.crew.0);
        let open = self.at(epoch)?;
        let (_, work) = device.program(open.job)?;
        let stride = work.width.max(work.height).div_ceil(MAX_VIEW_SIDE).max(1);
        let _turn = lock(&device.turn);
        let view = block_on(open.band.show(stride))?;
        if view.rows == 0 {
            return Ok(None);
        }
        let Span { start, len } = open.band.rows();
        let path =
            format!("/node/view/{crew}?firstRow={start}&rows={len}&step={step}&stride={stride}");
        Ok(Some(Store::View { epoch, path, pixels: view.rgba }))
    }

    fn store(&self, store: Store) {
        // The other thread ends only after this one.
        let _ = self.stores.send(store);
    }
}

impl Device {
    /// A job's simulation, compiled once.
    fn program(&self, job: JobId) -> Result<(SimProgram, SimWork), Failure> {
        let job = lock(&self.jobs).get(&job).cloned();
        let job = job.ok_or_else(|| internal("a job this process was not told of"))?;
        let Some(work) = job.work.sim() else {
            return Err(internal("this job is no simulation"));
        };
        let mut program = lock(&job.program);
        if let Some(program) = &*program {
            return Ok((program.clone(), work.clone()));
        }
        let _turn = lock(&self.turn);
        let made = block_on(self.gpu.sim(work))?;
        Ok((program.insert(made).clone(), work.clone()))
    }
}

fn answer(epoch: Epoch, step: u64, edges: &Edges, began: Instant) -> SimAnswer {
    SimAnswer::Edges {
        epoch,
        step,
        top: edges.top().to_vec(),
        bottom: edges.bottom().to_vec(),
        took: Micros(began.elapsed().as_micros() as u64),
    }
}

fn answer_with(crew: CrewId, answer: SimAnswer) {
    say(&FromWorker::Answer { crew, answer });
}

fn store_all(crew: CrewId, mut courier: Courier, todo: &mpsc::Receiver<Store>) {
    while let Ok(store) = todo.recv() {
        let answer = match store {
            Store::Kept { epoch, step, rows } => {
                match courier.keep(&format!("/node/kept/{}/{}", crew.0, epoch.0), &rows) {
                    Ok(blob) => SimAnswer::Kept { epoch, step, blob },
                    Err(failure) => SimAnswer::Failed { epoch, failure },
                }
            }
            Store::View { epoch, path, pixels } => {
                // A picture that does not arrive is not missed: the next comes soon.
                let _ = courier.show(&path, &pixels);
                SimAnswer::Shown { epoch }
            }
        };
        answer_with(crew, answer);
    }
}
