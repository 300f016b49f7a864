//! Parallel programs end as without foreread, however they end; and libraries without work do nothing.

use foreread_tests::{Lab, finish, foreread, start, text};

use super::harness::{Mpi, lines};
use super::{Needs, Test};
use foreread_tests::suite::{ALL, QUICK};

pub const TESTS: &[Test] = &[
    ("programs_end_as_they_do_alone", QUICK, Needs::C, ends),
    (
        "the_library_is_loaded_into_programs_without_mpi",
        ALL,
        Needs::C,
        without_mpi,
    ),
    (
        "a_library_that_is_missing_is_said",
        ALL,
        Needs::C,
        missing_library,
    ),
];

fn ends(mpi: Mpi) {
    let lab = Lab::new();
    mpi.build(&lab, "ends.c");
    for how in ["well", "none", "exit", "abort"] {
        let plain = mpi.launch(&lab, 2, &["./ends", how]);
        for options in [&["record"][..], &["run"], &["run", "--no-record"]] {
            let output = mpi.foreread(&lab, 2, options, &["./ends", how]);
            let told = format!("{how}, {options:?}: {output:?}");
            assert_eq!(output.status.success(), plain.status.success(), "{told}");
            // When a rank exits without MPI_Finalize, MPICH kills the processes that remain, possibly including the ones between the
            // launcher and that rank (a shell, or foreread). The status is then the kill's, and the output shows it.
            if mpi == Mpi::Mpich && how == "exit" {
                continue;
            }
            assert_eq!(output.status, plain.status, "{told}");
            assert_eq!(lines(&output), lines(&plain), "{told}");
        }
    }
}

fn without_mpi(mpi: Mpi) {
    let lab = Lab::new();
    let library = foreread().with_file_name(format!("libforeread_{}.so", mpi.name()));
    let mut alone = lab.command("/bin/echo");
    alone
        .arg("fine")
        .env("LD_PRELOAD", &library)
        .env("LD_BIND_NOW", "1");
    let output = finish(start(&mut alone));
    assert_eq!(
        (text(&output.stdout), text(&output.stderr)),
        ("fine\n".into(), String::new())
    );
    // Under a launcher the library is put into every started program, which loads MPI later or never.
    let output = mpi.foreread(
        &lab,
        2,
        &["run", "--quiet"],
        &["sh", "-c", "cat /dev/null; echo fine"],
    );
    assert_eq!(lines(&output), ["fine", "fine"], "{output:?}");
    assert!(!text(&output.stderr).contains("ld.so"), "{output:?}");
}

fn missing_library(mpi: Mpi) {
    let lab = Lab::new();
    mpi.build(&lab, "ends.c");
    let preload = lab.path("libforeread_preload.so");
    std::fs::copy(
        foreread().with_file_name("libforeread_preload.so"),
        &preload,
    )
    .expect("a copy");
    let lab = lab.with("FOREREAD_PRELOAD", &preload);
    let path = foreread();
    let words = [
        path.to_str().expect("a path"),
        "run",
        "--explain",
        "--",
        "./ends",
        "well",
    ];
    let output = mpi.launch(&lab, 2, &words);
    let said = text(&output.stderr);
    assert_eq!(lines(&output), ["hello"], "{said}");
    assert!(
        said.contains("its calls of MPI are not seen: there is no library for"),
        "{said}"
    );
}
