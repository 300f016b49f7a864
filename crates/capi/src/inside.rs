//! Tracks whether the calling thread is in the program, in the library, or in the program's callback.
//!
//! Invariant: a thread that may hold one of the library's locks is in the state [`Caller::Library`]. In this state no
//! further lock is taken, neither by a signal handler nor by the library's own reads and closings: reads are not
//! matched, and calls return `-EDEADLK`. In the callback no lock is held: calls work, and reads are not matched. In
//! both states the thread cannot be cancelled, because cancellation would unwind the stack through Rust functions. The
//! cancellation takes effect in the read itself, or later.
//!
//! Data flow: [`enter`] on the way in, its guard on the way out; the interposers ask [`outside`].

use std::cell::Cell;
use std::ffi::{c_int, c_void};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    Program,
    Library,
    Callback,
}

thread_local! {
    // Constant and without a destructor: access allocates nothing, so it works in a signal handler.
    static PLACE: Cell<Caller> = const { Cell::new(Caller::Program) };
    /// The thread's state before its fork.
    static BEFORE_FORK: Cell<Caller> = const { Cell::new(Caller::Program) };
    static OWN: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Guard: the thread is in the library until this is dropped.
#[derive(Debug)]
pub struct Inside {
    before: Caller,
    /// The thread's earlier cancellation state, as the C library encodes it.
    cancellable: c_int,
}

impl Drop for Inside {
    fn drop(&mut self) {
        cancellable(self.cancellable);
        PLACE.set(self.before);
    }
}

/// Sets this thread's cancellation state. Returns the earlier one.
fn cancellable(state: c_int) -> c_int {
    let mut before = state;
    // SAFETY: changes this thread only. An invalid state is refused, and `before` stays unchanged.
    unsafe { pthread_setcancelstate(state, &raw mut before) };
    before
}

/// Enters the library, from the program or from its callback.
///
/// # Errors
/// `-EDEADLK` if the thread is in the library already, so that the caller is a signal handler.
pub fn enter() -> Result<Inside, c_int> {
    match PLACE.get() {
        Caller::Library => Err(-libc::EDEADLK),
        before => {
            PLACE.set(Caller::Library);
            let cancellable = cancellable(PTHREAD_CANCEL_DISABLE);
            Ok(Inside {
                before,
                cancellable,
            })
        }
    }
}

/// Runs the program's callback, from inside the library and with none of its locks held.
pub fn call_back(callback: impl FnOnce()) {
    let before = PLACE.replace(Caller::Callback);
    callback();
    PLACE.set(before);
}

/// From now on, a thread counts as in the library while it forks, because the allocator's lock is held then, and the
/// child is known to have memory of its own. Must be called after the allocator has registered its own handlers for forks.
pub fn watch_forks() {
    extern "C" fn before() {
        BEFORE_FORK.set(PLACE.replace(Caller::Library));
    }
    extern "C" fn after() {
        PLACE.set(BEFORE_FORK.get());
    }
    extern "C" fn after_in_child() {
        after();
        crate::process::own_memory();
    }
    // SAFETY: registers functions without arguments. If this fails for want of memory, a signal handler's read
    // during a fork may wait for ever.
    unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after_in_child)) };
}

/// True for a thread of the program that is neither in the library nor in the callback.
pub fn outside() -> bool {
    PLACE.get() == Caller::Program && !own_thread()
}

/// True if this is one of the library's threads. They have a table of descriptors of their own, so that the same number
/// means another file.
pub fn own_thread() -> bool {
    OWN.get().unwrap_or_else(|| {
        let own = named_ours();
        OWN.set(Some(own));
        own
    })
}

fn named_ours() -> bool {
    let mut name = [0u8; 16];
    // SAFETY: the kernel writes at most 16 bytes, with the terminating zero.
    let done = unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    done == 0 && (name.starts_with(b"foreread-engine") || name.starts_with(b"foreread-hint"))
}

/// True if a signal handler is among the callers of this function.
///
/// The unwinding tables mark the frame that calls a handler as a signal's. A frame without such tables ends the
/// search, with the result false.
pub fn in_signal_handler() -> bool {
    let mut found = false;
    // SAFETY: the callback gets the address of `found`, which outlives the call.
    unsafe { _Unwind_Backtrace(frame, (&raw mut found).cast()) };
    found
}

/// Results of `_Unwind_Backtrace`'s callback.
const CONTINUE: c_int = 0;
const END_OF_STACK: c_int = 5;

extern "C" fn frame(context: *mut c_void, found: *mut c_void) -> c_int {
    let mut before: c_int = 0;
    // SAFETY: the unwinder's own context, and a local variable for the result.
    unsafe { _Unwind_GetIPInfo(context, &mut before) };
    if before == 0 {
        return CONTINUE;
    }
    // SAFETY: `in_signal_handler` gave the address of a bool.
    unsafe { *found.cast::<bool>() = true };
    END_OF_STACK
}

/// An argument of [`pthread_setcancelstate`], the same in every C library on Linux.
const PTHREAD_CANCEL_DISABLE: c_int = 1;

// A function of the C library that the libc crate does not declare.
unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

// The unwinder that the standard library links already (Itanium C++ ABI).
unsafe extern "C" {
    fn _Unwind_Backtrace(
        callback: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    /// `before` becomes non-zero in a frame that was interrupted by a signal.
    fn _Unwind_GetIPInfo(context: *mut c_void, before: *mut c_int) -> usize;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU8, Ordering};

    #[test]
    fn a_thread_inside_is_refused_until_it_has_left() {
        assert!(outside());
        let inside = enter().expect("outside");
        assert!(!outside());
        assert_eq!(enter().err(), Some(-libc::EDEADLK));
        call_back(|| {
            assert!(!outside(), "reads of the callback pass through");
            assert!(enter().is_ok(), "its calls work");
        });
        assert_eq!(enter().err(), Some(-libc::EDEADLK));
        drop(inside);
        assert!(outside());
    }

    #[test]
    fn a_signal_handler_is_told_from_the_rest_of_the_program() {
        static ANSWER: AtomicU8 = AtomicU8::new(2);
        extern "C" fn handler(_: c_int) {
            ANSWER.store(u8::from(in_signal_handler()), Ordering::Relaxed);
        }
        assert!(!in_signal_handler());
        // SAFETY: the handler only walks its stack and stores a byte.
        unsafe {
            libc::signal(libc::SIGUSR1, handler as *const () as usize);
            libc::raise(libc::SIGUSR1);
        }
        assert_eq!(ANSWER.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn the_threads_of_the_library_are_known_by_their_names() {
        assert!(!own_thread());
        let own = std::thread::Builder::new()
            .name("foreread-hint-0".into())
            .spawn(own_thread)
            .expect("a thread");
        assert!(own.join().expect("no panic"));
    }
}
