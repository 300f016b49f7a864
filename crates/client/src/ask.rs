//! When the callback may be called: by one thread at a time, and seldom if it has nothing to say.

use std::sync::Mutex;

use crate::lock::lock;

/// Unlisted reads between two calls, at most.
const SELDOM: u32 = 1024;

/// The turn to call, and the back-off.
#[derive(Debug, Default)]
pub(crate) struct Ask(Mutex<Calls>);

#[derive(Debug, Default)]
struct Calls {
    /// A thread is calling.
    calling: bool,
    /// Unlisted reads to let pass before the next call.
    wait: u32,
    /// The next wait, and one more, if the callback supplies nothing again; 0 is 1.
    gap: u32,
}

/// A thread's turn: nobody else calls while it lasts, however it ends.
pub(crate) struct Turn<'a>(&'a Ask);

impl Ask {
    /// Takes the turn, if it is free and due.
    pub(crate) fn turn(&self) -> Option<Turn<'_>> {
        let mut state = lock(&self.0);
        if state.calling {
            return None;
        }
        if state.wait > 0 {
            state.wait -= 1;
            return None;
        }
        state.calling = true;
        Some(Turn(self))
    }

    /// The list was extended, so the callback is worth calling again.
    pub(crate) fn supplied(&self) {
        let mut state = lock(&self.0);
        state.wait = 0;
        state.gap = 0;
    }
}

impl Turn<'_> {
    /// The callback has supplied nothing: let 1, 2, 4 … unlisted reads go by until the next call, that read included.
    pub(crate) fn in_vain(&self) {
        let mut state = lock(&self.0.0);
        let gap = state.gap.max(1);
        state.wait = gap - 1;
        state.gap = (gap * 2).min(SELDOM);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.0);
        state.calling = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callback_without_an_answer_is_asked_after_1_2_4_up_to_1024_reads() {
        let ask = Ask::default();
        let mut asked_at = Vec::new();
        for read in 0..6000 {
            if let Some(turn) = ask.turn() {
                turn.in_vain();
                asked_at.push(read);
            }
        }
        let gaps: Vec<_> = asked_at.windows(2).map(|two| two[1] - two[0]).collect();
        assert_eq!(gaps[..11], [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]);
        assert!(gaps[11..].iter().all(|&gap| gap == 1024));
        ask.supplied();
        assert!(ask.turn().is_some());
    }

    #[test]
    fn there_is_one_turn_at_a_time() {
        let ask = Ask::default();
        let turn = ask.turn();
        assert!(turn.is_some() && ask.turn().is_none());
        drop(turn);
        assert!(ask.turn().is_some());
    }
}
