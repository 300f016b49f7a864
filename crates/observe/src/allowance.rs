//! Limits of examined events.

/// A rate of examined events.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// In the long run.
    pub each_second: u64,
    /// After a time without events.
    pub at_once: u64,
}

impl Rate {
    /// Rate for all processes. An event took 5 to 8 µs, without optimisation and beside other jobs: at most 3 % of a core.
    pub const ALL: Self = Self {
        each_second: 4000,
        at_once: 16_384,
    };

    /// Rate for one process. A compiler opens up to 1,000 headers in less than a second, and ends; a program that visits a whole tree of
    /// files opens 100,000 in a second.
    pub const ONE: Self = Self {
        each_second: 500,
        at_once: 4096,
    };
}

/// The rest of a [`Rate`].
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    rate: Rate,
    /// In billionths of an event.
    left: u64,
    at: u64,
}

impl Allowance {
    /// The whole rate, at a time in ns.
    pub fn new(rate: Rate, at: u64) -> Self {
        let left = rate.at_once * 1_000_000_000;
        Self { rate, left, at }
    }

    /// When it was last asked, or made.
    pub fn asked_at(&self) -> u64 {
        self.at
    }

    /// True if one more event is examined.
    pub fn take(&mut self, at: u64) -> bool {
        let passed = at.saturating_sub(self.at);
        self.at = at;
        let most = self.rate.at_once * 1_000_000_000;
        let more = passed.saturating_mul(self.rate.each_second);
        self.left = self.left.saturating_add(more).min(most);
        let left = self.left.checked_sub(1_000_000_000);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowance_is_used_up_and_comes_back_with_time() {
        let rate = Rate {
            each_second: 10,
            at_once: 5,
        };
        let mut allowance = Allowance::new(rate, 0);
        let taken = |allowance: &mut Allowance, at| (0..100).filter(|_| allowance.take(at)).count();
        assert_eq!(taken(&mut allowance, 0), 5);
        assert_eq!(taken(&mut allowance, 50_000_000), 0);
        assert_eq!(taken(&mut allowance, 300_000_000), 3);
        // However long the time, and if the clock goes back.
        assert_eq!(taken(&mut allowance, u64::MAX), 5);
        assert_eq!(taken(&mut allowance, 0), 0);
    }
}
