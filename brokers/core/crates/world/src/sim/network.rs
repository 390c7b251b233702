//! Connections between hosts: in-memory streams that break when their host crashes.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::io::DuplexStream;
use tokio::sync::mpsc;

use super::disk::HostId;
use crate::env::{Listener, Network, Stream};

/// Bytes in flight on one connection.
const PIPE_BYTES: usize = 64 << 10;

type Listeners = BTreeMap<HostId, mpsc::UnboundedSender<(DuplexStream, SocketAddr)>>;

/// The network of a world; every host listens on at most one port.
#[derive(Clone, Default)]
pub struct SimNetwork(Arc<Mutex<Listeners>>);

impl SimNetwork {
    /// The network as one host sees it.
    pub fn of(&self, host: HostId) -> Arc<dyn Network> {
        Arc::new(Port { network: self.clone(), host })
    }

    /// Connects to a host; refused where nobody listens.
    ///
    /// # Errors
    /// `ConnectionRefused`.
    pub fn connect(&self, host: HostId) -> io::Result<DuplexStream> {
        let (near, far) = tokio::io::duplex(PIPE_BYTES);
        let from = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 40_000);
        let listeners = self.0.lock();
        let listener = listeners.get(&host).ok_or(io::ErrorKind::ConnectionRefused)?;
        listener.send((far, from)).map_err(|_| io::ErrorKind::ConnectionRefused)?;
        Ok(near)
    }

    /// Removes the listener of a host.
    pub fn forget(&self, host: HostId) {
        self.0.lock().remove(&host);
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
        self.network.0.lock().insert(self.host, sender);
        Ok(Box::new(SimListener { receiver }))
    }

    /// The host is named by its number.
    async fn connect(&self, address: &str) -> io::Result<Box<dyn Stream>> {
        let host = address.split(':').next().and_then(|host| host.parse::<HostId>().ok());
        let host = host.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Box::new(self.network.connect(host)?))
    }
}

struct SimListener {
    receiver: mpsc::UnboundedReceiver<(DuplexStream, SocketAddr)>,
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
