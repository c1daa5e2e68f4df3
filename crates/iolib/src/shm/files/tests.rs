use super::*;
use crate::live_link::LiveLink;
use crate::shm::tests::{NOW, SMALL};
use crate::shm::{ShmAdapter, ShmHost, pair};
use baton_bus::descriptor::FilePlace;
use baton_bus::link::{AdapterLink, Dma, DmaId, HostLink, LinkError, Violation};
use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Advice, fadvise};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A link, and a folder in whose files the adapter can read.
struct Shared {
    host: ShmHost,
    adapter: ShmAdapter,
    folder: TempDir,
}

impl Shared {
    /// Returns `None` if the file system does not support it: tests then have nothing to test.
    fn new() -> Option<Self> {
        let (host, adapter, _) = pair(SMALL).expect("memory");
        // The crate's directory is more often on a disk than that of temporary files.
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR"))
            .or_else(|_| tempfile::tempdir())
            .expect("a folder");
        let mut shared = Self {
            host,
            adapter,
            folder,
        };
        let path = shared.file("probe", b"probe");
        let address = shared.lend(&path)?;
        shared.host.free(address);
        Some(shared)
    }

    fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).expect("room");
        path
    }

    /// Opens a file and lends it, as for one SEND.
    fn lend(&mut self, path: &Path) -> Option<u64> {
        let file = File::open(path).expect("it is there");
        self.lend_open(&file)
    }

    fn lend_open(&mut self, file: &File) -> Option<u64> {
        self.host.lend(file.as_fd(), &fstat(file).expect("a file"))
    }

    /// Has the adapter read, and waits for the result: `None` if it has failed.
    fn read(&mut self, address: u64, len: u32) -> Option<Bytes> {
        let id = DmaId(3);
        let begun = self.adapter.read(NOW, id, address, len);
        assert_eq!(begun, Ok(()));
        match self.next() {
            Dma::Read { id: of, data } if of == id => Some(data),
            Dma::Failed { id: of } if of == id => None,
            other => panic!("{other:?}"),
        }
    }

    /// Waits for the next completed transfer.
    fn next(&mut self) -> Dma<Bytes> {
        loop {
            if let Some(dma) = self.adapter.poll_dma(NOW).expect("the host is there") {
                return dma;
            }
            let bell = self.adapter.other_fd().expect("a file is being read");
            poll(&mut [PollFd::from_borrowed_fd(bell, PollFlags::IN)], None).expect("it rings");
        }
    }
}

fn offset_of(address: u64, offset: u64) -> u64 {
    let place = FilePlace::at(address).expect("in a file");
    FilePlace { offset, ..place }.address()
}

#[test]
fn a_file_is_passed_once_per_revision() {
    let Some(mut shared) = Shared::new() else {
        return;
    };
    let path = shared.file("one", b"first content");
    let first = shared.lend(&path).expect("it is passed");
    assert_eq!(
        shared.lend(&path),
        Some(first),
        "opened again, it is the same"
    );
    assert_eq!(shared.read(first, 5).as_deref(), Some(&b"first"[..]));
    let later = shared.read(offset_of(first, 6), 7);
    assert_eq!(later.as_deref(), Some(&b"content"[..]));
    let mut longer = OpenOptions::new()
        .append(true)
        .open(&path)
        .expect("it is there");
    longer.write_all(b", longer").expect("room");
    let second = shared.lend(&path).expect("it is passed");
    assert_ne!(second, first);
    let read = shared.read(second, 21);
    assert_eq!(read.as_deref(), Some(&b"first content, longer"[..]));
    // A deployment replaces the file by another of the same name.
    let other = shared.file("two", b"other content");
    std::fs::rename(&other, &path).expect("same folder");
    let third = shared.lend(&path).expect("it is passed");
    assert_eq!(
        shared.read(third, 13).as_deref(),
        Some(&b"other content"[..])
    );
    let still = shared.read(first, 13);
    assert_eq!(still.as_deref(), Some(&b"first content"[..]));
    for address in [first, first, second, third] {
        shared.host.free(address);
    }
}

#[test]
fn a_range_beyond_the_end_fails() {
    let Some(mut shared) = Shared::new() else {
        return;
    };
    let path = shared.file("one", &[7; 10_000]);
    let address = shared.lend(&path).expect("it is passed");
    let file = OpenOptions::new()
        .write(true)
        .open(&path)
        .expect("it is there");
    file.set_len(5000).expect("it can be cut");
    assert_eq!(shared.read(address, 5001), None);
    assert_eq!(shared.read(offset_of(address, 5000), 1), None);
    let last = offset_of(address, FilePlace::BYTES - 1);
    assert_eq!(shared.read(last, 1), None);
    assert_eq!(shared.read(address, 5000), Some(vec![7; 5000].into()));
}

/// Reads from a disk complete in order with other transfers.
#[test]
fn content_that_is_not_in_memory_is_read_by_a_thread() {
    let Some(mut shared) = Shared::new() else {
        return;
    };
    let content: Vec<u8> = (0..1 << 20).map(|at| (at % 251) as u8).collect();
    let path = shared.file("cold", &content);
    let file = File::open(&path).expect("it is there");
    file.sync_all().expect("a disk");
    fadvise(&file, 0, None, Advice::DontNeed).expect("advice is free");
    let address = shared.lend(&path).expect("it is passed");
    let placed = shared
        .host
        .place(Bytes::from_static(b"placed"))
        .expect("a buffer");
    let (pieces, len) = (16, 1 << 16);
    for piece in 0..pieces {
        let at = offset_of(address, u64::from(piece * len));
        let begun = shared.adapter.read(NOW, DmaId(piece), at, len);
        assert_eq!(begun, Ok(()));
    }
    let begun = shared.adapter.read(NOW, DmaId(99), placed, 6);
    assert_eq!(begun, Ok(()));
    assert!(
        shared.adapter.other_fd().is_some(),
        "not all was in memory: {:?}",
        shared.folder
    );
    let mut read = Vec::new();
    for piece in 0..pieces {
        match shared.next() {
            Dma::Read { id, data } if id == DmaId(piece) => read.extend_from_slice(&data),
            other => panic!("{other:?}"),
        }
    }
    assert!(read == content, "the content is the file's");
    let (id, data) = (DmaId(99), Bytes::from_static(b"placed"));
    assert_eq!(shared.next(), Dma::Read { id, data });
    assert_eq!(shared.adapter.prepare_to_sleep(), Ok(true));
}

#[test]
fn only_regular_files_are_lent() {
    let Some(mut shared) = Shared::new() else {
        return;
    };
    let (pipe, _other_end) = rustix::pipe::pipe().expect("room");
    let memory = rustix::fs::memfd_create("memory", rustix::fs::MemfdFlags::CLOEXEC);
    for file in [pipe, memory.expect("room")] {
        assert_eq!(shared.lend_open(&file.into()), None);
    }
    for path in ["/dev/zero", "/proc/self/maps", "/"] {
        assert_eq!(shared.lend(Path::new(path)), None, "{path}");
    }
    let path = shared.file("one", b"content");
    let file = OpenOptions::new()
        .write(true)
        .open(path)
        .expect("it is there");
    assert_eq!(shared.lend_open(&file), None, "it is not readable");
}

/// Whatever the host passes: the adapter reads only regular files, and does not wait.
#[test]
fn a_hostile_host_gets_errors() {
    let (host, near) = UnixStream::pair().expect("room");
    let mut files = Files::new(near);
    assert!(files.get(0).is_none(), "nothing was passed");
    let (pipe, _other_end) = rustix::pipe::pipe().expect("room");
    let path = std::env::current_exe().expect("a program");
    let open = |flags| rustix::fs::open(&path, flags, rustix::fs::Mode::empty()).expect("a file");
    let zero = File::open("/dev/zero").expect("a device");
    let folder = File::open("/").expect("a folder");
    let others = [pipe, open(OFlags::PATH), zero.into(), folder.into()];
    for (number, file) in (1..).zip(&others) {
        pass(&host, number, file).expect("room");
        assert!(matches!(files.get(number), Some(None)));
    }
    pass(&host, 5, &open(OFlags::RDONLY)).expect("room");
    assert!(matches!(files.get(5), Some(Some(_))));
    // A number without a file, and half a number.
    rustix::io::write(&host, &[6, 0, 0, 0]).expect("room");
    assert!(matches!(files.get(6), Some(None)));
    rustix::io::write(&host, &[7, 0]).expect("room");
    assert!(files.get(7).is_none());
    // Pass more files than the adapter keeps: it keeps the last ones.
    for number in 0..200 {
        pass(&host, 1000 + number, &open(OFlags::RDONLY)).expect("room");
        if number % 50 == 0 {
            assert!(files.get(1000 + number).is_some());
        }
    }
    assert!(files.get(1000).is_none() && files.slots.len() == MOST_FILES as usize);
    drop(host);
    assert!(
        files.get(3).is_none(),
        "replaced, and nobody passes any more"
    );
    assert!(files.get(1).is_none());
}

#[test]
fn an_unknown_number_is_a_violation() {
    let (_host, mut adapter, _) = pair(SMALL).expect("memory");
    let place = FilePlace { file: 3, offset: 0 };
    let (address, len) = (place.address(), 10);
    let range = LinkError::Violation(Violation::Range { address, len });
    assert_eq!(adapter.read(NOW, DmaId(1), address, len), Err(range));
}

#[test]
fn files_in_use_are_not_replaced_by_others() {
    let Some(mut shared) = Shared::new() else {
        return;
    };
    let used = shared.file("used", b"used");
    let used = shared.lend(&used).expect("it is passed");
    let mut others = 0;
    for number in 0..1000 {
        let name = number.to_string();
        let path = shared.file(&name, name.as_bytes());
        if let Some(address) = shared.lend(&path) {
            others += 1;
            let read = shared.read(address, name.len() as u32);
            assert_eq!(read.as_deref(), Some(name.as_bytes()));
            shared.host.free(address);
        }
    }
    // The file that tests the file system and the file in use occupy slots.
    let free = MOST_FILES as usize - 2;
    assert!(
        (free + 50..free + 200).contains(&others),
        "{others} of 1000 were passed"
    );
    assert_eq!(shared.read(used, 4).as_deref(), Some(&b"used"[..]));
}
