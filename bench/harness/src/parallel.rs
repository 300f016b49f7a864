//! Work spread over threads, which start the items in order.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, bail};

/// Runs `work` on every item, started in order, on `threads` threads, each with a `state` of its own.
pub fn spread<T: Sync, S>(
    threads: usize,
    items: &[T],
    state: impl Fn() -> S + Sync,
    work: impl Fn(&T, &mut S) -> Result<()> + Sync,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let one = || -> Result<()> {
        let mut own = state();
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(item, &mut own)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.min(items.len()))
            .map(|_| scope.spawn(one))
            .collect();
        for worker in workers {
            match worker.join() {
                Ok(result) => result?,
                Err(_) => bail!("a reading thread ended early"),
            }
        }
        Ok(())
    })
}
