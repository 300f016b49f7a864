//! What libraries define.

use std::path::Path;
use std::process::Command;

use crate::text;

/// The C library's functions that one of foreread's libraries defines in their place.
///
/// # Panics
/// Without `readelf`, or if it does not understand the library.
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

/// Those that no word of a source names.
pub fn unnamed(functions: Vec<String>, source: &str) -> Vec<String> {
    let named: Vec<&str> = source
        .split(|letter: char| letter != '_' && !letter.is_alphanumeric())
        .collect();
    let is_unnamed = |name: &String| !named.contains(&name.as_str());
    functions.into_iter().filter(is_unnamed).collect()
}
