//! Accounting of bus traffic.

use std::ops::{Add, AddAssign};

use baton_wire::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Direction in which bytes move. Either side may start the transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From host memory to the NIC.
    ToNic,
    /// From the NIC to host memory.
    ToHost,
}

/// Purpose of bytes on the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Response bodies, and any application data that is not known to be a header.
    Content,
    /// Ethernet, IP and TCP headers.
    ProtocolHeader,
    /// HTTP requests and response headers.
    HttpHeader,
    /// Descriptors: packets, commands, and the state of a connection that is handed off or restored.
    Descriptor,
    /// Events from the NIC.
    Event,
    /// All other bytes: doorbells, traffic of other devices.
    Other,
    /// Overhead of the interconnect: addresses, transaction headers, turnaround.
    Overhead,
}

impl Category {
    /// All categories.
    pub const ALL: [Self; 7] = [
        Self::Content,
        Self::ProtocolHeader,
        Self::HttpHeader,
        Self::Descriptor,
        Self::Event,
        Self::Other,
        Self::Overhead,
    ];
}

/// One value for each category.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(bound = "T: JsonSchema + Default + Serialize")]
pub struct ByCategory<T> {
    /// See [`Category::Content`].
    pub content: T,
    /// See [`Category::ProtocolHeader`].
    pub protocol_header: T,
    /// See [`Category::HttpHeader`].
    pub http_header: T,
    /// See [`Category::Descriptor`].
    pub descriptor: T,
    /// See [`Category::Event`].
    pub event: T,
    /// See [`Category::Other`].
    #[serde(default)]
    pub other: T,
    /// See [`Category::Overhead`].
    pub overhead: T,
}

/// Number of bytes by category.
pub type BytesByCategory = ByCategory<u64>;

/// Time on the bus by category. Serialised as picoseconds.
pub type TimeByCategory = ByCategory<Span>;

impl<T: Copy + Default + Add<Output = T>> ByCategory<T> {
    /// Returns values that are zero except for `value` in `category`.
    #[inline]
    pub fn of(category: Category, value: T) -> Self {
        Self::default().with(category, value)
    }

    /// Adds `value` to `category` and returns the result.
    #[must_use]
    #[inline]
    pub fn with(mut self, category: Category, value: T) -> Self {
        self.add(category, value);
        self
    }

    /// Adds `value` to `category`.
    #[inline]
    pub fn add(&mut self, category: Category, value: T) {
        let slot = self.get_mut(category);
        *slot = *slot + value;
    }

    /// Returns the value of one category.
    pub fn get(&self, category: Category) -> T {
        match category {
            Category::Content => self.content,
            Category::ProtocolHeader => self.protocol_header,
            Category::HttpHeader => self.http_header,
            Category::Descriptor => self.descriptor,
            Category::Event => self.event,
            Category::Other => self.other,
            Category::Overhead => self.overhead,
        }
    }

    /// Returns the sum of all categories.
    #[inline]
    pub fn total(&self) -> T {
        self.content
            + self.protocol_header
            + self.http_header
            + self.descriptor
            + self.event
            + self.other
            + self.overhead
    }

    #[inline]
    fn get_mut(&mut self, category: Category) -> &mut T {
        match category {
            Category::Content => &mut self.content,
            Category::ProtocolHeader => &mut self.protocol_header,
            Category::HttpHeader => &mut self.http_header,
            Category::Descriptor => &mut self.descriptor,
            Category::Event => &mut self.event,
            Category::Other => &mut self.other,
            Category::Overhead => &mut self.overhead,
        }
    }
}

impl BytesByCategory {
    /// Removes up to `bytes`, headers before content as in a packet, and returns the removed bytes by category.
    pub fn take(&mut self, bytes: u64) -> Self {
        if bytes >= self.total() {
            return std::mem::take(self);
        }
        let mut left = bytes;
        let mut part = |held: &mut u64| {
            let part = left.min(*held);
            *held -= part;
            left -= part;
            part
        };
        // The order of these fields is the order of removal.
        Self {
            descriptor: part(&mut self.descriptor),
            event: part(&mut self.event),
            protocol_header: part(&mut self.protocol_header),
            http_header: part(&mut self.http_header),
            content: part(&mut self.content),
            other: part(&mut self.other),
            overhead: part(&mut self.overhead),
        }
    }
}

impl<T: AddAssign> AddAssign for ByCategory<T> {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.content += other.content;
        self.protocol_header += other.protocol_header;
        self.http_header += other.http_header;
        self.descriptor += other.descriptor;
        self.event += other.event;
        self.other += other.other;
        self.overhead += other.overhead;
    }
}

/// Traffic in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DirectionAccount {
    /// Number of DMA operations.
    pub crossings: u64,
    /// Bytes that these operations moved.
    pub bytes: BytesByCategory,
}

/// Traffic on the bus, in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Accounting {
    /// From host memory to the NIC.
    pub to_nic: DirectionAccount,
    /// From the NIC to host memory.
    pub to_host: DirectionAccount,
}

impl Accounting {
    /// Counts one DMA operation that moves `bytes` of one category. [`Accounting::add_bytes`] adds bytes of other categories that the same
    /// operation moves.
    pub fn cross(&mut self, direction: Direction, category: Category, bytes: u64) {
        self.direction_mut(direction).crossings += 1;
        self.add_bytes(direction, category, bytes);
    }

    /// Counts bytes of an operation that has already been counted.
    pub fn add_bytes(&mut self, direction: Direction, category: Category, bytes: u64) {
        self.direction_mut(direction).bytes.add(category, bytes);
    }

    /// Counts bytes of several categories of an operation that has already been counted.
    pub fn add(&mut self, direction: Direction, bytes: BytesByCategory) {
        self.direction_mut(direction).bytes += bytes;
    }

    /// Returns the traffic in `direction`.
    pub fn direction(&self, direction: Direction) -> &DirectionAccount {
        match direction {
            Direction::ToNic => &self.to_nic,
            Direction::ToHost => &self.to_host,
        }
    }

    /// Returns the number of DMA operations in both directions.
    pub fn crossings(&self) -> u64 {
        self.to_nic.crossings + self.to_host.crossings
    }

    /// Returns the number of bytes in both directions.
    pub fn bytes(&self) -> u64 {
        self.to_nic.bytes.total() + self.to_host.bytes.total()
    }

    fn direction_mut(&mut self, direction: Direction) -> &mut DirectionAccount {
        match direction {
            Direction::ToNic => &mut self.to_nic,
            Direction::ToHost => &mut self.to_host,
        }
    }
}

impl AddAssign for DirectionAccount {
    fn add_assign(&mut self, other: Self) {
        self.crossings += other.crossings;
        self.bytes += other.bytes;
    }
}

impl AddAssign for Accounting {
    fn add_assign(&mut self, other: Self) {
        self.to_nic += other.to_nic;
        self.to_host += other.to_host;
    }
}

/// Number of buckets of [`EntriesPerTransfer`].
const BUCKETS: usize = 17;

/// Number of ring entries per transfer: the histogram of batching section 3.2, in powers of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EntriesPerTransfer {
    /// Number of transfers.
    pub transfers: u64,
    /// Number of entries in all transfers.
    pub entries: u64,
    /// Largest number of entries in one transfer.
    pub largest: u64,
    /// Bucket 0 counts transfers of 1 entry, bucket n those of more than 2^(n-1) and at most 2^n; the last has no upper bound.
    pub buckets: [u64; BUCKETS],
}

impl EntriesPerTransfer {
    /// Counts a transfer of `entries` ring entries. There must be at least one.
    pub fn record(&mut self, entries: u64) {
        debug_assert!(entries > 0, "a transfer of nothing");
        self.transfers += 1;
        self.entries += entries;
        self.largest = self.largest.max(entries);
        let bucket = entries.next_power_of_two().trailing_zeros() as usize;
        self.buckets[bucket.min(BUCKETS - 1)] += 1;
    }

    /// Returns the counts since `earlier`. The largest transfer is that of the whole time.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut buckets = self.buckets;
        for (bucket, before) in buckets.iter_mut().zip(earlier.buckets) {
            *bucket -= before;
        }
        Self {
            transfers: self.transfers - earlier.transfers,
            entries: self.entries - earlier.entries,
            largest: self.largest,
            buckets,
        }
    }

    /// Returns the mean number of entries per transfer, or 0 without transfers.
    pub fn mean(&self) -> f64 {
        if self.transfers == 0 {
            0.0
        } else {
            self.entries as f64 / self.transfers as f64
        }
    }
}

impl AddAssign for EntriesPerTransfer {
    fn add_assign(&mut self, other: Self) {
        self.transfers += other.transfers;
        self.entries += other.entries;
        self.largest = self.largest.max(other.largest);
        for (bucket, more) in self.buckets.iter_mut().zip(other.buckets) {
            *bucket += more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_operation_may_move_several_categories() {
        let mut account = Accounting::default();
        account.cross(Direction::ToNic, Category::ProtocolHeader, 54);
        account.add_bytes(Direction::ToNic, Category::Content, 1_460);
        account.cross(Direction::ToHost, Category::Event, 32);
        assert_eq!(account.crossings(), 2);
        assert_eq!(account.direction(Direction::ToNic).crossings, 1);
        assert_eq!(account.direction(Direction::ToNic).bytes.total(), 1_514);
        assert_eq!(
            account
                .direction(Direction::ToHost)
                .bytes
                .get(Category::Event),
            32
        );
        assert_eq!(account.bytes(), 1_546);
    }

    #[test]
    fn every_category_is_counted_separately() {
        let mut account = Accounting::default();
        for (n, category) in Category::ALL.into_iter().enumerate() {
            account.cross(Direction::ToHost, category, 1 << n);
        }
        for (n, category) in Category::ALL.into_iter().enumerate() {
            assert_eq!(account.to_host.bytes.get(category), 1 << n, "{category:?}");
        }
        assert_eq!(account.to_nic, DirectionAccount::default());
    }

    #[test]
    fn merging_adds_everything() {
        let mut one = Accounting::default();
        one.cross(Direction::ToNic, Category::Descriptor, 32);
        one.cross(Direction::ToHost, Category::Content, 100);
        let mut twice = one;
        twice += one;
        assert_eq!(twice.crossings(), 4);
        assert_eq!(twice.to_nic.bytes.descriptor, 64);
        assert_eq!(twice.to_host.bytes.content, 200);
    }

    #[test]
    fn accounts_are_written_by_name_and_read_back() {
        let mut account = Accounting::default();
        account.cross(Direction::ToNic, Category::HttpHeader, 240);
        let json = serde_json::to_string(&account).unwrap();
        assert!(json.contains(
            r#""to_nic":{"crossings":1,"bytes":{"content":0,"protocol_header":0,"http_header":240"#
        ));
        assert_eq!(serde_json::from_str::<Accounting>(&json).unwrap(), account);
    }

    #[test]
    fn accounts_without_other_traffic_are_read() {
        let old = r#"{"content":1,"protocol_header":2,"http_header":3,"descriptor":4,"event":5,"overhead":6}"#;
        let bytes: BytesByCategory = serde_json::from_str(old).unwrap();
        assert_eq!((bytes.other, bytes.total()), (0, 21));
    }

    #[test]
    fn bytes_are_taken_headers_first() {
        let packet =
            BytesByCategory::of(Category::ProtocolHeader, 54).with(Category::Content, 1_460);
        let mut left = packet;
        let first = left.take(512);
        assert_eq!((first.protocol_header, first.content), (54, 458));
        let mut sum = first;
        sum += left.take(512);
        sum += left.take(5_000);
        assert_eq!(sum, packet);
        assert_eq!(left, BytesByCategory::default());
    }

    #[test]
    fn histogram_buckets_are_powers_of_two() {
        let mut histogram = EntriesPerTransfer::default();
        for entries in [1, 1, 2, 3, 4, 5, 128, 1 << 20] {
            histogram.record(entries);
        }
        assert_eq!(histogram.buckets[..4], [2, 1, 2, 1]);
        assert_eq!(
            (histogram.buckets[7], histogram.buckets[BUCKETS - 1]),
            (1, 1)
        );
        assert_eq!((histogram.transfers, histogram.largest), (8, 1 << 20));
        let mut merged = histogram;
        merged += histogram;
        assert_eq!((merged.transfers, merged.buckets[0]), (16, 4));
        assert_eq!(merged.mean(), histogram.mean());
        let later = merged.since(&histogram);
        assert_eq!(later, histogram);
        assert_eq!(EntriesPerTransfer::default().mean(), 0.0);
    }
}
