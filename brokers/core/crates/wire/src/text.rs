//! Small text formats of settings and messages: hexadecimal digits, and `host:port`.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The bytes of hexadecimal digits of either case; `None` where the text is something else.
pub fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    digits.chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

/// Lower-case hexadecimal digits of bytes.
pub fn encode_hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        write!(text, "{byte:02x}").expect("text takes text");
    }
    text
}

/// Host and port of `host:port`, with an IPv6 address in brackets; `None` where the text has
/// another form.
pub fn split_address(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    let port = port.parse().ok()?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let good = match bare {
        Some(host) => host.parse::<Ipv6Addr>().is_ok(),
        None => !host.is_empty() && !host.contains(':'),
    };
    good.then_some((bare.unwrap_or(host), port))
}

/// Whether a `host:port` stands for every address of a machine.
pub fn is_unspecified(address: &str) -> bool {
    let host = split_address(address).and_then(|(host, _)| host.parse::<IpAddr>().ok());
    host.is_some_and(|host| host.is_unspecified())
}

/// Whether a `host:port` is on this machine only.
pub fn is_loopback(address: &str) -> bool {
    if let Ok(address) = address.parse::<SocketAddr>() {
        return address.ip().is_loopback();
    }
    split_address(address).is_some_and(|(host, _)| {
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_digits_come_back() {
        assert_eq!(decode_hex("00fF7a"), Some(vec![0, 255, 0x7a]));
        assert_eq!(encode_hex(&[0, 255, 0x7a]), "00ff7a");
        for wrong in ["0", "0g", "+1", "é1", " 1"] {
            assert_eq!(decode_hex(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn addresses_have_a_host_and_a_port() {
        assert_eq!(split_address("localhost:0"), Some(("localhost", 0)));
        assert_eq!(split_address("[::1]:9092"), Some(("::1", 9092)));
        for wrong in ["", "localhost", ":9092", "a:b", "::1:9092", "[x]:1", "a:65536"] {
            assert_eq!(split_address(wrong), None, "{wrong}");
        }
        assert!(is_loopback("[::1]:1") && is_loopback("127.0.0.2:1") && is_loopback("localhost:1"));
        assert!(!is_loopback("0.0.0.0:1") && !is_loopback("example.org:1"));
    }
}
