//! Connections between hosts: in-memory streams that break when their host crashes, and carry
//! nothing while the way is cut.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::sync::mpsc;

use super::disk::HostId;
use crate::env::{Listener, Network, Stream};

/// Bytes in flight on one connection.
const PIPE_BYTES: usize = 64 << 10;

/// From a host to another one.
type Way = (HostId, HostId);

#[derive(Default)]
struct Ways {
    listeners: BTreeMap<HostId, mpsc::UnboundedSender<(SimStream, SocketAddr)>>,
    /// Those that carry nothing.
    cut: BTreeSet<Way>,
    /// Who waits for a way to be healed.
    waiting: Vec<Waker>,
}

/// The network of a world; every host listens on at most one port.
#[derive(Clone, Default)]
pub struct SimNetwork(Arc<Mutex<Ways>>);

impl SimNetwork {
    /// The network as one host sees it.
    pub fn of(&self, host: HostId) -> Arc<dyn Network> {
        Arc::new(Port { network: self.clone(), host })
    }

    /// Lets nothing pass from a host to another any more. What comes the other way still passes.
    pub fn cut(&self, from: HostId, to: HostId) {
        self.0.lock().cut.insert((from, to));
    }

    /// Lets everything pass again. Nothing was lost meanwhile.
    pub fn heal(&self) {
        let mut ways = self.0.lock();
        ways.cut.clear();
        ways.waiting.drain(..).for_each(Waker::wake);
    }

    /// Removes the listener of a host.
    pub fn forget(&self, host: HostId) {
        self.0.lock().listeners.remove(&host);
    }

    /// Waits while one of these ways is cut.
    fn poll_passable(&self, ways: &[Way], context: &Context<'_>) -> Poll<()> {
        let mut network = self.0.lock();
        if ways.iter().any(|way| network.cut.contains(way)) {
            network.waiting.push(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }
}

struct Port {
    network: SimNetwork,
    host: HostId,
}

#[async_trait]
impl Network for Port {
    async fn listen(&self, _address: &str) -> io::Result<Box<dyn Listener>> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.network.0.lock().listeners.insert(self.host, sender);
        Ok(Box::new(SimListener { receiver }))
    }

    /// The host is named by its number. Refused where nobody listens.
    async fn connect(&self, address: &str) -> io::Result<Box<dyn Stream>> {
        let host = address.split(':').next().and_then(|host| host.parse::<HostId>().ok());
        let host = host.ok_or(io::ErrorKind::InvalidInput)?;
        let ways = [(self.host, host), (host, self.host)];
        std::future::poll_fn(|context| self.network.poll_passable(&ways, context)).await;
        let (near, far) = tokio::io::duplex(PIPE_BYTES);
        let stream = |inner, way| SimStream { inner, network: self.network.clone(), way };
        let from = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 40_000);
        let network = self.network.0.lock();
        let listener = network.listeners.get(&host).ok_or(io::ErrorKind::ConnectionRefused)?;
        let sent = listener.send((stream(far, ways[1]), from));
        sent.map_err(|_| io::ErrorKind::ConnectionRefused)?;
        drop(network);
        Ok(Box::new(stream(near, ways[0])))
    }
}

/// One end of a connection.
struct SimStream {
    inner: DuplexStream,
    network: SimNetwork,
    /// The way of what is written here.
    way: Way,
}

impl Stream for SimStream {}

impl AsyncRead for SimStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl AsyncWrite for SimStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        std::task::ready!(self.network.poll_passable(&[self.way], context));
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        std::task::ready!(self.network.poll_passable(&[self.way], context));
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

struct SimListener {
    receiver: mpsc::UnboundedReceiver<(SimStream, SocketAddr)>,
}

#[async_trait]
impl Listener for SimListener {
    async fn accept(&mut self) -> io::Result<(Box<dyn Stream>, SocketAddr)> {
        match self.receiver.recv().await {
            Some((stream, from)) => Ok((Box::new(stream), from)),
            None => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }

    fn local_address(&self) -> SocketAddr {
        SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9092)
    }
}
