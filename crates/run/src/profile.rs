//! The profile of a device, with a description for summaries, `doctor` and `calibrate`.

use foreread_backend::DeviceFacts;
use foreread_engine::{Order, Profile};
use foreread_profiles::Measured;
use foreread_words::counted;
use foreread_words::units::bytes;

/// A profile in one line.
pub fn in_words(profile: &Profile) -> String {
    let order = match profile.order {
        Order::Position => "by position",
        Order::Program => "in the program's order",
    };
    let infill = match (profile.infill_pages, profile.order) {
        // There a session finds out by itself which gaps pay.
        (0, Order::Program) => "gaps read along where it pays".to_owned(),
        (0, Order::Position) => "no gap read along".to_owned(),
        (pages, _) => format!("gaps up to {} read along", bytes(pages * 4096)),
    };
    let lead = match profile.horizon.queue_threshold {
        u64::MAX => "any lead".to_owned(),
        reads => format!("at most {} ahead", counted(reads, "read", "reads")),
    };
    format!("{order}, {} at once, {infill}, {lead}", profile.depth)
}

/// The profile of a device, if it is known, with its description.
pub(super) fn chosen(
    device: &DeviceFacts,
    measured: Option<&Measured>,
) -> (Option<Profile>, String) {
    let say = |how: &str, profile: &Profile| {
        let profile = in_words(profile);
        format!("{} ({how} profile: {profile})", device.name)
    };
    if let Some((measured, profile)) = measured.and_then(|one| Some((one, one.profile()?))) {
        let said = say(&format!("measured ({})", measured.day()), &profile);
        return (Some(profile), said);
    }
    if device.positions == Some(false) {
        return (None, say("built-in", &Profile::solid_state()));
    }
    let asked = "built-in profile, chosen by a few direct reads";
    (None, format!("{} ({asked})", device.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_said_in_one_line() {
        assert_eq!(
            in_words(&Profile::rotational()),
            "by position, 32 at once, gaps up to 128 KiB read along, any lead"
        );
        assert_eq!(
            in_words(&Profile::solid_state()),
            "in the program's order, 128 at once, gaps read along where it pays, at most 4096 reads ahead"
        );
    }

    #[test]
    fn a_device_goes_by_what_is_known_of_it() {
        let device = |says_so: bool| DeviceFacts {
            name: "sda".into(),
            positions: (!says_so).then_some(false),
        };
        let (profile, said) = chosen(&device(false), None);
        assert!(profile.is_none() && said.contains("built-in profile: in the program's order"));
        let (profile, said) = chosen(&device(true), None);
        assert!(profile.is_none() && said.contains("direct reads"), "{said}");
    }
}
