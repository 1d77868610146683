//! Bands of simulations in a device's engine: which are open, and what each is waited for.

use alloc::string::ToString;
use alloc::vec::Vec;
use shoal_protocol::{CrewId, Epoch, Micros, Time};

use super::{Answer, Ask, EngineOutput, Fault};

/// What a step may wait for the device while units of other jobs and other crews have it, beside its job's own limit.
const OTHERS: Micros = Micros::from_secs(10);
/// What an audition may take beside that: compiling, on a busy machine.
const AUDITION: Micros = Micros::from_secs(20);
/// What opening a band may take beside that: its rows come by network, and a coordinator may restart
/// meanwhile.
const OPENING: Micros = Micros::from_secs(150);

#[derive(Default)]
pub(super) struct Crews {
    bands: Vec<Band>,
    auditions: Vec<(CrewId, Due)>,
}

struct Band {
    crew: CrewId,
    epoch: Epoch,
    /// What is waited for, in order.
    due: Vec<Due>,
}

#[derive(Clone, Copy)]
struct Due {
    at: Time,
    allowed: Micros,
}

impl Crews {
    pub(super) fn asked(&mut self, now: Time, crew: CrewId, ask: Ask, limit: Micros) {
        let within = |more: Micros| Due { at: now + limit + more, allowed: limit };
        match ask {
            Ask::Audition => {
                self.auditions.retain(|(other, _)| *other != crew);
                self.auditions.push((crew, within(AUDITION)));
            }
            Ask::Open(epoch) => {
                self.left(crew);
                self.bands.push(Band { crew, epoch, due: Vec::from([within(OPENING)]) });
            }
            // Of an epoch that failed before, it will not be answered.
            Ask::Step(epoch) => {
                if let Some(band) = self.band(crew, epoch) {
                    band.due.push(within(OTHERS));
                }
            }
        }
    }

    pub(super) fn answered(&mut self, crew: CrewId, answer: Answer) {
        match answer {
            Answer::Auditioned => {
                self.auditions.retain(|(other, _)| *other != crew);
            }
            Answer::Edges(epoch) => {
                if let Some(band) = self.band(crew, epoch)
                    && !band.due.is_empty()
                {
                    band.due.remove(0);
                }
            }
            Answer::Failed(epoch) => {
                self.bands.retain(|band| (band.crew, band.epoch) != (crew, epoch));
            }
        }
    }

    pub(super) fn left(&mut self, crew: CrewId) {
        self.bands.retain(|band| band.crew != crew);
    }

    pub(super) fn has_band(&self, crew: CrewId, epoch: Epoch) -> bool {
        self.bands.iter().any(|band| (band.crew, band.epoch) == (crew, epoch))
    }

    pub(super) fn is_idle(&self) -> bool {
        self.bands.is_empty() && self.auditions.is_empty()
    }

    pub(super) fn next_due(&self) -> Option<Time> {
        let bands = self.bands.iter().filter_map(|band| band.due.first());
        bands.chain(self.auditions.iter().map(|(_, due)| due)).map(|due| due.at).min()
    }

    /// Who did not answer in time, if anybody.
    pub(super) fn overdue(&mut self, now: Time) -> Option<EngineOutput> {
        let is_late = |due: &Due| due.at <= now;
        let late = self.bands.iter().position(|band| band.due.first().is_some_and(is_late));
        if let Some(at) = late {
            let Band { crew, epoch, due } = self.bands.remove(at);
            let fault = due.first()?.fault();
            return Some(EngineOutput::CrewLost { crew, epoch, fault });
        }
        let late = self.auditions.iter().position(|(_, due)| is_late(due))?;
        let (crew, due) = self.auditions.remove(late);
        Some(EngineOutput::AuditionLost { crew, fault: due.fault() })
    }

    /// The engine is gone, and every band with it.
    pub(super) fn lose_all(&mut self, why: &str) -> Vec<EngineOutput> {
        let fault = || Fault::Lost { why: why.to_string() };
        let bands = core::mem::take(&mut self.bands).into_iter();
        let lost = bands.map(|band| EngineOutput::CrewLost {
            crew: band.crew,
            epoch: band.epoch,
            fault: fault(),
        });
        let auditions = core::mem::take(&mut self.auditions).into_iter();
        let unheard =
            auditions.map(|(crew, _)| EngineOutput::AuditionLost { crew, fault: fault() });
        lost.chain(unheard).collect()
    }

    fn band(&mut self, crew: CrewId, epoch: Epoch) -> Option<&mut Band> {
        self.bands.iter_mut().find(|band| (band.crew, band.epoch) == (crew, epoch))
    }
}

impl Due {
    fn fault(&self) -> Fault {
        Fault::Time { allowed: self.allowed }
    }
}
