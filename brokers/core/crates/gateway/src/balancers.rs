//! Balancers in front of the gateway: they say by the PROXY protocol, version 2, from which address
//! a client comes.
//!
//! <https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ipnet::IpNet;
use ppp::v2::{Addresses, Command, Header, PROTOCOL_PREFIX, ParseError, Protocol};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use freshet_world::env::Stream;

/// How long a balancer may take for its header, which it sends before anything else.
const HEADER_TIME: Duration = Duration::from_secs(3);
/// Bytes of a header before what its length covers.
const FIXED_BYTES: usize = PROTOCOL_PREFIX.len() + 4;
/// The longest rest of a header: the largest addresses, and what balancers say beside them.
const REST_BYTES_MAX: usize = 2048;

/// Why a header was not accepted.
#[derive(Debug, thiserror::Error)]
pub(super) enum HeaderError {
    #[error("the balancer sent no header in time")]
    TooLate,
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("{0}")]
    Invalid(ParseError),
    #[error("a header of {0} bytes")]
    Length(usize),
    #[error("a header for something else than a TCP connection")]
    NotTcp,
}

/// The networks from which balancers connect.
#[derive(Debug, Clone, Default)]
pub(super) struct Balancers(Vec<IpNet>);

impl Balancers {
    /// The networks of a setting; the error is the text that is none.
    pub(super) fn parse(networks: &[String]) -> Result<Self, &str> {
        let parse = |text: &String| {
            let network = text.parse::<IpNet>();
            network.or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
        };
        let parsed = networks.iter().map(|text| parse(text).map_err(|_| text.as_str()));
        parsed.collect::<Result<_, _>>().map(Self)
    }

    /// Whether connections from this address begin with a header.
    pub(super) fn contain(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }
}

/// Reads a balancer's header, and nothing behind it. Returns the client's address; `None` where the
/// balancer connects for itself, as it does to see whether the gateway lives.
///
/// # Errors
/// [`HeaderError`].
pub(super) async fn read_header(
    stream: &mut dyn Stream,
) -> Result<Option<SocketAddr>, HeaderError> {
    timeout(HEADER_TIME, receive(stream)).await.unwrap_or(Err(HeaderError::TooLate))
}

async fn receive(stream: &mut dyn Stream) -> Result<Option<SocketAddr>, HeaderError> {
    let mut header = vec![0; FIXED_BYTES];
    stream.read_exact(&mut header).await?;
    // The length of something else means nothing.
    if !header.starts_with(PROTOCOL_PREFIX) {
        return Err(HeaderError::Invalid(ParseError::Prefix));
    }
    let rest = usize::from(u16::from_be_bytes([header[FIXED_BYTES - 2], header[FIXED_BYTES - 1]]));
    if rest > REST_BYTES_MAX {
        return Err(HeaderError::Length(rest));
    }
    header.resize(FIXED_BYTES + rest, 0);
    stream.read_exact(&mut header[FIXED_BYTES..]).await?;
    client_of(&header)
}

/// The client that a whole header names.
fn client_of(header: &[u8]) -> Result<Option<SocketAddr>, HeaderError> {
    let header = Header::try_from(header).map_err(HeaderError::Invalid)?;
    match (header.command, header.protocol, header.addresses) {
        (Command::Local, ..) => Ok(None),
        (_, Protocol::Stream, Addresses::IPv4(pair)) => {
            Ok(Some((pair.source_address, pair.source_port).into()))
        }
        (_, Protocol::Stream, Addresses::IPv6(pair)) => {
            Ok(Some((pair.source_address, pair.source_port).into()))
        }
        _ => Err(HeaderError::NotTcp),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    /// A header as the specification has it: command and version, family and protocol, the rest.
    fn header(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [b"\r\n\r\n\0\r\nQUIT\n", &[command, family][..], &length, rest].concat()
    }

    fn tcp4() -> Vec<u8> {
        header(0x21, 0x11, &[192, 0, 2, 7, 10, 0, 0, 1, 0x30, 0x39, 0x24, 0x93])
    }

    async fn read(bytes: &[u8]) -> (Result<Option<SocketAddr>, HeaderError>, Vec<u8>) {
        let (mut balancer, mut gateway) = tokio::io::duplex(1 << 16);
        balancer.write_all(bytes).await.unwrap();
        drop(balancer);
        let client = read_header(&mut gateway).await;
        let mut rest = Vec::new();
        gateway.read_to_end(&mut rest).await.unwrap();
        (client, rest)
    }

    #[tokio::test]
    async fn the_clients_address_is_read_and_nothing_behind_it() {
        let mut with_more = header(0x21, 0x11, &[&tcp4()[16..], &[0x04, 0, 2, 7, 7]].concat());
        with_more.extend(b"request");
        let (client, rest) = read(&with_more).await;
        assert_eq!(client.unwrap().unwrap().to_string(), "192.0.2.7:12345");
        assert_eq!(rest, b"request");
        let mut addresses = [0; 36];
        addresses[..16]
            .copy_from_slice(&"2001:db8::7".parse::<std::net::Ipv6Addr>().unwrap().octets());
        addresses[32..34].copy_from_slice(&[0x30, 0x39]);
        let (client, _) = read(&header(0x21, 0x21, &addresses)).await;
        assert_eq!(client.unwrap().unwrap().to_string(), "[2001:db8::7]:12345");
        let (client, _) = read(&header(0x20, 0x00, &[])).await;
        assert_eq!(client.unwrap(), None, "the balancer itself");
    }

    #[tokio::test]
    async fn anything_else_is_refused() {
        for (what, bytes) in [
            ("version 1", b"PROXY TCP4 192.0.2.7 10.0.0.1 12345 9363\r\n".to_vec()),
            ("a Kafka request", b"\0\0\0\x18\0\x12\0\0\0\0\0\x07\xff\xffwhatever".to_vec()),
            ("version 3", header(0x31, 0x11, &tcp4()[16..])),
            ("another command", header(0x22, 0x11, &tcp4()[16..])),
            ("UDP", header(0x21, 0x12, &tcp4()[16..])),
            ("no family", header(0x21, 0x00, &[])),
            ("a Unix socket", header(0x21, 0x31, &[0; 216])),
            ("short addresses", header(0x21, 0x11, &[0; 11])),
            ("half a header", tcp4()[..20].to_vec()),
            ("nothing", Vec::new()),
            ("too long", header(0x21, 0x11, &[0; REST_BYTES_MAX + 1])),
        ] {
            let (client, _) = read(&bytes).await;
            assert!(client.is_err(), "{what}: {client:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_balancer_that_says_nothing_is_not_waited_for() {
        let (mut balancer, mut gateway) = tokio::io::duplex(64);
        balancer.write_all(&tcp4()[..13]).await.unwrap();
        let read = read_header(&mut gateway).await;
        assert!(matches!(read, Err(HeaderError::TooLate)), "{read:?}");
    }

    #[test]
    fn networks_are_read_and_addresses_judged_by_them() {
        let networks = ["10.1.0.0/16", "192.0.2.9", "2001:db8::/32"].map(str::to_owned);
        let balancers = Balancers::parse(&networks).unwrap();
        let contains = |text: &str| balancers.contain(text.parse().unwrap());
        for inside in ["10.1.255.1", "192.0.2.9", "2001:db8:1::1", "::ffff:10.1.0.1"] {
            assert!(contains(inside), "{inside}");
        }
        for outside in ["10.2.0.1", "192.0.2.8", "2001:db9::1", "127.0.0.1"] {
            assert!(!contains(outside), "{outside}");
        }
        for wrong in ["", "10.0.0.0/33", "example.org", "10.0.0.0/8,"] {
            assert_eq!(Balancers::parse(&[wrong.to_owned()]).unwrap_err(), wrong);
        }
        assert!(!Balancers::default().contain([10, 0, 0, 1].into()));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            command: u8,
            family: u8,
            rest in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300),
            cut in 0_usize..320,
        ) {
            let header = header(command, family, &rest);
            let whole = client_of(&header);
            if let Ok(Some(client)) = whole {
                let known = (command, family);
                assert!(known == (0x21, 0x11) || known == (0x21, 0x21), "{client}");
            }
            let _ = client_of(&header[..cut.min(header.len())]);
            let _ = client_of(&rest);
        }
    }
}
