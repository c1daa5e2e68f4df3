use super::*;
use crate::Costs;
use crate::symbolic::{self, ResponseReader, SymbolicHttp};
use baton_host::{FileContent, Gone, Receive, Sockets, Unread};
use baton_wire::Symbolic;
use std::collections::VecDeque;

/// One connection in memory: the client's data, the server's data, and the free buffer space.
#[derive(Default)]
struct Script {
    pending: u32,
    input: VecDeque<Symbolic>,
    ended: bool,
    gone: bool,
    room: usize,
    output: Vec<Symbolic>,
    corked: bool,
    closed: bool,
    copied: usize,
    by_file: usize,
    read: u64,
    worked: Vec<(Op, u32)>,
    calls: u32,
}

impl Script {
    fn take(&mut self, data: Symbolic) -> Result<usize, Gone> {
        self.calls += 1;
        if self.gone {
            return Err(Gone);
        }
        let taken = (data.len as usize).min(self.room);
        self.room -= taken;
        if taken > 0 {
            self.output.push(data.slice(0, taken));
        }
        Ok(taken)
    }
}

impl Sockets<Symbolic> for Script {
    fn accept(&mut self) -> Option<SocketId> {
        self.calls += 1;
        self.pending = self.pending.checked_sub(1)?;
        Some(SocketId(self.pending))
    }
    fn receive(&mut self, _socket: SocketId, max: usize) -> Receive<Symbolic> {
        self.calls += 1;
        match self.input.pop_front() {
            Some(data) => {
                assert!(data.len as usize <= max);
                Receive::Data(data)
            }
            None if self.gone => Receive::Gone,
            None if self.ended => Receive::EndOfStream,
            None => Receive::WouldBlock,
        }
    }
    fn unread(&self, _socket: SocketId) -> Unread {
        let len = self.input.iter().map(|data| data.len as usize).sum();
        Unread {
            len,
            ended: self.ended || self.gone,
        }
    }
    fn send(&mut self, _socket: SocketId, data: Symbolic) -> Result<usize, Gone> {
        let taken = self.take(data)?;
        self.copied += taken;
        Ok(taken)
    }
    fn send_file(
        &mut self,
        _s: SocketId,
        content: FileContent,
        data: Symbolic,
    ) -> Result<usize, Gone> {
        assert_eq!(symbolic::file(&data), content.file);
        assert_eq!(data.offset, content.offset);
        assert!(u64::from(data.len) <= content.len);
        let taken = self.take(data)?;
        self.by_file += taken;
        Ok(taken)
    }
    fn set_cork(&mut self, _socket: SocketId, cork: bool) {
        assert_ne!(self.corked, cork, "changes only");
        self.corked = cork;
    }
    fn close(&mut self, _socket: SocketId) {
        assert!(!self.closed);
        self.closed = true;
    }
}

impl Costs for Script {
    fn work(&mut self, op: Op, count: u32) {
        self.worked.push((op, count));
    }
    fn read_file(&mut self, content: &FileContent) {
        assert_eq!(content.offset, self.read, "one piece after the other");
        self.read += content.len;
    }
    fn touch(&mut self, pool: Pool, _slot: u32, offset: u32, len: u32, _access: Access) {
        let (_, size) = baton_kernel::POOLS[pool as usize];
        assert!(offset + len <= size, "{pool:?} has {size} bytes");
    }
}

const SOCKET: SocketId = SocketId(0);

fn accepted() -> (Server<Symbolic, SymbolicHttp>, Script) {
    accepted_by(Config::default(), 1)
}

/// Creates a server with `count` connections, all of which use the same script.
fn accepted_by(config: Config, count: u32) -> (Server<Symbolic, SymbolicHttp>, Script) {
    let mut server = Server::with_config(config, SymbolicHttp);
    let mut script = Script {
        pending: count,
        room: usize::MAX,
        ..Script::default()
    };
    server.step(&mut script, Ready::Acceptable);
    assert_eq!(server.connections(), count);
    (server, script)
}

fn in_turns() -> Config {
    Config {
        turn_bytes: Some(1_000),
        cork: false,
        ..Config::default()
    }
}

fn assert_responses(requests: &[Symbolic], output: &[Symbolic]) {
    let mut output = output.iter().copied();
    let mut data = Symbolic {
        source: 0,
        offset: 0,
        len: 0,
    };
    for &request in requests {
        let mut reader = ResponseReader::new(request);
        while !reader.is_complete() {
            if data.len == 0 {
                data = output.next().expect("more of the response");
            }
            assert_eq!(reader.take(&mut data), Ok(()));
        }
    }
    assert_eq!(
        (data.len, output.next()),
        (0, None),
        "no more than was asked for"
    );
}

#[test]
fn a_static_file_is_sent_without_copying_and_a_dynamic_one_is_copied() {
    let (mut server, mut script) = accepted();
    let requests = [
        symbolic::request(9, 10_000, None),
        symbolic::request(0, 20_000, Some(Program::Answer)),
        symbolic::request(1, 0, None),
    ];
    for request in requests {
        script.input.push_back(request);
        server.step(&mut script, Ready::Readable(SOCKET));
    }
    assert_responses(&requests, &script.output);
    assert!(!script.corked);
    assert_eq!(script.by_file, 10_000);
    assert_eq!(script.copied, 20_000 + 3 * symbolic::HEAD_BYTES as usize);
    assert_eq!(
        (
            server.stats().responses,
            server.stats().dynamic,
            server.stats().content_bytes
        ),
        (3, 1, 30_000)
    );
}

#[test]
fn requests_may_come_together_and_in_pieces() {
    let (mut server, mut script) = accepted();
    let requests: Vec<_> = (0..20)
        .map(|file| symbolic::request(file, 500, None))
        .collect();
    for request in &requests[..19] {
        script.input.push_back(*request);
    }
    let last = requests[19];
    script.input.push_back(last.slice(0, 10));
    server.step(&mut script, Ready::Readable(SOCKET));
    assert_eq!(server.stats().responses, 19);
    script.input.push_back(last.slice(10, last.len() - 10));
    server.step(&mut script, Ready::Readable(SOCKET));
    assert_responses(&requests, &script.output);
}

#[test]
fn programs_of_each_kind_do_their_work() {
    let work_of = |program| {
        let (mut server, mut script) = accepted();
        let request = symbolic::request(7, 3000, Some(program));
        script.input.push_back(request);
        server.step(&mut script, Ready::Readable(SOCKET));
        assert_responses(&[request], &script.output);
        let is_programs = |(op, _): &(Op, u32)| {
            use Op::{AppAdvertisement, AppDynamic, AppForm, AppProcess, AppProgram, AppSearch};
            [
                AppProgram,
                AppProcess,
                AppAdvertisement,
                AppSearch,
                AppForm,
                AppDynamic,
            ]
            .contains(op)
        };
        script.worked.retain(is_programs);
        (script.read, script.worked)
    };
    let (begin, produce) = ((Op::AppProgram, 1), (Op::AppDynamic, 3));
    assert_eq!(work_of(Program::Answer), (0, vec![produce]));
    assert_eq!(work_of(Program::Page), (3000, vec![begin, produce]));
    let process = (Op::AppProcess, 1);
    assert_eq!(work_of(Program::Cgi), (3000, vec![begin, process, produce]));
    let (choose, search) = ((Op::AppAdvertisement, 1), (Op::AppSearch, 3));
    let all = vec![begin, choose, produce, search];
    assert_eq!(work_of(Program::Advertisement), (3000, all));
    let form = (Op::AppForm, 1);
    assert_eq!(work_of(Program::Post), (3000, vec![begin, form, produce]));
}

#[test]
fn a_full_socket_is_filled_when_it_has_space_again() {
    let (mut server, mut script) = accepted();
    let requests = [
        symbolic::request(9, 50_000, None),
        symbolic::request(0, 30_000, Some(Program::Answer)),
    ];
    script.input.extend(requests);
    script.room = 100;
    server.step(&mut script, Ready::Readable(SOCKET));
    while server.stats().responses < 2 {
        assert_eq!(script.room, 0, "all that fits is sent");
        script.room = 999;
        server.step(&mut script, Ready::Writable(SOCKET));
    }
    assert_responses(&requests, &script.output);
}

#[test]
fn the_server_reads_ahead_up_to_a_limit() {
    let (mut server, mut script) = accepted();
    let requests: Vec<_> = (0..200)
        .map(|file| symbolic::request(file, 500, None))
        .collect();
    script.input.extend(&requests);
    script.room = 0;
    server.step(&mut script, Ready::Readable(SOCKET));
    let read = 200 - script.input.len();
    assert!((50..80).contains(&read), "{read} requests were read");
    script.room = usize::MAX;
    server.step(&mut script, Ready::Writable(SOCKET));
    assert_responses(&requests, &script.output);
}

#[test]
fn the_server_closes_when_the_client_has_closed() {
    let (mut server, mut script) = accepted();
    let request = symbolic::request(9, 5000, None);
    script.input.push_back(request);
    script.ended = true;
    script.room = 300;
    server.step(&mut script, Ready::Readable(SOCKET));
    assert!(!script.closed, "the response is not yet complete");
    script.room = usize::MAX;
    server.step(&mut script, Ready::Writable(SOCKET));
    assert_responses(&[request], &script.output);
    assert!(script.closed && !script.corked);
    assert_eq!((server.connections(), server.stats().closed), (0, 1));
    let calls = script.calls;
    server.step(&mut script, Ready::Readable(SOCKET));
    assert_eq!(script.calls, calls, "a late event is ignored");
}

#[test]
fn the_server_survives_clients_that_vanish_or_send_garbage() {
    let (mut server, mut script) = accepted();
    script.gone = true;
    server.step(&mut script, Ready::Readable(SOCKET));
    assert!(script.closed && server.stats().lost == 1);

    let (mut server, mut script) = accepted();
    script.input.push_back(symbolic::request(9, 5000, None));
    script.room = 300;
    server.step(&mut script, Ready::Readable(SOCKET));
    script.gone = true;
    server.step(&mut script, Ready::Writable(SOCKET));
    assert!(script.closed && server.stats().lost == 1);

    let (mut server, mut script) = accepted();
    script.input.push_back(Symbolic {
        source: 0,
        offset: 0,
        len: 10,
    });
    server.step(&mut script, Ready::Readable(SOCKET));
    assert!(script.closed && server.stats().bad_requests == 1);

    let (mut server, mut script) = accepted();
    script
        .input
        .push_back(symbolic::request(9, 5000, None).slice(0, 20));
    script.ended = true;
    server.step(&mut script, Ready::Readable(SOCKET));
    assert!(script.closed && server.stats().lost == 1);
    assert_eq!(server.connections(), 0);
}

#[test]
fn each_connection_has_its_turn() {
    let (mut server, mut script) = accepted_by(in_turns(), 2);
    let sockets = [SocketId(0), SocketId(1)];
    for socket in sockets {
        script.input.push_back(symbolic::request(0, 2_500, None));
        server.step(&mut script, Ready::Readable(socket));
        // A repeated event before the connection's turn sends nothing more.
        server.step(&mut script, Ready::Writable(socket));
    }
    assert_eq!(script.by_file, 2_000);
    let mut order = Vec::new();
    while let Some(socket) = server.next_turn() {
        order.push((socket, script.by_file));
        server.step(&mut script, Ready::Writable(socket));
    }
    let [first, second] = sockets;
    let expected = [
        (first, 2_000),
        (second, 3_000),
        (first, 4_000),
        (second, 4_500),
    ];
    assert_eq!(order, expected);
    assert_eq!((script.by_file, server.stats().responses), (5_000, 2));
}

#[test]
fn a_lost_connection_is_removed_from_the_waiting_line() {
    let (mut server, mut script) = accepted_by(in_turns(), 1);
    script.input.push_back(symbolic::request(0, 2_500, None));
    server.step(&mut script, Ready::Readable(SOCKET));
    assert!(server.has_turn());
    server.close_all(&mut script, true);
    assert!(!server.has_turn());
}
