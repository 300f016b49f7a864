//! Which threads are in calls that a device may hold up.
//!
//! Data flow: a thread that looks at a file → [`Calls::enter`]; whoever waits for its answer → [`Calls::is_held_up`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foreread_sys::thread::Task;

/// The threads that are in such calls now.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls(Arc<Mutex<Vec<Task>>>);

impl Calls {
    fn lock(&self) -> MutexGuard<'_, Vec<Task>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This thread, which is `task`, is in such a call until what is returned is dropped.
    pub(super) fn enter(&self, task: Task) -> Call<'_> {
        self.lock().push(task);
        Call { calls: self, task }
    }

    /// Whether any of them waits for anything but a processor.
    pub(super) fn is_held_up(&self) -> bool {
        let inside = self.lock().clone();
        inside.into_iter().any(Task::is_asleep)
    }
}

/// One thread that is in a call.
pub(super) struct Call<'a> {
    calls: &'a Calls,
    task: Task,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let mut inside = self.calls.lock();
        if let Some(at) = inside.iter().position(|&task| task == self.task) {
            inside.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    /// Looks until `calls` are held up or not, as wanted.
    fn comes_to(calls: &Calls, wanted: bool) {
        while calls.is_held_up() != wanted {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_thread_that_waits_in_a_call_holds_up_and_one_that_computes_does_not() {
        let calls = Calls::default();
        assert!(!calls.is_held_up());
        let (go, wait) = channel::<()>();
        let waiting = {
            let calls = calls.clone();
            std::thread::spawn(move || {
                let call = calls.enter(Task::own());
                let _ = wait.recv();
                drop(call);
            })
        };
        comes_to(&calls, true);
        go.send(()).unwrap();
        waiting.join().unwrap();
        assert!(!calls.is_held_up());
        let (done, entered) = (Arc::new(AtomicBool::new(false)), channel());
        let computing = {
            let (calls, done, entered) = (calls.clone(), Arc::clone(&done), entered.0);
            std::thread::spawn(move || {
                let _call = calls.enter(Task::own());
                entered.send(()).unwrap();
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        entered.1.recv().unwrap();
        for _ in 0..100 {
            assert!(!calls.is_held_up());
        }
        done.store(true, Ordering::Relaxed);
        computing.join().unwrap();
    }
}
