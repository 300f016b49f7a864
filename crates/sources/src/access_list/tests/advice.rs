//! Tests of the kernel's advice for a listed file.

use super::*;

#[test]
fn only_a_file_listed_out_of_sequence_is_random() {
    let mut list = list(1 << 20);
    let mut entries: Vec<_> = (0..100).map(page).collect();
    entries.extend((0..100).rev().map(|n| entry(B, n * PAGE, PAGE, false)));
    list.set(&entries);
    assert_eq!(
        [list.advice(A), list.advice(B)],
        [Advice::Normal, Advice::Random]
    );
    list.at(199);
    assert_eq!(list.advice(B), Advice::Normal, "nothing is listed any more");
}

#[test]
fn a_file_listed_in_long_pieces_is_not_random_whatever_their_order() {
    let mut list = list(1 << 20);
    let long = |n: u64| entry(A, n << 22, 1 << 22, false);
    let short = |n: u64| entry(B, n << 22, 1 << 16, false);
    let entries: Vec<_> = (0..100).rev().flat_map(|n| [long(n), short(n)]).collect();
    list.set(&entries);
    assert_eq!(
        [list.advice(A), list.advice(B)],
        [Advice::Normal, Advice::Random]
    );
}

#[test]
fn a_file_listed_from_front_to_back_is_sequential_from_two_mebibytes_on() {
    let mut list = list(1 << 20);
    let front_to_back: Vec<_> = (0..512).map(page).collect();
    list.set(&front_to_back[..511]);
    assert_eq!(list.advice(A), Advice::Normal, "a page short of 2 MiB");
    list.append(&front_to_back[511..]);
    assert_eq!(list.advice(A), Advice::Sequential);
    list.append(&[page(900), page(800), page(700), page(600)]);
    assert_eq!(list.advice(A), Advice::Sequential, "4 of 516 go elsewhere");
    list.append(&[page(900), page(800)]);
    assert_eq!(list.advice(A), Advice::Normal, "6 of 518 do");
    let every_other: Vec<_> = (0..1024)
        .map(|n| entry(B, n * 2 * PAGE, PAGE, false))
        .collect();
    list.set(&every_other);
    assert_eq!(list.advice(B), Advice::Normal, "it leaves pages out");
}
