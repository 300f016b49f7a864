//! Commands that a shell starts one after the other, each for a different file, with the same start-up.

use super::*;

/// Number of files, each shown by a command of its own.
const SHOWN: u64 = 6;

pub(super) fn one_after_the_other() {
    let lab = Lab::new();
    // In a locale with a dozen files a command opens all of them before its own file.
    for locale in ["C", "C.UTF-8"] {
        let folder = lab.path(locale);
        std::fs::create_dir(&folder).expect("a folder");
        let names: Vec<PathBuf> = (0..SHOWN)
            .map(|number| lab.write(&format!("{locale}/shown-{number}"), "text"))
            .collect();
        let shown = |name: &PathBuf| format!("cat {}\n", name.display());
        let script = names.iter().map(shown).collect::<String>() + ":\n";
        let script = lab.write(&format!("{locale}/script"), script);
        let script = script.display().to_string();
        let language = format!("LC_ALL={locale}");
        let daemon = Daemon::start(&lab, locale);
        // The first of the shown files that is predicted after the second one; the third one is right.
        let next = || {
            let predicted = daemon.predicted(&names[1]);
            predicted.into_iter().find(|(path, _)| names.contains(path))
        };
        let mut rounds = 0;
        let mut told = None;
        while rounds < 3 {
            let before = daemon.status()["events"].as_u64();
            let output = lab.plain(&["env", &language, "sh", &script]);
            assert!(output.status.success(), "{}", text(&output.stderr));
            eventually("the daemon has seen the round", || {
                daemon.status()["events"].as_u64() >= before.map(|events| events + 3 * SHOWN)
            });
            rounds += 1;
            told = next();
            let is_right = told.as_ref().is_none_or(|(path, _)| *path == names[2]);
            // During a flood of events from other processes the daemon cannot see all of them.
            foreread_tests::check!(is_right, "{locale}: {told:?} after {rounds} rounds");
        }
        foreread_tests::check!(
            told.is_some(),
            "{locale}: {:?}",
            daemon.predicted(&names[1])
        );
    }
}
