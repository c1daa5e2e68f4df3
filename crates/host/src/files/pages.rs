//! Splits ranges of files by page.

use crate::footprint::PAGE_BYTES;

/// Splits `len` bytes from `offset` of a file on into runs that each lie in one page. Returns (start, length) within the range.
pub fn pages(offset: u64, len: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut start = 0;
    std::iter::from_fn(move || {
        if start == len {
            return None;
        }
        let in_page = ((offset + start as u64) % u64::from(PAGE_BYTES)) as usize;
        let run = (PAGE_BYTES as usize - in_page).min(len - start);
        start += run;
        Some((start - run, run))
    })
}

#[cfg(test)]
mod tests {
    use super::pages;

    #[test]
    fn runs_end_where_pages_end() {
        let runs = |offset, len| pages(offset, len).collect::<Vec<_>>();
        assert_eq!(runs(0, 0), []);
        assert_eq!(runs(0, 4096), [(0, 4096)]);
        assert_eq!(runs(1, 4096), [(0, 4095), (4095, 1)]);
        assert_eq!(
            runs(4096 * 7 + 4000, 5000),
            [(0, 96), (96, 4096), (4192, 808)]
        );
    }
}
