//! Input of the observation tools: questions at the control socket, answers of the kernel's sock_diag, capture files.

use baton_live::sock_diag::take_answer;
use baton_live::{CaptureBlock, Merge, Question};
use std::time::Duration;

/// Parses `data` as a question, as an answer of sock_diag and as a capture file: each parser accepts it or returns an error.
pub fn control(data: &[u8]) {
    if let Ok(question) = Question::parse(data) {
        let text = serde_json::to_vec(&question).expect("questions can be written");
        assert_eq!(Question::parse(&text), Ok(question));
    }
    let mut sockets = Vec::new();
    let _ = take_answer(data, &mut sockets);
    assert!(
        sockets.len() <= data.len() / 88,
        "each socket takes a header and a message"
    );
    let (mut left, mut merge, mut frames) = (data.to_vec(), Merge::default(), 0);
    let _ = CaptureBlock::take_all(&mut left, |block| {
        let _ = block.totals();
        if let Some(at) = block.frame_at() {
            merge.add(at, block);
            frames += 1;
        }
        Ok(())
    });
    assert!(data.ends_with(&left), "blocks are taken from the front");
    let mut last = Duration::ZERO;
    while let Some(block) = merge.poll(Duration::MAX) {
        let at = block.frame_at().expect("it is a frame");
        assert!(at >= last, "frames are ordered by time");
        last = at;
        frames -= 1;
    }
    assert_eq!(frames, 0);
}
