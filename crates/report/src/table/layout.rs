//! Chooses the columns to show, and their widths.

use super::{Align, Column, PADDING};

/// A column of words is not made narrower than this, or than its longest word.
const WORDS: usize = 20;
/// Same limit if several columns have words.
const SOME_WORDS: usize = 12;
/// Longer words may be broken if space is short.
const LONGEST_WORD: usize = 28;

/// Returns the columns to show, and those to leave out for lack of space.
pub(super) fn choose(
    columns: &[Column],
    rows: &[Vec<String>],
    width: usize,
) -> (Vec<usize>, Vec<usize>) {
    let mut shown: Vec<usize> = (0..columns.len()).collect();
    let mut left_out = Vec::new();
    while least_width(columns, rows, &shown) > width {
        let of_rank = |index: &usize| columns[shown[*index]].rank.map(|rank| (rank, *index));
        let Some((_, index)) = (0..shown.len()).filter_map(|index| of_rank(&index)).max() else {
            break;
        };
        left_out.insert(0, shown.remove(index));
    }
    left_out.sort_unstable();
    (shown, left_out)
}

/// Splits the columns into as many blocks as needed. Each block starts with the table's leading word columns, which name the rows.
pub(super) fn blocks(
    columns: &[Column],
    rows: &[Vec<String>],
    shown: &[usize],
    width: usize,
) -> Vec<Vec<usize>> {
    let is_words = |column: &&usize| columns[**column].align == Align::Left;
    let words = shown.iter().take_while(is_words).count();
    let (names, others) = shown.split_at(words.max(1).min(shown.len()));
    let mut blocks = vec![names.to_vec()];
    for column in others {
        let block = blocks.last_mut().expect("there is at least one block");
        block.push(*column);
        if block.len() > names.len() + 1 && least_width(columns, rows, block) > width {
            block.pop();
            blocks.push([names, &[*column]].concat());
        }
    }
    blocks
}

/// Returns the widths of the shown columns: their natural widths, granted from left to right.
pub(super) fn widths(
    columns: &[Column],
    rows: &[Vec<String>],
    shown: &[usize],
    width: usize,
) -> Vec<usize> {
    let mut widths: Vec<usize> = shown.iter().map(|c| least(columns, rows, *c)).collect();
    let mut room = width.saturating_sub(total(&widths));
    for (index, column) in shown.iter().enumerate() {
        let more = natural(columns, rows, *column) - widths[index];
        widths[index] += more.min(room);
        room -= more.min(room);
    }
    // The longest words have to be broken.
    let over = total(&widths).saturating_sub(width);
    if let Some(widest) = widths.iter_mut().max() {
        *widest -= over.min(widest.saturating_sub(4));
    }
    widths
}

fn least_width(columns: &[Column], rows: &[Vec<String>], shown: &[usize]) -> usize {
    let widths: Vec<usize> = shown.iter().map(|c| least(columns, rows, *c)).collect();
    total(&widths)
}

/// Returns the width of the whole table, given the widths of its cells.
fn total(widths: &[usize]) -> usize {
    let between = widths.len().saturating_sub(1);
    widths.iter().map(|width| width + PADDING).sum::<usize>() + between
}

/// Returns the width of a column in which nothing is broken.
fn natural(columns: &[Column], rows: &[Vec<String>], column: usize) -> usize {
    let head = longest(columns[column].head.lines());
    head.max(cells(rows, column)).max(1)
}

/// Returns the minimum width of a column: numbers are not broken; heads and words are broken at blanks.
fn least(columns: &[Column], rows: &[Vec<String>], column: usize) -> usize {
    let natural = natural(columns, rows, column);
    let head = longest(columns[column].head.split_whitespace());
    match columns[column].align {
        Align::Right => head.max(cells(rows, column)).max(1),
        Align::Left => {
            let words = rows.iter().flat_map(|row| row[column].split_whitespace());
            let several = columns.iter().filter(|c| c.align == Align::Left).count() > 1;
            let shortest = if several { SOME_WORDS } else { WORDS };
            natural.min(longest(words).min(LONGEST_WORD).max(head).max(shortest))
        }
    }
}

fn cells(rows: &[Vec<String>], column: usize) -> usize {
    longest(rows.iter().flat_map(|row| row[column].lines()))
}

fn longest<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or(0)
}
