//! HTTP/1.0 without keep-alive, in symbols: the server closes after its first response.

use baton_apps::symbolic::SymbolicHttp;
use baton_apps::web::{Http, Parsed, Request};
use baton_tcp::Symbolic;
use std::collections::VecDeque;

/// [`SymbolicHttp`], but each request is the last of its connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClosingHttp(SymbolicHttp);

impl Http<Symbolic> for ClosingHttp {
    type Session = ();

    fn parse(&mut self, session: &mut (), received: &mut VecDeque<Symbolic>) -> Parsed<Symbolic> {
        match self.0.parse(session, received) {
            Parsed::Request(request) => Parsed::Request(Request {
                last: true,
                ..request
            }),
            other => other,
        }
    }

    fn head(&mut self, request: &Request) -> Symbolic {
        self.0.head(request)
    }

    fn content(&mut self, request: &Request, offset: u64, len: u32) -> Option<Symbolic> {
        self.0.content(request, offset, len)
    }
}
