//! Processors kept busy by other tasks while a case is measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context, Result};

/// One busy loop per processor, until dropped. Each is a thread of this process: to the scheduler it is a task like any other,
/// and the process that times the case only waits.
pub struct Busy {
    ended: Arc<AtomicBool>,
    loops: Vec<JoinHandle<()>>,
}

impl Busy {
    /// Starts the loops.
    pub fn start() -> Result<Self> {
        let count = std::thread::available_parallelism().context("counting processors")?;
        let ended = Arc::new(AtomicBool::new(false));
        let one = |_| {
            let ended = Arc::clone(&ended);
            std::thread::spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let loops = (0..count.get()).map(one).collect();
        Ok(Self { ended, loops })
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        for each in self.loops.drain(..) {
            // A loop cannot panic.
            let _ = each.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_loop_for_each_processor_and_none_afterwards() {
        let busy = Busy::start().unwrap();
        let processors = std::thread::available_parallelism().unwrap().get();
        assert_eq!(busy.loops.len(), processors);
        assert!(busy.loops.iter().all(|each| !each.is_finished()));
        let ended = Arc::clone(&busy.ended);
        drop(busy);
        assert_eq!(Arc::strong_count(&ended), 1);
    }
}
