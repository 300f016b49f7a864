//! Which profile a device goes by, and that in words, for summaries, `doctor` and `calibrate`.

use foreread_backend::{DeviceFacts, MOVING_HEAD};
use foreread_engine::{Order, Profile};
use foreread_plan::Summary;
use foreread_profiles::Measured;
use foreread_words::counted;
use foreread_words::units::bytes;

/// [`MOVING_HEAD`] in ns, as records keep it.
const MOVING_HEAD_NS: u64 = MOVING_HEAD.as_nanos() as u64;

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

/// Whether the recorded run's reads waited as for a disk that turns, as far as enough of them waited. Where only those did
/// that went on from the last, a disk that turns may be as quick as any: its word is taken, and the kernel goes on reading
/// along what such reads leave out.
pub(super) fn turns(recorded: &Summary) -> Option<bool> {
    let scattered = recorded.wait_ns.map(|ns| ns >= MOVING_HEAD_NS);
    scattered.or(recorded.onward_wait_ns.map(|_| true))
}

/// The profile a device goes by, if it is settled, and that in words.
pub(super) fn chosen(
    device: &DeviceFacts,
    measured: Option<&Measured>,
    turns: Option<bool>,
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
    // What the recorded run's reads waited for saves asking the device itself, which takes some
    // 25 ms of a real one.
    let Some(turns) = turns else {
        let asked = "built-in profile, chosen by a few direct reads";
        return (None, format!("{} ({asked})", device.name));
    };
    let profile = if turns {
        Profile::rotational()
    } else {
        Profile::solid_state()
    };
    let said = say("built-in", &profile);
    (Some(profile), said)
}

/// Whether the recorded program, on a disk with a moving head, computed for long enough between its reads that what it
/// reads first had best come first: not where reading was nearly all of it, nor nearly nothing.
pub(super) fn computes(recorded: &Summary) -> bool {
    let moved = recorded.wait_ns.is_some_and(|ns| ns >= MOVING_HEAD_NS);
    let computed = recorded.wall_ns.saturating_sub(recorded.read_ns);
    moved && recorded.read_ns >= recorded.wall_ns / 16 && computed >= recorded.read_ns / 8
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
        let (profile, said) = chosen(&device(false), None, Some(true));
        assert!(profile.is_none() && said.contains("built-in profile: in the program's order"));
        let (profile, said) = chosen(&device(true), None, Some(true));
        assert_eq!(profile, Some(Profile::rotational()));
        assert!(
            said.contains("sda (built-in profile: by position"),
            "{said}"
        );
        let (profile, _) = chosen(&device(true), None, Some(false));
        assert_eq!(profile, Some(Profile::solid_state()));
        let (profile, said) = chosen(&device(true), None, None);
        assert!(profile.is_none() && said.contains("direct reads"), "{said}");
    }

    #[test]
    fn a_device_is_believed_where_only_what_was_read_onward_waited() {
        let waited = |wait_ns, onward_wait_ns| {
            turns(&Summary {
                wait_ns,
                onward_wait_ns,
                ..Summary::default()
            })
        };
        assert_eq!(waited(Some(9_000_000), Some(100_000)), Some(true));
        assert_eq!(waited(Some(100_000), Some(1_200_000)), Some(false));
        assert_eq!(waited(None, Some(1_200_000)), Some(true));
        assert_eq!(waited(None, Some(100_000)), Some(true));
        assert_eq!(waited(None, None), None);
    }

    #[test]
    fn a_recorded_program_computes_between_its_reads_or_does_not() {
        let recorded = |wall_ns, read_ns, wait_ns| Summary {
            wall_ns,
            read_ns,
            wait_ns,
            ..Summary::default()
        };
        let (ms, moved) = (1_000_000, Some(MOVING_HEAD_NS));
        assert!(computes(&recorded(1000 * ms, 650 * ms, moved)));
        assert!(!computes(&recorded(1000 * ms, 990 * ms, moved)), "it waits");
        assert!(
            !computes(&recorded(1000 * ms, 20 * ms, moved)),
            "it maps files"
        );
        assert!(
            !computes(&recorded(1000 * ms, 650 * ms, Some(100_000))),
            "a fast disk"
        );
        assert!(!computes(&recorded(1000 * ms, 650 * ms, None)), "a hot run");
        // Threads wait at the same time.
        assert!(!computes(&recorded(1000 * ms, 4000 * ms, moved)));
    }
}
