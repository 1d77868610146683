//! What models may take of the memory that a device lends: their files as engines hold them for as long as they are loaded,
//! and the values of a run while it runs. An engine that finds no memory ends the whole process, so it is counted before.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use shoal_protocol::Failure;

/// The memory that is lent, and who holds how much of it. All models of a device share one.
#[derive(Clone)]
pub struct Memory(Arc<Lent>);

struct Lent {
    held: Mutex<Held>,
    freed: Condvar,
}

struct Held {
    /// So much may be.
    most: u64,
    /// By what stays: models that are loaded, and programs that run.
    stays: u64,
    /// By runs of models, which end by themselves.
    runs: u64,
}

impl Memory {
    /// So many bytes are lent.
    pub fn of(most: u64) -> Memory {
        let held = Mutex::new(Held { most, stays: 0, runs: 0 });
        Memory(Arc::new(Lent { held, freed: Condvar::new() }))
    }

    /// Somebody else sees to it.
    pub fn unlimited() -> Memory {
        Memory::of(u64::MAX)
    }

    /// So many bytes are lent from now on. What runs goes on.
    pub fn lend(&self, most: u64) {
        self.held().most = most;
        self.0.freed.notify_all();
    }

    /// Counts something that stays until this is dropped. The coordinator placed it here, so there is room for it.
    pub fn hold(&self, bytes: u64) -> Stays {
        let mut held = self.held();
        held.stays = held.stays.saturating_add(bytes);
        Stays { memory: self.clone(), bytes }
    }

    /// Room for a run, until this is dropped. Waits for other runs to end; refuses what would not fit without them.
    pub(super) fn run(&self, bytes: u64) -> Result<Runs, Failure> {
        let mut held = self.held();
        loop {
            let left = held.most.saturating_sub(held.stays);
            if bytes > left {
                let needed = bytes.div_ceil(1 << 20);
                let (left, most) = (left >> 20, held.most >> 20);
                let message = format!(
                    "for these shapes the model needs {needed} MiB; {left} MiB are left of the {most} MiB lent here"
                );
                return Err(Failure::OutOfMemory { message });
            }
            if held.runs <= left - bytes {
                held.runs += bytes;
                return Ok(Runs { memory: self.clone(), bytes });
            }
            held = self.0.freed.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Memory that something holds which stays.
pub struct Stays {
    memory: Memory,
    bytes: u64,
}

impl Drop for Stays {
    fn drop(&mut self) {
        let mut held = self.memory.held();
        held.stays = held.stays.saturating_sub(self.bytes);
        drop(held);
        self.memory.0.freed.notify_all();
    }
}

/// Memory of a run.
pub(super) struct Runs {
    memory: Memory,
    bytes: u64,
}

impl Drop for Runs {
    fn drop(&mut self) {
        self.memory.held().runs -= self.bytes;
        self.memory.0.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_run_that_would_not_fit_is_refused_with_both_numbers() {
        let memory = Memory::of(10 * MIB);
        let model = memory.hold(6 * MIB);
        let Err(failure) = memory.run(5 * MIB) else { panic!("it fits") };
        let words = "needs 5 MiB; 4 MiB are left of the 10 MiB lent here";
        assert!(failure.to_string().contains(words), "{failure}");
        memory.lend(11 * MIB);
        assert!(memory.run(5 * MIB).is_ok());
        memory.lend(4 * MIB);
        drop(model);
        assert!(memory.run(5 * MIB).is_err());
        memory.lend(10 * MIB);
        assert!(memory.run(5 * MIB).is_ok());
        assert!(Memory::unlimited().run(u64::MAX).is_ok());
    }

    #[test]
    fn runs_that_do_not_fit_together_take_turns() {
        let memory = Memory::of(10 * MIB);
        let first = memory.run(6 * MIB).ok();
        let (tell, told) = mpsc::channel();
        let (other, said) = (memory.clone(), tell.clone());
        let second = std::thread::spawn(move || {
            let run = other.run(6 * MIB).is_ok();
            said.send("second").expect("it is listened to");
            run
        });
        // What fits beside the first need not wait for the second.
        assert!(memory.run(4 * MIB).is_ok());
        tell.send("first").expect("it is listened to");
        drop(first);
        assert!(second.join().expect("it ran"));
        assert_eq!(told.iter().take(2).collect::<Vec<_>>(), ["first", "second"]);
        drop(tell);
        assert_eq!(memory.held().runs, 0);
    }
}
