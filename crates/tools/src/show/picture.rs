//! A picture of a file's reads: offset downwards, time to the right.
//!
//! Data flow: [`Picture::dot`] for each read, then [`Picture::lines`]; pure.

/// Number of columns, for time.
pub(crate) const COLUMNS: usize = 60;
/// Number of rows, for offsets.
const ROWS: usize = 8;
/// Marks for one to many reads in a cell.
const MARKS: [char; 5] = [' ', '.', ':', '*', '#'];

/// Reads counted by time and offset.
#[derive(Clone, Debug)]
pub(crate) struct Picture {
    counts: [[u64; COLUMNS]; ROWS],
    /// Time that the picture spans, in ns.
    span: u64,
    /// Bytes that it spans.
    size: u64,
}

impl Picture {
    /// An empty picture of `span` ns and `size` bytes.
    pub(crate) fn new(span: u64, size: u64) -> Self {
        Self {
            counts: [[0; COLUMNS]; ROWS],
            span: span.max(1),
            size: size.max(1),
        }
    }

    /// Adds a read at `offset` bytes, `time` ns from the start of the run.
    pub(crate) fn dot(&mut self, time: u64, offset: u64) {
        let row = place(offset, self.size, ROWS);
        let column = place(time, self.span, COLUMNS);
        self.counts[row][column] += 1;
    }

    /// The picture, one line per row, without trailing blanks.
    pub(crate) fn lines(&self) -> Vec<String> {
        let most = self.counts.iter().flatten().copied().max().unwrap_or(0);
        self.counts
            .iter()
            .map(|row| {
                let line: String = row.iter().map(|&count| mark(count, most)).collect();
                line.trim_end().to_owned()
            })
            .collect()
    }
}

/// The cell of a value below `whole`; larger values belong to the last cell.
fn place(value: u64, whole: u64, cells: usize) -> usize {
    let cell = u128::from(value) * cells as u128 / u128::from(whole);
    (cell as usize).min(cells - 1)
}

/// A mark by the order of magnitude of a count.
fn mark(count: u64, most: u64) -> char {
    if count == 0 {
        return MARKS[0];
    }
    let share = ((count + 1) as f64).ln() / ((most + 1) as f64).ln();
    let heaviest = MARKS.len() - 1;
    MARKS[((share * heaviest as f64).ceil() as usize).clamp(1, heaviest)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_is_a_diagonal() {
        let mut picture = Picture::new(60_000, 8000);
        for n in 0..1000 {
            picture.dot(n * 60, n * 8);
        }
        let lines = picture.lines();
        let starts: Vec<usize> = lines
            .iter()
            .map(|line| line.find(|c| c != ' ').unwrap())
            .collect();
        assert!(starts.is_sorted() && starts[0] == 0 && starts[ROWS - 1] >= 50);
    }

    #[test]
    fn what_lies_beyond_the_edges_is_drawn_on_them() {
        let mut picture = Picture::new(10, 10);
        picture.dot(u64::MAX, u64::MAX);
        assert_eq!(picture.lines()[ROWS - 1].chars().count(), COLUMNS);
        let mut empty = Picture::new(0, 0);
        empty.dot(0, 0);
        assert_eq!(empty.lines()[0], "#");
    }
}
