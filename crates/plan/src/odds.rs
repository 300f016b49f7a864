//! How likely an expected access is.

/// A probability, in parts of 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Odds(pub u8);

impl Odds {
    /// As good as certain: what an earlier run read, or the program says.
    pub const SURE: Self = Self(u8::MAX);

    /// The odds of what happened `right` times of so many; sure where nothing is known yet.
    pub fn of(right: u64, times: u64) -> Self {
        if times == 0 {
            return Self::SURE;
        }
        let share = right.min(times) as f64 / times as f64;
        Self((share * f64::from(u8::MAX)).round() as u8)
    }

    /// Those of two things that do not depend on each other, both.
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
