//! Which addresses of clients count as one.

use std::net::{IpAddr, Ipv6Addr};

/// Bits of an IPv6 address that a customer of a network cannot choose.
const NETWORK_BITS: u32 = 64;

/// The address under which a client's connections are counted: an IPv4 address as it is, also where
/// it comes as an IPv6 address; of an IPv6 address the network of 64 bits, since whoever has one
/// address there has them all.
pub fn counted_address(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) if address.is_loopback() => address.into(),
        IpAddr::V6(address) => {
            let network = !0 << (u128::BITS - NETWORK_BITS);
            Ipv6Addr::from_bits(address.to_bits() & network).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_customer_are_one() {
        let counted = |text: &str| counted_address(text.parse().unwrap()).to_string();
        for (address, expected) in [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:2:ffff::1", "2001:db8:1:2::"),
            ("2001:db8:1:3::1", "2001:db8:1:3::"),
            ("::1", "::1"),
            ("127.0.0.9", "127.0.0.9"),
        ] {
            assert_eq!(counted(address), expected);
        }
    }
}
