//! A live stream over HTTP: a client requests the channel, and gets the current block, or the next if it already has the current one.

use super::{Exchange, SymbolicHttp};
use crate::web::{Http, Parsed, Request};
use baton_wire::Symbolic;
use std::collections::VecDeque;

/// Symbolic HTTP for one channel. Whatever file a client requests, it never gets a block twice; its request waits for the next block.
#[derive(Clone, Copy, Debug, Default)]
pub struct LiveHttp {
    http: SymbolicHttp,
    /// Number of the current block, counted from 1; 0 before the first.
    block: u32,
}

impl LiveHttp {
    /// Starts a new block, so that waiting requests can be answered.
    pub fn produced(&mut self) {
        self.block += 1;
    }

    /// Returns the number of blocks so far.
    pub fn blocks(&self) -> u32 {
        self.block
    }
}

impl Http<Symbolic> for LiveHttp {
    /// Number of the last block that was sent to the client.
    type Session = u32;

    fn parse(&mut self, seen: &mut u32, received: &mut VecDeque<Symbolic>) -> Parsed<Symbolic> {
        let asks = received.front().is_some_and(|first| {
            Exchange::of(first.source).is_some_and(|exchange| exchange.kind.is_request())
        });
        if asks && *seen == self.block {
            return Parsed::Incomplete;
        }
        let parsed = self.http.parse(&mut (), received);
        if matches!(parsed, Parsed::Request(_)) {
            *seen = self.block;
        }
        parsed
    }

    fn head(&mut self, request: &Request) -> Symbolic {
        self.http.head(request)
    }

    fn content(&mut self, request: &Request, offset: u64, len: u32) -> Option<Symbolic> {
        self.http.content(request, offset, len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbolic::request;

    #[test]
    fn a_client_gets_each_block_once() {
        let (mut live, mut seen) = (LiveHttp::default(), 0);
        let ask = |live: &mut LiveHttp, seen: &mut u32| {
            let mut received = VecDeque::from([request(0, 1_000, None)]);
            let parsed = live.parse(seen, &mut received);
            matches!(parsed, Parsed::Request(_))
        };
        assert!(!ask(&mut live, &mut seen), "nothing was produced");
        live.produced();
        assert!(ask(&mut live, &mut seen));
        assert!(!ask(&mut live, &mut seen), "it already has this block");
        live.produced();
        live.produced();
        assert!(ask(&mut live, &mut seen));
        assert_eq!(seen, 3, "a slow client misses a block");
        assert!(
            ask(&mut live, &mut 0),
            "a new client gets the current block immediately"
        );
        let mut nonsense = VecDeque::from([Symbolic {
            source: 0,
            offset: 0,
            len: 1,
        }]);
        assert_eq!(live.parse(&mut seen, &mut nonsense), Parsed::Bad);
    }
}
