//! The symbols that libraries define and need.

use std::path::Path;
use std::process::Command;

use crate::text;

/// The C library's functions that one of foreread's libraries replaces by its own.
///
/// # Panics
/// Without `readelf`, or if its output for the library cannot be parsed.
pub fn interposed(library: &Path) -> Vec<String> {
    let listed = Command::new("readelf")
        .args(["--dyn-syms", "-W"])
        .arg(library)
        .output()
        .expect("readelf");
    let listed = text(&listed.stdout);
    let symbols = listed.lines().map(|line| line.split_whitespace());
    let functions: Vec<_> = symbols
        .filter_map(|words| match words.collect::<Vec<_>>()[..] {
            [_, _, _, "FUNC", _, _, place, name] if place != "UND" => Some(name.to_owned()),
            _ => None,
        })
        .filter(|name| !name.starts_with("foreread_") && !name.contains("MPI_"))
        .collect();
    assert!(!functions.is_empty(), "{listed}");
    functions
}

/// The glibc versions without which one of foreread's libraries cannot be loaded, as major and minor numbers.
///
/// # Panics
/// As [`interposed`].
pub fn needed_versions(library: &Path) -> Vec<(u32, u32)> {
    let listed = Command::new("readelf")
        .args(["--version-info", "-W"])
        .arg(library)
        .output()
        .expect("readelf");
    let listed = text(&listed.stdout);
    let versions = listed.split("Name: GLIBC_").skip(1).map(|rest| {
        let mut numbers = rest.split(|end: char| !end.is_ascii_digit());
        let mut next = || numbers.next()?.parse().ok();
        next().zip(next()).expect("two numbers")
    });
    let versions: Vec<_> = versions.collect();
    assert!(!versions.is_empty(), "{listed}");
    versions
}

/// The functions that no word of a source names.
pub fn unnamed(functions: Vec<String>, source: &str) -> Vec<String> {
    let named: Vec<&str> = source
        .split(|letter: char| letter != '_' && !letter.is_alphanumeric())
        .collect();
    let is_unnamed = |name: &String| !named.contains(&name.as_str());
    functions.into_iter().filter(is_unnamed).collect()
}
