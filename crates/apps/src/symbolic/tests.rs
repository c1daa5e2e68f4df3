use super::*;
use baton_wire::Payload;

fn response(request: Symbolic) -> Vec<Symbolic> {
    let mut http = SymbolicHttp;
    let Parsed::Request(request) = http.parse(&mut (), &mut VecDeque::from([request])) else {
        panic!("a request")
    };
    let mut parts = vec![http.head(&request)];
    if request.content_len > 0 {
        parts.extend(http.content(&request, 0, request.content_len as u32));
    }
    parts
}

#[test]
fn a_request_says_what_it_asks_for() {
    for (file, content_len, program) in [
        (0, 0, None),
        (FILES - 1, CONTENT_LIMIT - 1, Some(Program::Answer)),
        (4, 300, Some(Program::Page)),
        (1, 10, Some(Program::Cgi)),
        (2, 1000, Some(Program::Advertisement)),
        (3, 1000, Some(Program::Post)),
        (77, 10_000, None),
    ] {
        let data = last(request(file, content_len, program));
        let more = match program {
            Some(Program::Advertisement) => COOKIE_BYTES,
            Some(Program::Post) => COOKIE_BYTES + FORM_BYTES,
            _ => 0,
        };
        assert!((LEAST_REQUEST_BYTES..=MOST_REQUEST_BYTES).contains(&(data.len - more)));
        let mut received = VecDeque::from([data]);
        let expected = Request {
            file: FileId(file),
            content_len,
            program,
            len: data.len,
            last: true,
        };
        assert_eq!(
            SymbolicHttp.parse(&mut (), &mut received),
            Parsed::Request(expected)
        );
        assert!(received.is_empty());
    }
}

#[test]
fn half_a_request_waits_for_the_rest() {
    let data = request(5, 100, None);
    let mut received = VecDeque::from([data.slice(0, 100)]);
    assert_eq!(
        SymbolicHttp.parse(&mut (), &mut received),
        Parsed::Incomplete
    );
    assert!(
        received
            .back_mut()
            .is_some_and(|first| first.try_append(&data.slice(100, data.len() - 100)))
    );
    assert!(matches!(
        SymbolicHttp.parse(&mut (), &mut received),
        Parsed::Request(_)
    ));
    assert_eq!(
        SymbolicHttp.parse(&mut (), &mut received),
        Parsed::Incomplete
    );
}

#[test]
fn invalid_requests_are_refused() {
    let data = request(5, 100, None);
    let mut hole = VecDeque::from([data.slice(0, 100), data.slice(101, 10)]);
    assert_eq!(SymbolicHttp.parse(&mut (), &mut hole), Parsed::Bad);
    let mut tail = VecDeque::from([data.slice(1, 100)]);
    assert_eq!(SymbolicHttp.parse(&mut (), &mut tail), Parsed::Bad);
    let mut content = VecDeque::from(response(data));
    assert_eq!(SymbolicHttp.parse(&mut (), &mut content), Parsed::Bad);
    let mut unknown = VecDeque::from([Symbolic {
        source: 9,
        offset: 0,
        len: 300,
    }]);
    assert_eq!(SymbolicHttp.parse(&mut (), &mut unknown), Parsed::Bad);
}

#[test]
fn a_reader_takes_exactly_its_response() {
    for (content_len, program) in [(0, None), (1, None), (5000, Some(Program::Answer))] {
        let asked = request(3, content_len, program);
        let mut reader = ResponseReader::new(asked);
        for part in response(asked) {
            assert!(!reader.is_complete());
            for start in (0..part.len()).step_by(700) {
                let mut piece = part.slice(start, 700.min(part.len() - start));
                assert_eq!(reader.take(&mut piece), Ok(()));
                assert!(piece.is_empty());
            }
        }
        assert!(reader.is_complete());
    }
}

#[test]
fn a_reader_refuses_data_that_is_not_next() {
    let asked = request(3, 5000, None);
    let [head, content] = response(asked)[..] else {
        panic!("two parts")
    };
    let mut reader = ResponseReader::new(asked);
    assert_eq!(
        reader.take(&mut content.clone()),
        Err(head),
        "content before the header"
    );
    assert_eq!(reader.take(&mut head.slice(0, 10)), Ok(()));
    assert_eq!(
        reader.take(&mut head.slice(0, 10)),
        Err(head.slice(10, 240)),
        "a byte twice"
    );
    assert_eq!(reader.take(&mut head.slice(10, 240)), Ok(()));
    assert_eq!(
        reader.take(&mut content.slice(1, 10)),
        Err(content),
        "a byte lost"
    );
    let other = response(request(4, 5000, None))[1];
    assert_eq!(
        reader.take(&mut other.clone()),
        Err(content),
        "another file"
    );
}

#[test]
fn rendered_pieces_join_to_the_whole() {
    let asked = request(0xabcde, 1000, None);
    let parts: Vec<_> = std::iter::once(asked).chain(response(asked)).collect();
    for part in parts {
        let mut whole = Vec::new();
        render(&part, &mut whole);
        assert_eq!(whole.len(), part.len());
        let mut pieces = Vec::new();
        for start in (0..part.len()).step_by(37) {
            render(&part.slice(start, 37.min(part.len() - start)), &mut pieces);
        }
        assert_eq!(whole, pieces);
    }
    let mut text = Vec::new();
    render(&asked, &mut text);
    let text = String::from_utf8(text).expect("a request is text");
    assert!(
        text.starts_with("GET /file/703710?bytes=1000 HTTP/1.1\r\n") && text.ends_with("\r\n\r\n"),
        "{text}"
    );
    let mut text = Vec::new();
    render(&response(asked)[0], &mut text);
    assert!(
        String::from_utf8(text)
            .expect("a header is text")
            .contains("\r\nContent-Length: 1000\r\n")
    );
    let mut content = Vec::new();
    render(&response(asked)[1], &mut content);
    assert_eq!(
        &content[..64],
        b"000abcde@0000000000000000......\n000abcde@0000000000000020......\n"
    );
}

#[test]
fn the_longest_headers_fit() {
    for file in [0, FILES - 1] {
        for program in [None, Some(Program::Page), Some(Program::Post)] {
            let asked = last(request(file, CONTENT_LIMIT - 1, program));
            let mut text = Vec::new();
            render(&asked, &mut text);
            assert_eq!(text.len(), asked.len());
        }
    }
}

#[test]
fn content_of_a_file_is_the_same_whoever_asks() {
    let (short, long) = (
        response(request(7, 100, None)),
        response(request(7, 9000, None)),
    );
    assert_eq!(short[1], long[1].slice(0, 100));
    assert_ne!(short[0], long[0], "headers tell the length");
    let mut files = SymbolicFiles::new();
    assert_eq!(
        baton_kernel::FileStore::len(&mut files, FileId(7), 9000),
        9000
    );
    assert_eq!(
        baton_kernel::FileStore::read(&files, FileId(7), 4096, 100),
        long[1].slice(4096, 100)
    );
}

#[test]
fn changes_make_pages_of_new_revisions() {
    use baton_kernel::FileStore;
    let file = FileId(7);
    let mut files = SymbolicFiles::new();
    assert_eq!(files.len(file, 20_000), 20_000);
    files.edit(file, 1, 5000, 10);
    let revisions = |files: &SymbolicFiles| {
        [0, 4096, 8192, 16_384].map(|at| revision(&files.read(file, at, 1)))
    };
    assert_eq!(revisions(&files), [0, 1, 0, 0]);
    files.truncate(file, 2, 9000);
    assert_eq!(
        (files.len(file, 20_000), revisions(&files)),
        (9000, [0, 1, 2, 2])
    );
    files.edit(file, 3, 17_000, 1000);
    assert_eq!(
        revisions(&files),
        [0, 1, 2, 3],
        "a page that only grows keeps its revision"
    );
    assert_eq!(files.len(file, 0), 18_000);
    let (mut old, mut new) = (Vec::new(), Vec::new());
    render(&files.read(FileId(8), 4096, 64), &mut old);
    files.edit(FileId(8), 1, 4096, 1);
    render(&files.read(FileId(8), 4096, 64), &mut new);
    assert_ne!(old, new, "bytes show the revision");
}

#[test]
fn a_reader_refuses_two_revisions_in_one_page() {
    use baton_kernel::FileStore;
    let file = FileId(3);
    let asked = request(3, 9000, None);
    let mut files = SymbolicFiles::new();
    files.len(file, 9000);
    let mut reader = ResponseReader::new(asked);
    assert_eq!(reader.take(&mut response(asked)[0].clone()), Ok(()));
    assert_eq!(reader.take(&mut files.read(file, 0, 4096)), Ok(()));
    assert_eq!(reader.take(&mut files.read(file, 4096, 1000)), Ok(()));
    files.edit(file, 1, 4096, 1);
    assert!(reader.take(&mut files.read(file, 5096, 100)).is_err());
    files.edit(file, 2, 8192, 1);
    let mut reader = ResponseReader::new(asked);
    assert_eq!(reader.take(&mut response(asked)[0].clone()), Ok(()));
    for (at, len) in [(0, 4096), (4096, 4096), (8192, 808)] {
        assert_eq!(reader.take(&mut files.read(file, at, len)), Ok(()));
    }
    assert!(reader.is_complete());
    assert_eq!(reader.revisions(), Some((0, 2)));
}
