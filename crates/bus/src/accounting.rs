//! What crosses the bus, counted.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Which way bytes move. Either side may start the transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From host memory to the NIC.
    ToNic,
    /// From the NIC to host memory.
    ToHost,
}

/// What bytes on the bus are for.
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
    /// What the interconnect itself adds: addresses, transaction headers, turnaround.
    Overhead,
}

/// All categories.
const CATEGORIES: [Category; 6] = [
    Category::Content,
    Category::ProtocolHeader,
    Category::HttpHeader,
    Category::Descriptor,
    Category::Event,
    Category::Overhead,
];

/// Bytes by what they are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BytesByCategory {
    /// See [`Category::Content`].
    pub content: u64,
    /// See [`Category::ProtocolHeader`].
    pub protocol_header: u64,
    /// See [`Category::HttpHeader`].
    pub http_header: u64,
    /// See [`Category::Descriptor`].
    pub descriptor: u64,
    /// See [`Category::Event`].
    pub event: u64,
    /// See [`Category::Overhead`].
    pub overhead: u64,
}

impl BytesByCategory {
    /// Bytes of one category.
    pub fn get(&self, category: Category) -> u64 {
        match category {
            Category::Content => self.content,
            Category::ProtocolHeader => self.protocol_header,
            Category::HttpHeader => self.http_header,
            Category::Descriptor => self.descriptor,
            Category::Event => self.event,
            Category::Overhead => self.overhead,
        }
    }

    /// Bytes of all categories.
    pub fn total(&self) -> u64 {
        CATEGORIES.iter().map(|&category| self.get(category)).sum()
    }

    fn get_mut(&mut self, category: Category) -> &mut u64 {
        match category {
            Category::Content => &mut self.content,
            Category::ProtocolHeader => &mut self.protocol_header,
            Category::HttpHeader => &mut self.http_header,
            Category::Descriptor => &mut self.descriptor,
            Category::Event => &mut self.event,
            Category::Overhead => &mut self.overhead,
        }
    }
}

/// What crossed the bus in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionAccount {
    /// DMA operations.
    pub crossings: u64,
    /// Bytes they moved.
    pub bytes: BytesByCategory,
}

/// What crossed the bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accounting {
    /// From host memory to the NIC.
    pub to_nic: DirectionAccount,
    /// From the NIC to host memory.
    pub to_host: DirectionAccount,
}

impl Accounting {
    /// Counts one DMA operation that moves `bytes` of one category. Bytes of other categories that the same
    /// operation moves are added with [`Accounting::add_bytes`].
    pub fn cross(&mut self, direction: Direction, category: Category, bytes: u64) {
        self.direction_mut(direction).crossings += 1;
        self.add_bytes(direction, category, bytes);
    }

    /// Counts bytes of an operation that is already counted.
    pub fn add_bytes(&mut self, direction: Direction, category: Category, bytes: u64) {
        *self.direction_mut(direction).bytes.get_mut(category) += bytes;
    }

    /// What crossed in `direction`.
    pub fn direction(&self, direction: Direction) -> &DirectionAccount {
        match direction {
            Direction::ToNic => &self.to_nic,
            Direction::ToHost => &self.to_host,
        }
    }

    /// DMA operations in both directions.
    pub fn crossings(&self) -> u64 {
        self.to_nic.crossings + self.to_host.crossings
    }

    /// Bytes in both directions.
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
        for category in CATEGORIES {
            *self.bytes.get_mut(category) += other.bytes.get(category);
        }
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

/// How many ring entries each transfer moved: the histogram of batching section 3.2, in powers of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntriesPerTransfer {
    /// Transfers.
    pub transfers: u64,
    /// Entries they moved.
    pub entries: u64,
    /// The most entries in one transfer.
    pub largest: u64,
    /// Bucket 0 counts transfers of 1 entry, bucket n those of more than 2^(n-1) and at most 2^n; the last has no upper bound.
    pub buckets: [u64; BUCKETS],
}

impl EntriesPerTransfer {
    /// Counts a transfer of `entries` ring entries, at least one.
    pub fn record(&mut self, entries: u64) {
        debug_assert!(entries > 0, "a transfer of nothing");
        self.transfers += 1;
        self.entries += entries;
        self.largest = self.largest.max(entries);
        let bucket = entries.next_power_of_two().trailing_zeros() as usize;
        self.buckets[bucket.min(BUCKETS - 1)] += 1;
    }

    /// Mean number of entries in a transfer, 0 without transfers.
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
    fn every_category_is_kept_apart() {
        let mut account = Accounting::default();
        for (n, category) in CATEGORIES.into_iter().enumerate() {
            account.cross(Direction::ToHost, category, 1 << n);
        }
        for (n, category) in CATEGORIES.into_iter().enumerate() {
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
        assert_eq!(EntriesPerTransfer::default().mean(), 0.0);
    }
}
