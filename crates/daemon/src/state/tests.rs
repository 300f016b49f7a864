//! What is saved, damaged, gone or somebody else's.

use super::*;
use crate::proofs::Proof;
use foreread_sources::files::{Context as Whose, SymbolKind};

fn some(loaded: &mut Loaded) -> Box<dyn Learns> {
    let mut model = loaded.state.model(Model::Epcm, None);
    for _ in 0..10 {
        model.end_all();
        for number in 0..20 {
            let path = format!("/f/{number}");
            let symbol = loaded
                .symbols
                .meet(SymbolKind::File, Path::new(&path), None);
            let node = foreread_observe::Node {
                device: 1,
                inode: number + 1,
                generation: 0,
                size: 1 << 20,
            };
            loaded.files.met(symbol, &node, 7);
            loaded.files.fetched((1, number + 1), (3, 9), 0);
            model.see(Whose(1), symbol, true);
        }
    }
    model.flush();
    model
}

/// A folder, and a state in it that has models; nothing is saved yet.
fn learnt() -> (tempfile::TempDir, PathBuf, Loaded) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state");
    let mut loaded = StateFolder::load(&path).expect("a new folder");
    some(&mut loaded);
    (folder, path, loaded)
}

fn save(loaded: &Loaded) {
    loaded
        .state
        .save(&loaded.symbols, &loaded.files, &loaded.proofs)
        .expect("saved");
}

#[test]
fn what_was_saved_is_there_after_the_next_start() {
    let (_folder, path, loaded) = learnt();
    save(&loaded);
    let again = StateFolder::load(&path).expect("the same folder");
    assert_eq!(again.problems, Vec::<String>::new());
    assert_eq!((again.symbols.len(), again.files.len()), (20, 20));
    let (_, facts) = again.files.iter().next().expect("a file");
    assert_eq!(
        (facts.users.as_slice(), facts.pages.as_slice()),
        (&[7][..], &[(3, 9)][..])
    );
    let symbol = again
        .symbols
        .find(SymbolKind::File, Path::new("/f/0"))
        .expect("known");
    let mut model = again.state.model(Model::Epcm, None);
    let mut list = Vec::new();
    model.predict_after(symbol, 0.55, &mut list);
    assert!(!list.is_empty());
}

#[test]
fn what_is_damaged_is_said_moved_aside_and_begun_anew() {
    let names = [TREES, MACHINE, TRAILS, START_UPS, FILES];
    for damaged in [TREES, MACHINE, FILES] {
        for damage in [&b"nonsense"[..], b"FRMODL01", b""] {
            let (_folder, path, loaded) = learnt();
            save(&loaded);
            std::fs::write(path.join(damaged), damage).expect("damaged");
            let again = StateFolder::load(&path).expect("begun anew");
            assert_eq!(again.problems.len(), 1, "{:?}", again.problems);
            assert!(again.problems[0].contains(damaged), "{:?}", again.problems);
            assert!(again.symbols.is_empty() && again.files.len() == 0);
            for name in names {
                assert!(path.join(format!("{name}.damaged")).exists());
            }
            let third = StateFolder::load(&path).expect("nothing is there");
            assert!(third.problems.is_empty());
        }
    }
}

#[test]
fn trails_are_there_after_the_next_start_and_damaged_ones_leave_the_models_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state");
    let mut loaded = StateFolder::load(&path).expect("a new folder");
    let mut model = some(&mut loaded);
    let numbers = |loaded: &Loaded| loaded.state.trails.each_ref().map(|one| one.encode().len());
    let before = numbers(&loaded);
    assert!(before.iter().all(|one| *one > 0), "{before:?}");
    model.end_all();
    save(&loaded);
    let again = StateFolder::load(&path).expect("the same folder");
    assert_eq!(numbers(&again), before);
    let mut damaged = std::fs::read(path.join(TRAILS)).expect("trails");
    damaged[20] ^= 1;
    std::fs::write(path.join(TRAILS), damaged).expect("damaged");
    let third = StateFolder::load(&path).expect("the same folder");
    assert_eq!((third.problems.len(), third.symbols.len()), (1, 20));
    assert!(third.problems[0].contains("trails"), "{:?}", third.problems);
    assert_eq!(numbers(&third), [0, 0]);
}

#[test]
fn damaged_proofs_are_said_and_leave_the_models_alone() {
    let (_folder, path, mut loaded) = learnt();
    let key = (std::sync::Arc::from("cc"), 7);
    let (right, wrong) = (1 << 20, 1 << 10);
    loaded.proofs.add(&key, Proof { right, wrong });
    save(&loaded);
    let again = StateFolder::load(&path).expect("the same folder");
    assert_eq!(again.proofs.of(&key).right, right / 2);
    std::fs::write(path.join(PROOFS), b"nonsense").expect("damaged");
    let again = StateFolder::load(&path).expect("the same folder");
    assert!(again.problems[0].contains(PROOFS), "{:?}", again.problems);
    assert_eq!(again.problems.len(), 1);
    assert_eq!(again.proofs.of(&key), Proof::default());
    assert_eq!((again.symbols.len(), again.files.len()), (20, 20));
}

#[test]
fn a_damaged_start_of_the_system_is_said_and_leaves_the_models_alone() {
    let (_folder, path, loaded) = learnt();
    save(&loaded);
    loaded.state.save_boot(b"first").expect("saved");
    assert_eq!(
        StateFolder::load(&path).expect("the same folder").boot,
        b"first"
    );
    std::fs::write(path.join(BOOT), b"nonsense").expect("damaged");
    let again = StateFolder::load(&path).expect("the same folder");
    assert!(again.problems[0].contains(BOOT), "{:?}", again.problems);
    assert_eq!((again.problems.len(), again.symbols.len()), (1, 20));
    assert!(again.boot.is_empty());
}

#[test]
fn a_pipe_or_a_link_in_place_of_any_file_is_said_and_holds_up_nobody() {
    for name in [TREES, MACHINE, TRAILS, START_UPS, FILES, PROOFS, BOOT] {
        let (_folder, path, loaded) = learnt();
        save(&loaded);
        loaded.state.save_boot(b"first").expect("saved");
        let place = path.join(name);
        for link in [false, true] {
            std::fs::remove_file(&place).expect("there");
            if link {
                std::os::unix::fs::symlink("/etc/hostname", &place).expect("a link");
            } else {
                rustix::fs::mkfifoat(rustix::fs::CWD, &place, rustix::fs::Mode::RUSR)
                    .expect("a pipe");
            }
            let again = StateFolder::load(&path).expect("the same folder");
            assert_eq!(again.problems.len(), 1, "{name}: {:?}", again.problems);
            assert!(again.problems[0].contains(name), "{:?}", again.problems);
            let mut anew = StateFolder::load(&path).expect("begun anew");
            some(&mut anew);
            save(&anew);
            anew.state.save_boot(b"first").expect("saved");
        }
    }
}

#[test]
fn a_missing_file_of_symbols_voids_the_others() {
    let (_folder, path, loaded) = learnt();
    save(&loaded);
    std::fs::remove_file(path.join(TREES)).expect("removed");
    let again = StateFolder::load(&path).expect("begun anew");
    assert!(again.problems[0].contains("gone"), "{:?}", again.problems);
    assert_eq!(again.state.partitions(), 0);
}

#[test]
fn a_folder_that_others_may_write_to_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state");
    std::fs::create_dir(&path).expect("made");
    std::fs::set_permissions(&path, Permissions::from_mode(0o777)).expect("open to all");
    assert!(StateFolder::load(&path).is_err());
}

#[test]
fn epcm_as_published_looks_less_far_ahead_and_small_partitions_hold_less() {
    let folder = tempfile::tempdir().expect("a folder");
    let loaded = StateFolder::load(&folder.path().join("state")).expect("a state");
    let ahead = |model, partitions| {
        let mut model = loaded.state.model(model, partitions);
        let context = Whose(7);
        for _ in 0..4 {
            (1..40).for_each(|file| model.see(context, Symbol(file), true));
        }
        let mut list = Vec::new();
        model.see(context, Symbol(1), true);
        model.predict(context, 0.55, &mut list);
        list.len()
    };
    let (nodes, order) = (4, 3);
    let small = Some(PartitionLimits { nodes, order });
    let published = ahead(Model::PublishedEpcm, None);
    assert!(published < ahead(Model::Epcm, None), "{published}");
    assert!(ahead(Model::PublishedEpcm, small) <= published);
    assert_eq!(ahead(Model::Pcm, small), 1);
}
