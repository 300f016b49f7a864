//! Whether a plan's pages are in memory already: looked at before anything is fetched.

use std::collections::HashMap;

use foreread_backend::Backend;
use foreread_plan::FileId;
use foreread_sources::Source;

use crate::engine::{DISCLOSE, FIRST};

/// Disclosures a survey looks through, some milliseconds: of a longer plan the program's own reads tell sooner
/// whether it is hot.
const SURVEY: usize = 4 * DISCLOSE;
/// Where so much of its files is in memory, and all that was looked through, a longer plan is as good as hot: the
/// program's own reads tell if they come to wait.
const NEARLY_ALL: f64 = 15.0 / 16.0;
/// Planned pages that must be missing for a plan to be worth following at all.
const COLD_PAGES: u64 = 16;

/// Whether next to nothing of what `source` discloses is missing; of a plan too long to look through, of its beginning
/// and its files. The source is left where that was found out.
pub(crate) fn all_in_memory(source: &mut dyn Source, backend: &mut impl Backend) -> bool {
    let mut missing = 0;
    let mut whole: HashMap<FileId, bool> = HashMap::new();
    let mut expected = Vec::new();
    let mut looked = 0;
    while looked < SURVEY {
        // A cold plan mostly shows at its beginning that it is.
        let most = looked.clamp(FIRST, DISCLOSE);
        looked += most;
        expected.clear();
        source.disclose(most, &mut expected);
        for one in &expected {
            if one.pages.is_empty()
                || *whole
                    .entry(one.file)
                    .or_insert_with(|| backend.is_whole(one.file))
            {
                continue;
            }
            let pages = one.pages.end - one.pages.start;
            let resident = backend.resident(one.file, one.pages.clone());
            missing += pages.saturating_sub(resident.unwrap_or(0));
            if missing >= COLD_PAGES {
                return false;
            }
        }
        if expected.len() < most {
            return true;
        }
    }
    let share = backend.share_in_memory();
    share.is_some_and(|share| share >= NEARLY_ALL)
}
