//! The likelihood of an expected access.

/// A probability, in parts of 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Odds(pub u8);

impl Odds {
    /// Almost certain: read by an earlier run, or announced by the program.
    pub const SURE: Self = Self(u8::MAX);

    /// The odds of an event that happened `right` times in `times`; sure if there is no experience.
    pub fn of(right: u64, times: u64) -> Self {
        if times == 0 {
            return Self::SURE;
        }
        let share = right.min(times) as f64 / times as f64;
        Self((share * f64::from(u8::MAX)).round() as u8)
    }

    /// The odds that both of two independent events happen.
    pub fn and(self, other: Self) -> Self {
        let both = u16::from(self.0) * u16::from(other.0);
        Self((both / u16::from(u8::MAX)) as u8)
    }
}

impl Default for Odds {
    fn default() -> Self {
        Self::SURE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odds_are_shares_and_multiply() {
        assert_eq!(Odds::of(0, 0), Odds::SURE);
        assert_eq!((Odds::of(0, 7), Odds::of(7, 7)), (Odds(0), Odds::SURE));
        let half = Odds::of(u64::MAX / 2, u64::MAX);
        assert_eq!((half, half.and(half)), (Odds(128), Odds(64)));
        assert_eq!(Odds(77).and(Odds::SURE), Odds(77));
        assert_eq!(Odds(255).and(Odds(0)), Odds(0));
    }
}
