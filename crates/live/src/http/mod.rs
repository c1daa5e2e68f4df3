//! HTTP/1.1 on bytes: serves files below a folder, for [`baton_apps::web::Server`] on a live machine; and the client's side of HTTP
//! ([`ResponseReader`]).
//!
//! This module has no clock: its user sets the time ([`FileHttp::set_clock`]). It does read and write files.

mod body;
mod files;
mod head;
mod path;
mod range;
mod request;
mod response;
mod status;
mod upload;
mod version;

#[cfg(test)]
mod tests;

pub use body::{BadBody, BodyReader, Framing};
pub use response::{BadResponse, ResponseHead, ResponseReader};
pub use status::Status;

use baton_apps::web::{Http, Parsed, Request};
use baton_host::{FileContent, FileId};
use bytes::{Bytes, BytesMut};
use files::{CacheConfig, FileCache, Found, ServedFile};
use head::{After, Head};
use request::{Method, RequestHead};
use slab::Slab;
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};
use upload::Upload;

/// Maximum length of a request's header in bytes. Must be less than the number of bytes that the server reads ahead.
const LONGEST_HEAD: usize = 8 * 1024;
/// Content of large files is read in runs of this many bytes; a connection holds one run in addition to its send buffer.
const CHUNK_BYTES: u64 = 64 * 1024;
/// Headers are allocated in chunks of this many bytes.
const HEADS_BYTES: usize = 64 * 1024;

/// What is served, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpConfig {
    /// The folder whose files are served.
    pub root: PathBuf,
    /// The folder that PUT and POST write to; `None` refuses them.
    pub upload: Option<PathBuf>,
    /// Largest file that a client may send, bytes.
    pub upload_limit_bytes: u64,
    /// Files up to this size are kept in memory, bytes.
    pub cached_file_bytes: u64,
    /// Maximum size of all files in memory, bytes.
    pub cache_bytes: u64,
}

impl HttpConfig {
    /// Returns the usual parameters, for files below `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            upload: None,
            upload_limit_bytes: 64 << 30,
            cached_file_bytes: 256 << 10,
            cache_bytes: 64 << 20,
        }
    }
}

/// Counters of the HTTP server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpStats {
    /// Responses that were started, by status, in the order of [`Status::ALL`].
    responses: [u64; Status::ALL.len()],
    /// Files that were received completely.
    pub uploads: u64,
    /// Files whose upload was not completed.
    pub uploads_abandoned: u64,
    /// Files that shrank or changed while they were being sent.
    pub changed_files: u64,
}

impl HttpStats {
    /// Returns the number of responses with this status that were started.
    pub fn responses(&self, status: Status) -> u64 {
        self.responses[Self::index(status)]
    }

    fn count(&mut self, status: Status) {
        self.responses[Self::index(status)] += 1;
    }

    fn index(status: Status) -> usize {
        let position = Status::ALL.iter().position(|&known| known == status);
        position.expect("all statuses are listed")
    }
}

/// A request whose body is being received.
#[derive(Debug)]
struct Receiving {
    body: BodyReader,
    upload: Upload,
    after: After,
}

/// State of a connection.
#[derive(Debug, Default)]
pub struct Session {
    receiving: Option<Receiving>,
}

/// A response that is being sent.
#[derive(Debug)]
struct Response {
    head: Bytes,
    content: Content,
}

#[derive(Debug)]
enum Content {
    None,
    Memory(Bytes),
    File {
        file: Rc<ServedFile>,
        /// Offset of the content in the file.
        start: u64,
        len: u64,
        /// The last chunk that was read, and its offset in the content.
        chunk: Bytes,
        chunk_start: u64,
    },
}

/// Serves files below a folder over HTTP/1.1.
pub struct FileHttp {
    config: HttpConfig,
    files: FileCache,
    responses: Slab<Response>,
    /// Buffer from which headers are split off.
    heads: BytesMut,
    now_s: u64,
    /// The Date field, updated once a second.
    date: String,
    stats: HttpStats,
}

impl FileHttp {
    /// Creates a server with this configuration.
    ///
    /// # Errors
    /// The root is not a readable folder.
    pub fn new(config: HttpConfig) -> io::Result<Self> {
        let cache = CacheConfig {
            largest_bytes: config.cached_file_bytes,
            total_bytes: config.cache_bytes,
        };
        if !config.root.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self {
            files: FileCache::new(&config.root, cache)?,
            config,
            responses: Slab::new(),
            heads: BytesMut::with_capacity(HEADS_BYTES),
            now_s: 0,
            date: httpdate::fmt_http_date(UNIX_EPOCH),
            stats: HttpStats::default(),
        })
    }

    /// Sets the time; call this at least once a second while there are requests.
    pub fn set_clock(&mut self, now: SystemTime) {
        let now_s = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        if now_s != self.now_s {
            self.now_s = now_s;
            self.date = httpdate::fmt_http_date(now);
        }
    }

    /// Returns the counters.
    pub fn stats(&self) -> &HttpStats {
        &self.stats
    }

    /// Returns the number of requests for files that were found in the cache, and of those that were not.
    pub fn cache_hits_and_misses(&self) -> (u64, u64) {
        let stats = self.files.stats();
        (stats.hits, stats.misses)
    }

    // --- requests ---

    fn begin(&mut self, head: &RequestHead<'_>, session: &mut Session) -> Parsed<Bytes> {
        let len = head.len as u32;
        let after = After::of(head);
        match head.method {
            Method::Get | Method::Head => Parsed::Request(self.serve(head, after, len)),
            Method::NotAllowed => {
                Parsed::Request(self.refuse(Status::MethodNotAllowed, after.last(head), len))
            }
            Method::Upload => match self.begin_upload(head) {
                Err(status) => Parsed::Request(self.refuse(status, after.last(head), len)),
                Ok(upload) => {
                    let body = BodyReader::new(head.body);
                    if body.is_complete() {
                        return Parsed::Request(self.complete(upload, after, len));
                    }
                    session.receiving = Some(Receiving {
                        body,
                        upload,
                        after,
                    });
                    if head.expects_continue {
                        let response = Bytes::from_static(b"HTTP/1.1 100 Continue\r\n\r\n");
                        Parsed::Interim { response, len }
                    } else {
                        Parsed::Taken(len)
                    }
                }
            },
        }
    }

    fn serve(&mut self, head: &RequestHead<'_>, after: After, len: u32) -> Request {
        // A body that is not wanted is not read: it could have any length.
        let after = after.last(head);
        match self.files.find(head.target, self.now_s) {
            Err(status) => self.refuse(status, after, len),
            Ok(Found::File(file)) => self.serve_file(&file, head, after, len),
            Ok(Found::FolderWithoutSlash) => {
                let path = head.target.split(['?', '#']).next().unwrap_or(head.target);
                let location = format!("Location: {path}/\r\n");
                let head = Head::new(Status::MovedPermanently, after).field(&location);
                self.answer(head, 0, Content::None, len)
            }
        }
    }

    fn serve_file(
        &mut self,
        file: &Rc<ServedFile>,
        head: &RequestHead<'_>,
        after: After,
        len: u32,
    ) -> Request {
        // RFC 9110 13.1.3.
        if head
            .if_modified_since
            .is_some_and(|date| file.modified <= date)
        {
            let head = Head::new(Status::NotModified, after).field(&file.fields);
            return self.answer_without_length(head, len);
        }
        let unchanged = |date: &str| date == httpdate::fmt_http_date(file.modified);
        let range = head
            .range
            .filter(|_| head.method == Method::Get && head.if_range.is_none_or(unchanged));
        let (status, start, content_len, range_field) = match range.map(|r| r.within(file.len)) {
            None => (Status::Ok, 0, file.len, None),
            Some(Some((start, run))) => {
                let last = start + run - 1;
                let field = format!("Content-Range: bytes {start}-{last}/{}\r\n", file.len);
                (Status::PartialContent, start, run, Some(field))
            }
            Some(None) => {
                let field = format!("Content-Range: bytes */{}\r\n", file.len);
                let head = Head::new(Status::RangeNotSatisfiable, after).field(&field);
                return self.answer(head, 0, Content::None, len);
            }
        };
        let mut answer = Head::new(status, after).field(&file.fields);
        if let Some(field) = &range_field {
            answer = answer.field(field);
        }
        let content = if head.method == Method::Head || content_len == 0 {
            Content::None
        } else {
            Content::File {
                file: Rc::clone(file),
                start,
                len: content_len,
                chunk: Bytes::new(),
                chunk_start: 0,
            }
        };
        self.answer(answer, content_len, content, len)
    }

    // --- uploads ---

    fn begin_upload(&self, head: &RequestHead<'_>) -> Result<Upload, Status> {
        let Some(folder) = &self.config.upload else {
            return Err(Status::MethodNotAllowed);
        };
        let limit = self.config.upload_limit_bytes;
        if matches!(head.body, Framing::Length(len) if len > limit) {
            return Err(Status::ContentTooLarge);
        }
        Upload::begin(folder, head.target, limit)
    }

    /// Processes the received part of a body.
    fn receive(
        &mut self,
        session: &mut Session,
        mut receiving: Receiving,
        received: &mut VecDeque<Bytes>,
    ) -> Parsed<Bytes> {
        let mut taken = 0;
        while let Some(data) = received.front_mut()
            && !receiving.body.is_complete()
        {
            let before = data.len();
            let outcome = match receiving.body.take(data) {
                Ok(Some(content)) => receiving.upload.write(&content),
                Ok(None) => Ok(()),
                Err(BadBody) => Err(Status::BadRequest),
            };
            taken += (before - data.len()) as u32;
            if data.is_empty() {
                received.pop_front();
            }
            if let Err(status) = outcome {
                self.stats.uploads_abandoned += 1;
                return Parsed::Request(self.refuse(status, After::Close, taken));
            }
        }
        if receiving.body.is_complete() {
            let Receiving { upload, after, .. } = receiving;
            return Parsed::Request(self.complete(upload, after, taken));
        }
        session.receiving = Some(receiving);
        if taken == 0 {
            Parsed::Incomplete
        } else {
            Parsed::Taken(taken)
        }
    }

    fn complete(&mut self, upload: Upload, after: After, len: u32) -> Request {
        let status = upload.complete();
        match status {
            Status::NoContent => {
                self.stats.uploads += 1;
                self.answer_without_length(Head::new(status, after), len)
            }
            Status::Created => {
                self.stats.uploads += 1;
                self.answer(Head::new(status, after), 0, Content::None, len)
            }
            _ => {
                self.stats.uploads_abandoned += 1;
                self.refuse(status, after, len)
            }
        }
    }

    // --- responses ---

    /// Builds an error response with a text for people.
    fn refuse(&mut self, status: Status, after: After, len: u32) -> Request {
        let text = format!("{} {}\n", status.code(), status.name());
        let mut head = Head::new(status, after).field("Content-Type: text/plain\r\n");
        if status == Status::MethodNotAllowed {
            head = head.field(if self.config.upload.is_some() {
                "Allow: GET, HEAD, PUT, POST\r\n"
            } else {
                "Allow: GET, HEAD\r\n"
            });
        }
        let content_len = text.len() as u64;
        self.answer(head, content_len, Content::Memory(text.into()), len)
    }

    fn answer(&mut self, head: Head<'_>, content_len: u64, content: Content, len: u32) -> Request {
        let head_bytes = head.write(&mut self.heads, &self.date, Some(content_len));
        self.insert(&head, head_bytes, content, len)
    }

    /// RFC 9110 8.6: these responses have no content, and no field for its length.
    fn answer_without_length(&mut self, head: Head<'_>, len: u32) -> Request {
        let head_bytes = head.write(&mut self.heads, &self.date, None);
        self.insert(&head, head_bytes, Content::None, len)
    }

    fn insert(&mut self, head: &Head<'_>, bytes: Bytes, content: Content, len: u32) -> Request {
        self.stats.count(head.status);
        let content_len = match &content {
            Content::None => 0,
            Content::Memory(content) => content.len() as u64,
            Content::File { len, .. } => *len,
        };
        let slot = self.responses.insert(Response {
            head: bytes,
            content,
        });
        Request {
            file: FileId(slot as u32),
            content_len,
            program: None,
            len,
            last: head.after == After::Close,
        }
    }
}

impl Http<Bytes> for FileHttp {
    type Session = Session;

    fn parse(&mut self, session: &mut Session, received: &mut VecDeque<Bytes>) -> Parsed<Bytes> {
        if let Some(receiving) = session.receiving.take() {
            return self.receive(session, receiving, received);
        }
        join(received);
        let Some(front) = received.front_mut() else {
            return Parsed::Incomplete;
        };
        let text = front.clone();
        match request::parse(&text) {
            Ok(Some(head)) => {
                let _ = front.split_to(head.len);
                if front.is_empty() {
                    received.pop_front();
                }
                self.begin(&head, session)
            }
            Ok(None) if text.len() < LONGEST_HEAD => {
                // The incomplete header may wait for long, in a buffer that it shares with other data: copy it.
                *front = Bytes::copy_from_slice(&text);
                Parsed::Incomplete
            }
            outcome => {
                let status = outcome.err().unwrap_or(Status::FieldsTooLarge);
                received.clear();
                Parsed::Request(self.refuse(status, After::Close, text.len() as u32))
            }
        }
    }

    fn head(&mut self, request: &Request) -> Bytes {
        self.responses[request.file.0 as usize].head.clone()
    }

    fn content(&mut self, request: &Request, offset: u64, len: u32) -> Option<Bytes> {
        let most = len as usize;
        match &mut self.responses[request.file.0 as usize].content {
            Content::None => None,
            Content::Memory(content) => {
                let content = content.slice(usize::try_from(offset).ok()?..);
                Some(content.slice(..content.len().min(most)))
            }
            Content::File {
                file,
                start,
                len,
                chunk,
                chunk_start,
            } => {
                let known = *chunk_start..*chunk_start + chunk.len() as u64;
                if !known.contains(&offset) {
                    let left = *len - offset;
                    let run = if file.is_in_memory() {
                        left
                    } else {
                        // End the run at a multiple of the chunk size in the file, so that runs are whole blocks of caches.
                        left.min(CHUNK_BYTES - (*start + offset) % CHUNK_BYTES)
                    };
                    let Some(read) = file.read(*start + offset, run as usize) else {
                        self.stats.changed_files += 1;
                        return None;
                    };
                    (*chunk, *chunk_start) = (read, offset);
                }
                let content = chunk.slice((offset - *chunk_start) as usize..);
                Some(content.slice(..content.len().min(most)))
            }
        }
    }

    fn name(&self, request: &Request, offset: u64) -> Option<FileContent> {
        let Content::File {
            file, start, len, ..
        } = &self.responses[request.file.0 as usize].content
        else {
            return None;
        };
        let version = file.version?;
        Some(FileContent {
            file: version.file,
            revision: version.revision,
            file_len: file.len,
            offset: start + offset,
            len: len - offset,
        })
    }

    fn finish(&mut self, request: &Request) {
        self.responses.remove(request.file.0 as usize);
    }

    fn too_late(&mut self, session: &mut Session) -> Option<Request> {
        self.end(session);
        Some(self.refuse(Status::RequestTimeout, After::Close, 0))
    }

    fn end(&mut self, session: &mut Session) {
        if session.receiving.take().is_some() {
            self.stats.uploads_abandoned += 1;
        }
    }
}

/// Joins all received pieces into one.
fn join(received: &mut VecDeque<Bytes>) {
    if received.len() > 1 {
        let whole: Vec<u8> = received.drain(..).flatten().collect();
        received.push_back(whole.into());
    }
}
