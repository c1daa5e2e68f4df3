//! Complete conversations over an in-memory socket.

use super::*;
use baton_apps::Costs;
use baton_apps::web::Server;
use baton_host::{Gone, Ready, Receive, SocketId, Sockets, Unread};
use baton_testkit::Pattern;
use std::fs;
use std::time::Duration;

const SOCKET: SocketId = SocketId(0);

/// One socket: the data that the client sent and the data that it receives.
#[derive(Default)]
struct Wire {
    pending: bool,
    input: VecDeque<Bytes>,
    ended: bool,
    room: usize,
    output: Vec<u8>,
    /// Contents that were sent with a name.
    named: Vec<FileContent>,
    shut: bool,
    closed: bool,
    aborted: bool,
}

impl Costs for Wire {}

impl Sockets<Bytes> for Wire {
    fn accept(&mut self) -> Option<SocketId> {
        std::mem::take(&mut self.pending).then_some(SOCKET)
    }
    fn receive(&mut self, _socket: SocketId, max: usize) -> Receive<Bytes> {
        match self.input.pop_front() {
            Some(mut data) => {
                if data.len() > max {
                    self.input.push_front(data.split_off(max));
                }
                Receive::Data(data)
            }
            None if self.ended => Receive::EndOfStream,
            None => Receive::WouldBlock,
        }
    }
    fn unread(&self, _socket: SocketId) -> Unread {
        Unread {
            len: self.input.iter().map(Bytes::len).sum(),
            ended: self.ended,
        }
    }
    fn send(&mut self, _socket: SocketId, data: Bytes) -> Result<usize, Gone> {
        let taken = data.len().min(self.room);
        self.room -= taken;
        self.output.extend_from_slice(&data[..taken]);
        Ok(taken)
    }
    fn send_file(
        &mut self,
        socket: SocketId,
        content: FileContent,
        data: Bytes,
    ) -> Result<usize, Gone> {
        self.named.push(content);
        self.send(socket, data)
    }
    fn set_cork(&mut self, _socket: SocketId, _cork: bool) {}
    fn shutdown(&mut self, _socket: SocketId) -> bool {
        self.shut = true;
        true
    }
    fn close(&mut self, _socket: SocketId) {
        self.closed = true;
    }
    fn abort(&mut self, _socket: SocketId) {
        self.aborted = true;
    }
}

/// A folder, a server of that folder, and a client's connection.
struct World {
    root: tempfile::TempDir,
    upload: tempfile::TempDir,
    server: Server<Bytes, FileHttp>,
    wire: Wire,
}

impl World {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut HttpConfig)) -> Self {
        let root = tempfile::tempdir().expect("a folder");
        let upload = tempfile::tempdir().expect("a folder");
        fs::write(root.path().join("hello.txt"), "hello\n").expect("a file");
        fs::write(
            root.path().join("large.bin"),
            Pattern::new(0).bytes(1_000_000),
        )
        .expect("a file");
        fs::create_dir(root.path().join("folder")).expect("a folder");
        fs::create_dir(root.path().join("with")).expect("a folder");
        fs::write(root.path().join("with/index.html"), "<p>index").expect("a file");
        let mut config = HttpConfig {
            upload: Some(upload.path().to_owned()),
            ..HttpConfig::new(root.path())
        };
        change(&mut config);
        let mut http = FileHttp::new(config).expect("a folder");
        http.set_clock(UNIX_EPOCH + Duration::from_secs(1_000_000_000));
        let mut world = Self {
            root,
            upload,
            server: Server::new(http),
            wire: Wire::default(),
        };
        world.connect();
        world
    }

    fn connect(&mut self) {
        self.wire = Wire {
            pending: true,
            room: usize::MAX,
            ..Wire::default()
        };
        self.server.step(&mut self.wire, Ready::Acceptable);
    }

    fn send(&mut self, data: impl Into<Bytes>) {
        self.wire.input.push_back(data.into());
        self.server.step(&mut self.wire, Ready::Readable(SOCKET));
    }

    /// Sends a request, on a new connection if the last one ended; returns the header and the content of the response.
    fn ask(&mut self, text: &str) -> (String, Vec<u8>) {
        if self.wire.shut || self.wire.closed {
            self.wire.ended = true;
            self.server.step(&mut self.wire, Ready::Readable(SOCKET));
            self.connect();
        }
        self.wire.output.clear();
        self.send(text.replace('\n', "\r\n"));
        self.answer()
    }

    fn answer(&mut self) -> (String, Vec<u8>) {
        let output = std::mem::take(&mut self.wire.output);
        let end = output.windows(4).position(|end| end == b"\r\n\r\n");
        let end = end.expect("a header") + 4;
        let head = String::from_utf8(output[..end].to_vec()).expect("text");
        (head, output[end..].to_vec())
    }

    fn get(&mut self, target: &str) -> (String, Vec<u8>) {
        self.ask(&format!("GET {target} HTTP/1.1\nHost: x\n\n"))
    }
}

fn code(head: &str) -> &str {
    head.split(' ').nth(1).unwrap_or_default()
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(known, _)| *known == name)
        .map(|(_, value)| value)
}

#[test]
fn a_file_is_served_with_its_header_fields() {
    let mut world = World::new();
    for _ in 0..2 {
        let (head, content) = world.get("/hello.txt");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert_eq!(content, b"hello\n");
        assert_eq!(field(&head, "Content-Length"), Some("6"));
        assert_eq!(field(&head, "Content-Type"), Some("text/plain"));
        assert_eq!(field(&head, "Date"), Some("Sun, 09 Sep 2001 01:46:40 GMT"));
        assert!(field(&head, "Last-Modified").is_some());
        assert_eq!(field(&head, "Connection"), None);
    }
    assert_eq!(world.server.http().cache_hits_and_misses(), (1, 1));
    let (_, content) = world.get("/large.bin?query");
    assert_eq!(content, Pattern::new(0).bytes(1_000_000));
    let (_, content) = world.get("/with/");
    assert_eq!(content, b"<p>index");
}

#[test]
fn head_gives_the_same_header_and_nothing_else() {
    let mut world = World::new();
    let (of_get, _) = world.get("/large.bin");
    let (of_head, content) = world.ask("HEAD /large.bin HTTP/1.1\nHost: x\n\n");
    assert_eq!(of_get, of_head);
    assert!(content.is_empty());
}

#[test]
fn requests_may_be_pipelined_and_cut_anywhere() {
    let request = "GET /hello.txt HTTP/1.1\r\nHost: x\r\n\r\n";
    let text = request.repeat(3);
    for piece in 1..text.len() {
        let mut world = World::new();
        for piece in text.as_bytes().chunks(piece) {
            world.send(Bytes::copy_from_slice(piece));
        }
        let output = String::from_utf8(world.wire.output).expect("text");
        assert_eq!(output.matches("HTTP/1.1 200 OK").count(), 3);
        assert_eq!(output.matches("\r\n\r\nhello\n").count(), 3);
    }
}

#[test]
fn the_rest_is_sent_once_the_socket_has_space() {
    let mut world = World::new();
    world.wire.room = 0;
    world.send("GET /large.bin HTTP/1.1\r\nHost: x\r\n\r\n");
    while world.server.stats().responses == 0 {
        world.wire.room = 77_777;
        world.server.step(&mut world.wire, Ready::Writable(SOCKET));
    }
    assert!(world.answer().1 == Pattern::new(0).bytes(1_000_000));
}

#[test]
fn connections_are_kept_or_closed_as_the_client_wants() {
    for (version, connection, kept) in [
        ("1.1", "", true),
        ("1.1", "Connection: close\n", false),
        ("1.1", "Connection: keep-alive, close\n", false),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\n", true),
    ] {
        let mut world = World::new();
        let text = format!("GET /hello.txt HTTP/{version}\nHost: x\n{connection}\n");
        let (head, content) = world.ask(&text);
        assert_eq!(content, b"hello\n");
        assert_eq!(world.wire.shut, !kept, "{text}");
        let told = match (version, kept) {
            (_, false) => Some("close"),
            ("1.0", true) => Some("keep-alive"),
            _ => None,
        };
        assert_eq!(field(&head, "Connection"), told, "{text}");
    }
}

#[test]
fn input_after_the_last_response_is_dropped_until_the_client_closes() {
    let mut world = World::new();
    let (head, _) = world.ask("POST /../x HTTP/1.1\nHost: x\nContent-Length: 100000\n\n");
    assert_eq!(code(&head), "403");
    world.send(Pattern::new(0).bytes(50_000));
    assert!(
        world.wire.shut && !world.wire.closed,
        "what comes is dropped"
    );
    world.wire.ended = true;
    world.server.step(&mut world.wire, Ready::Readable(SOCKET));
    assert!(world.wire.closed);
}

#[test]
fn bad_requests_get_the_matching_status() {
    let long = format!(
        "GET /hello.txt HTTP/1.1\nHost: x\nX: {}\n\n",
        "y".repeat(20_000)
    );
    let many = format!("GET / HTTP/1.1\nHost: x\n{}\n", "A: b\n".repeat(200));
    for (text, expected) in [
        ("GET /none HTTP/1.1\nHost: x\n\n", "404"),
        ("GET /hello.txt/x HTTP/1.1\nHost: x\n\n", "404"),
        ("GET /../x HTTP/1.1\nHost: x\n\n", "403"),
        ("GET /folder/ HTTP/1.1\nHost: x\n\n", "403"),
        ("GET /%zz HTTP/1.1\nHost: x\n\n", "400"),
        ("GET /hello.txt HTTP/1.1\n\n", "400"),
        ("GET /hello.txt HTTP/1.1\nHost: x\nHost: y\n\n", "400"),
        ("nonsense\n\n", "400"),
        ("GET /hello.txt HTTP/2.0\nHost: x\n\n", "505"),
        ("DELETE /hello.txt HTTP/1.1\nHost: x\n\n", "405"),
        ("BREW /hello.txt HTTP/1.1\nHost: x\n\n", "501"),
        (
            "PUT /x HTTP/1.1\nHost: x\nTransfer-Encoding: gzip\n\n",
            "501",
        ),
        (
            "PUT /x HTTP/1.1\nHost: x\nContent-Length: 1\nTransfer-Encoding: chunked\n\n",
            "400",
        ),
        (
            "PUT /x HTTP/1.1\nHost: x\nContent-Length: 1\nContent-Length: 2\n\n",
            "400",
        ),
        ("PUT /x HTTP/1.1\nHost: x\nContent-Length: -1\n\n", "400"),
        (
            "PUT /none/x HTTP/1.1\nHost: x\nContent-Length: 1\n\n",
            "409",
        ),
        ("PUT / HTTP/1.1\nHost: x\nContent-Length: 1\n\n", "409"),
        (
            "PUT /x HTTP/1.1\nHost: x\nContent-Length: 99999999999999\n\n",
            "413",
        ),
        (
            "PUT /x HTTP/1.1\nHost: x\nExpect: wonders\nContent-Length: 1\n\n",
            "417",
        ),
        (&long, "431"),
        (&many, "431"),
    ] {
        let mut world = World::new();
        let (head, content) = world.ask(text);
        assert_eq!(code(&head), expected, "{text}");
        let len = content.len().to_string();
        assert_eq!(field(&head, "Content-Length"), Some(&len[..]));
        assert_eq!(
            fs::read_dir(world.upload.path()).expect("a folder").count(),
            0
        );
    }
    let mut world = World::new();
    let (head, _) = world.ask("DELETE /hello.txt HTTP/1.1\nHost: x\n\n");
    assert_eq!(field(&head, "Allow"), Some("GET, HEAD, PUT, POST"));
    assert!(!world.wire.shut, "the connection goes on");
    let (head, _) = world.get("/with");
    assert_eq!(
        (code(&head), field(&head, "Location")),
        ("301", Some("/with/"))
    );
}

#[test]
fn no_symbolic_link_leads_out_of_the_root() {
    let mut world = World::new();
    let outside = tempfile::tempdir().expect("a folder");
    fs::write(outside.path().join("secret"), "secret").expect("a file");
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(target, world.root.path().join(name)).expect("a link");
    };
    link(&outside.path().join("secret").to_string_lossy(), "out");
    link("hello.txt", "in");
    assert_eq!(code(&world.get("/out").0), "403");
    assert_eq!(world.get("/in").1, b"hello\n");
}

#[test]
fn ranges_are_served() {
    let mut world = World::new();
    let whole = Pattern::new(0).bytes(1_000_000);
    for (range, first, last) in [
        ("bytes=0-0", 0, 0),
        ("bytes=100-299999", 100, 299_999),
        ("bytes=-5", 999_995, 999_999),
    ] {
        let text = format!("GET /large.bin HTTP/1.1\nHost: x\nRange: {range}\n\n");
        let (head, content) = world.ask(&text);
        assert_eq!(code(&head), "206");
        assert!(content == whole[first..=last]);
        let expected = format!("bytes {first}-{last}/1000000");
        assert_eq!(field(&head, "Content-Range"), Some(&expected[..]));
    }
    let (head, content) = world.ask("GET /hello.txt HTTP/1.1\nHost: x\nRange: bytes=6-\n\n");
    assert_eq!((code(&head), &content[..]), ("416", &b""[..]));
    assert_eq!(field(&head, "Content-Range"), Some("bytes */6"));
    let stale = "GET /hello.txt HTTP/1.1\nHost: x\nRange: bytes=0-1\nIf-Range: Sun, 09 Sep 2001 01:46:40 GMT\n\n";
    assert_eq!(code(&world.ask(stale).0), "200");
}

#[test]
fn unmodified_files_are_not_sent_again() {
    let mut world = World::new();
    let (head, _) = world.get("/hello.txt");
    let date = field(&head, "Last-Modified").expect("a date").to_owned();
    let text = format!("GET /hello.txt HTTP/1.1\nHost: x\nIf-Modified-Since: {date}\n\n");
    let (head, content) = world.ask(&text);
    assert_eq!((code(&head), content.len()), ("304", 0));
    let old =
        "GET /hello.txt HTTP/1.1\nHost: x\nIf-Modified-Since: Sun, 09 Sep 2001 01:46:40 GMT\n\n";
    assert_eq!(code(&world.ask(old).0), "200");
}

#[test]
fn uploads_appear_when_they_are_complete() {
    let mut world = World::new();
    let content = Pattern::new(0).bytes(300_000);
    let path = world.upload.path().join("new.bin");
    for expected in ["201", "204"] {
        world.send("PUT /new.bin HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n");
        for piece in content.chunks(1448) {
            assert!(!path.exists() || expected == "204");
            world.send(Bytes::copy_from_slice(piece));
        }
        let (head, _) = world.answer();
        assert_eq!(code(&head), expected);
        assert!(fs::read(&path).expect("a file") == content);
    }
    // The body in chunks, followed immediately by a request.
    world.send(
        "POST /chunked HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    );
    world.send("0\r\n\r\nGET /hello.txt HTTP/1.1\r\nHost: x\r\n\r\n");
    let (head, rest) = world.answer();
    assert_eq!(code(&head), "201");
    assert!(rest.ends_with(b"\r\n\r\nhello\n"));
    let chunked = fs::read(world.upload.path().join("chunked")).expect("a file");
    assert_eq!(chunked, b"hello");
    assert_eq!(world.server.http().stats().uploads, 3);
}

#[test]
fn a_client_that_expects_100_continue_gets_it() {
    let mut world = World::new();
    world.send("PUT /new HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    assert_eq!(world.wire.output, b"HTTP/1.1 100 Continue\r\n\r\n");
    world.wire.output.clear();
    world.send("hello");
    assert_eq!(code(&world.answer().0), "201");
}

#[test]
fn an_incomplete_upload_leaves_nothing() {
    for ending in ["nonsense", "end"] {
        let mut world = World::new();
        world.send("PUT /new HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel");
        assert_eq!(
            fs::read_dir(world.upload.path()).expect("a folder").count(),
            1
        );
        if ending == "nonsense" {
            world.send("lo\r\nx\r\n");
            assert_eq!(code(&world.answer().0), "400");
        } else {
            world.wire.ended = true;
            world.server.step(&mut world.wire, Ready::Readable(SOCKET));
            assert!(world.wire.closed);
        }
        assert_eq!(
            fs::read_dir(world.upload.path()).expect("a folder").count(),
            0
        );
        assert_eq!(world.server.http().stats().uploads_abandoned, 1);
    }
    let mut world = World::with(|config| config.upload_limit_bytes = 4);
    world.send("PUT /new HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    assert_eq!(code(&world.answer().0), "413");
    let mut world = World::with(|config| config.upload = None);
    let (head, _) = world.ask("PUT /new HTTP/1.1\nHost: x\nContent-Length: 5\n\nhello");
    assert_eq!(
        (code(&head), field(&head, "Allow")),
        ("405", Some("GET, HEAD"))
    );
}

#[test]
fn a_changed_file_is_seen_after_a_second() {
    let mut world = World::new();
    assert_eq!(world.get("/hello.txt").1, b"hello\n");
    fs::write(world.root.path().join("hello.txt"), "goodbye\n").expect("a file");
    assert_eq!(world.get("/hello.txt").1, b"hello\n");
    let later = UNIX_EPOCH + Duration::from_secs(1_000_000_001);
    world.server.http_mut().set_clock(later);
    assert_eq!(world.get("/hello.txt").1, b"goodbye\n");
    fs::remove_file(world.root.path().join("hello.txt")).expect("a file");
    let later = UNIX_EPOCH + Duration::from_secs(1_000_000_002);
    world.server.http_mut().set_clock(later);
    assert_eq!(code(&world.get("/hello.txt").0), "404");
}

#[test]
fn content_has_an_identity_once_changes_would_be_noticed() {
    let mut world = World::new();
    let named = |world: &mut World, after_s| {
        let now = SystemTime::now() + Duration::from_secs(after_s);
        world.server.http_mut().set_clock(now);
        world.wire.named.clear();
        let request = "GET /large.bin HTTP/1.1\nHost: x\nRange: bytes=100000-\n\n";
        assert_eq!(
            world.ask(request).1,
            Pattern::new(0).bytes(1_000_000)[100_000..]
        );
        std::mem::take(&mut world.wire.named)
    };
    assert_eq!(named(&mut world, 0), [], "it has just been written");
    let first = named(&mut world, 10);
    assert_eq!(
        (first[0].file_len, first[0].offset, first[0].len),
        (1_000_000, 100_000, 900_000)
    );
    let chunk = CHUNK_BYTES - 100_000 % CHUNK_BYTES;
    assert_eq!(first[1], first[0].after(chunk), "runs end where blocks do");
    assert_eq!(named(&mut world, 20), first);
    fs::write(
        world.root.path().join("large.bin"),
        Pattern::new(0).bytes(1_000_000),
    )
    .expect("a file");
    let second = named(&mut world, 30);
    assert_eq!(second[0].file, first[0].file);
    assert_eq!(second[0].revision, first[0].revision + 1);
    world.wire.named.clear();
    world.get("/hello.txt");
    assert_ne!(world.wire.named[0].file, first[0].file);
    world.get("/nothing");
    assert_eq!(world.wire.named.len(), 1, "an error is of no file");
}

#[test]
fn a_file_that_shrinks_while_it_is_sent_ends_the_connection() {
    let mut world = World::new();
    world.wire.room = 100_000;
    world.send("GET /large.bin HTTP/1.1\r\nHost: x\r\n\r\n");
    let path = world.root.path().join("large.bin");
    let file = fs::OpenOptions::new().write(true).open(path);
    file.expect("a file").set_len(500_000).expect("shorter");
    world.wire.room = usize::MAX;
    world.server.step(&mut world.wire, Ready::Writable(SOCKET));
    assert!(world.wire.aborted && !world.wire.closed);
    let (_, content) = world.answer();
    assert!(
        content[..] == Pattern::new(0).bytes(1_000_000)[..content.len()],
        "no wrong byte"
    );
    assert_eq!(world.server.stats().changed_content, 1);
    assert_eq!(world.server.http().stats().changed_files, 1);
}

#[test]
fn idle_connections_are_closed_as_their_state_requires() {
    // A connection on which nothing was sent.
    let mut world = World::new();
    world.server.set_clock(100);
    world.server.close_idle(&mut world.wire, 60);
    assert!(world.wire.closed && world.wire.output.is_empty());
    // An incomplete request.
    let mut world = World::new();
    world.send("GET /hel");
    world.server.set_clock(59);
    world.server.close_idle(&mut world.wire, 60);
    assert!(world.wire.output.is_empty(), "there is time");
    world.server.set_clock(60);
    world.server.close_idle(&mut world.wire, 60);
    assert_eq!(code(&world.answer().0), "408");
    assert!(world.wire.shut && !world.wire.closed);
    world.server.set_clock(120);
    world.server.close_idle(&mut world.wire, 60);
    assert!(world.wire.aborted, "it was asked to close and has not");
    // A response that the client does not read.
    let mut world = World::new();
    world.wire.room = 100;
    world.send("GET /large.bin HTTP/1.1\r\nHost: x\r\n\r\n");
    world.server.set_clock(60);
    world.server.close_idle(&mut world.wire, 60);
    assert!(world.wire.aborted);
    assert_eq!(world.server.connections(), 0);
}
