//! Synchronisation of the session's threads: the standard library's, or loom's in the models.
//!
//! In the models a parked thread continues when it is woken, and in some orders once without a wake: its timer has ended. Code that claims
//! to need no timer is checked in the orders without one.

#[cfg(not(all(test, loom)))]
pub(crate) use std::{
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    sync::{Mutex, MutexGuard},
    thread::{Builder, JoinHandle, park, park_timeout, sleep, yield_now},
};

#[cfg(all(test, loom))]
pub(crate) use loom::{
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    sync::{Mutex, MutexGuard},
    thread::yield_now,
};
#[cfg(all(test, loom))]
pub(crate) use modelled::{Builder, JoinHandle, park, park_timeout, sleep};

/// True in a build for the models.
pub(crate) const MODELLED: bool = cfg!(all(test, loom));

/// Functions that loom's threads lack.
#[cfg(all(test, loom))]
mod modelled {
    use std::cell::OnceCell;
    use std::sync::Arc;
    use std::time::Duration;

    use loom::sync::Notify;
    use loom::thread;

    use super::{AtomicBool, Ordering};

    loom::thread_local! {
        static OWN: OnceCell<Thread> = OnceCell::new();
    }

    /// loom's own type of this name loses a wake if its thread waits for a lock before it parks.
    #[derive(Clone)]
    pub(crate) struct Thread(Arc<Notify>);

    impl Thread {
        pub(crate) fn unpark(&self) {
            self.0.notify();
        }
    }

    /// Parks a thread that [`Builder::spawn`] started.
    pub(crate) fn park() {
        let own = OWN.with(|own| own.get().cloned());
        own.expect("a thread of the session's").0.wait();
    }

    pub(crate) fn park_timeout(_: Duration) {
        park();
    }

    pub(crate) fn sleep(_: Duration) {
        thread::yield_now();
    }

    pub(crate) struct Builder(thread::Builder);

    impl Builder {
        pub(crate) fn new() -> Self {
            Self(thread::Builder::new())
        }

        pub(crate) fn name(self, name: String) -> Self {
            Self(self.0.name(name))
        }

        /// Loom's own size is enough.
        pub(crate) fn stack_size(self, _: usize) -> Self {
            self
        }

        pub(crate) fn spawn<T: Send + 'static>(
            self,
            run: impl FnOnce() -> T + Send + 'static,
        ) -> std::io::Result<JoinHandle<T>> {
            let finished = Arc::new(AtomicBool::new(false));
            let thread = Thread(Arc::new(Notify::new()));
            let (told, own) = (Arc::clone(&finished), thread.clone());
            let handle = self.0.spawn(move || {
                OWN.with(|cell| cell.get_or_init(|| own).clone());
                let result = run();
                told.store(true, Ordering::Release);
                result
            })?;
            Ok(JoinHandle {
                handle,
                thread,
                finished,
            })
        }
    }

    pub(crate) struct JoinHandle<T> {
        handle: thread::JoinHandle<T>,
        thread: Thread,
        finished: Arc<AtomicBool>,
    }

    impl<T> JoinHandle<T> {
        pub(crate) fn is_finished(&self) -> bool {
            self.finished.load(Ordering::Acquire)
        }

        pub(crate) fn thread(&self) -> &Thread {
            &self.thread
        }

        pub(crate) fn join(self) -> std::thread::Result<T> {
            self.handle.join()
        }
    }
}
