//! What kind of address a name resolved to, looked at through every form in which IPv6 carries IPv4.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address reaches. Ordered from harmless to forbidden: of several readings of one address the last counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddressClass {
    /// Somewhere in the internet.
    Public,
    /// Inside a network: RFC 1918, shared address space (100.64/10), unique local addresses, benchmarking networks.
    Private,
    /// This machine.
    Loopback,
    /// What no service is reached at: unspecified, multicast, broadcast, documentation, reserved and retired ranges.
    Reserved,
    /// The link, where clouds keep their metadata services.
    LinkLocal,
    /// A cloud's metadata service outside the link-local ranges.
    Metadata,
}

impl AddressClass {
    /// The class of an address.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }
}

impl fmt::Display for AddressClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "a public address",
            Self::Private => "a private address",
            Self::Loopback => "a loopback address",
            Self::Reserved => "a reserved address",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "the address of a cloud's metadata service",
        })
    }
}

/// Metadata services of clouds that lie in ranges which are used for other things too: Alibaba Cloud, Azure's
/// platform endpoint, Oracle Cloud's former one.
const METADATA_V4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];

/// The first 32 bits of metadata services among unique local addresses: AWS (`fd00:ec2::254` and its neighbours), Google
/// Cloud, Oracle Cloud, Scaleway.
const METADATA_V6: [(u16, u16); 4] = [(0xfd00, 0xec2), (0xfd20, 0xce), (0xfd00, 0xc1), (0xfd00, 0x42)];

fn of_v4(address: Ipv4Addr) -> AddressClass {
    use AddressClass::{LinkLocal, Loopback, Metadata, Private, Public, Reserved};
    if METADATA_V4.contains(&address) {
        return Metadata;
    }
    match address.octets() {
        [127, ..] => Loopback,
        [169, 254, ..] => LinkLocal,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] | [198, 18..=19, ..] => Private,
        // This network; protocol assignments; documentation; the former 6to4 relays; multicast, reserved, broadcast.
        [0, ..]
        | [192, 0, 0 | 2, _]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [192, 88, 99, _]
        | [224..=255, ..] => Reserved,
        _ => Public,
    }
}

fn of_v6(address: Ipv6Addr) -> AddressClass {
    use AddressClass::{LinkLocal, Loopback, Metadata, Private, Public, Reserved};
    let bits = address.to_bits();
    let own = match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => return Loopback,
        // IPv4-mapped: the operating system connects to the IPv4 address.
        [0, 0, 0, 0, 0, 0xffff, high, low] => return of_v4(joined(high, low)),
        // NAT64's well-known prefix reaches public addresses only (RFC 6052 section 3.1).
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => return tunnelled(joined(high, low)),
        // NAT64 inside a network (RFC 8215).
        [0x64, 0xff9b, 1, ..] => return local_nat64(bits),
        // 6to4.
        [0x2002, high, low, ..] => tunnelled(joined(high, low)),
        [high, low, ..] if METADATA_V6.contains(&(high, low)) => Metadata,
        [0xfe80..=0xfebf, ..] => LinkLocal,
        [0xfc00..=0xfdff, ..] => Private,
        // IETF protocol assignments, Teredo among them; documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Reserved,
        [0x2000..=0x3fff, ..] => Public,
        // Unspecified, IPv4-compatible, site-local, multicast, and what was never given out.
        _ => Reserved,
    };
    // ISATAP: an interface identifier that carries the IPv4 address of the tunnel's end.
    match address.segments() {
        [.., 0 | 0x200, 0x5efe, high, low] => own.max(tunnelled(joined(high, low))),
        _ => own,
    }
}

fn joined(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low))
}

/// The class of an IPv4 address at the other end of a tunnel, where only public ones have any business.
fn tunnelled(address: Ipv4Addr) -> AddressClass {
    match of_v4(address) {
        AddressClass::Public => AddressClass::Public,
        inner => inner.max(AddressClass::Reserved),
    }
}

/// Where the IPv4 address lies depends on the length of the operator's prefix (RFC 6052 section 2.2), so all places count.
fn local_nat64(bits: u128) -> AddressClass {
    // Bits 64 to 71 are skipped; behind the IPv4 address of a shorter prefix everything is zero.
    let split = |before: u32, after: u32| {
        let part = |shift: u32, count: u32| (bits >> shift) & ((1_u128 << count) - 1);
        let is_whole = part(0, 56 - after) == 0;
        is_whole.then(|| (part(64, before) << after) | part(56 - after, after))
    };
    let at_the_end = Some(bits & u128::from(u32::MAX));
    [at_the_end, split(16, 16), split(8, 24), split(0, 32)]
        .into_iter()
        .flatten()
        .filter_map(|inner| u32::try_from(inner).ok())
        .map(within_a_network)
        .fold(AddressClass::Private, AddressClass::max)
}

/// The class of an IPv4 address behind a translator of the network: its loopback and its link are nobody's business.
fn within_a_network(address: u32) -> AddressClass {
    match of_v4(Ipv4Addr::from_bits(address)) {
        AddressClass::Public | AddressClass::Private => AddressClass::Private,
        inner => inner.max(AddressClass::Reserved),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AddressClass::{LinkLocal, Loopback, Metadata, Private, Public, Reserved};

    fn assert_all(class: AddressClass, addresses: &[&str]) {
        for address in addresses {
            assert_eq!(AddressClass::of(address.parse().unwrap()), class, "{address}");
        }
    }

    #[test]
    fn ipv4_addresses_are_told_apart() {
        assert_all(
            Public,
            &[
                "1.1.1.1",
                "8.8.8.8",
                "100.63.255.255",
                "100.128.0.1",
                "172.32.0.1",
                "192.0.1.1",
                "198.20.0.1",
                "223.255.255.255",
            ],
        );
        assert_all(
            Private,
            &[
                "10.0.0.1",
                "10.255.255.255",
                "172.16.0.1",
                "172.31.255.255",
                "192.168.0.1",
                "100.64.0.1",
                "100.127.255.255",
                "198.18.0.1",
                "198.19.255.255",
            ],
        );
        assert_all(Loopback, &["127.0.0.1", "127.255.255.254"]);
        assert_all(
            LinkLocal,
            &[
                "169.254.0.1",
                "169.254.169.254",
                "169.254.170.2",
                "169.254.170.23",
            ],
        );
        assert_all(Metadata, &["100.100.100.200", "168.63.129.16", "192.0.0.192"]);
        assert_all(
            Reserved,
            &[
                "0.0.0.0",
                "0.1.2.3",
                "192.0.0.1",
                "192.0.2.1",
                "198.51.100.7",
                "203.0.113.9",
                "192.88.99.1",
                "224.0.0.1",
                "239.255.255.255",
                "240.0.0.1",
                "255.255.255.255",
            ],
        );
    }

    #[test]
    fn ipv6_addresses_are_told_apart() {
        assert_all(
            Public,
            &[
                "2606:4700:4700::1111",
                "2001:4860:4860::8888",
                "2001:200::1",
                "2a00::1",
            ],
        );
        assert_all(Private, &["fc00::1", "fd12:3456::1", "fdff:ffff::1"]);
        assert_all(Loopback, &["::1"]);
        assert_all(LinkLocal, &["fe80::1", "febf::1"]);
        assert_all(
            Metadata,
            &[
                "fd00:ec2::254",
                "fd00:ec2::23",
                "fd20:ce::254",
                "fd00:c1::a9fe:a9fe",
                "fd00:42::42",
            ],
        );
        assert_all(
            Reserved,
            &[
                "::",
                "::2",
                "fec0::1",
                "ff02::1",
                "ff0e::1",
                "2001:db8::1",
                "3fff::1",
                "100::1",
                "2001::1",
                "2001:2::1",
                "2001:20::1",
                "5f00::1",
                "4000::1",
                "8000::1",
            ],
        );
    }

    #[test]
    fn ipv4_inside_ipv6_counts_as_what_it_reaches() {
        assert_all(
            Public,
            &[
                "::ffff:1.1.1.1",
                "64:ff9b::1.1.1.1",
                "2002:101:101::1",
                "2606:4700::5efe:101:101",
            ],
        );
        assert_all(
            Private,
            &[
                "::ffff:10.0.0.1",
                "::ffff:100.64.0.1",
                "64:ff9b:1::1.1.1.1",
                "64:ff9b:1::10.0.0.1",
            ],
        );
        assert_all(Loopback, &["::ffff:127.0.0.1", "::ffff:7f00:1"]);
        assert_all(
            LinkLocal,
            &[
                "::ffff:169.254.169.254",
                "::ffff:a9fe:a9fe",
                "64:ff9b::169.254.169.254",
                "2002:a9fe:a9fe::1",
                "64:ff9b:1::169.254.169.254",
                "64:ff9b:1:fffe::169.254.169.254",
                "2606:4700::5efe:a9fe:a9fe",
                "2606:4700::200:5efe:a9fe:a9fe",
            ],
        );
        assert_all(
            Metadata,
            &[
                "::ffff:100.100.100.200",
                "64:ff9b::100.100.100.200",
                "64:ff9b:1::100.100.100.200",
                "2002:6464:64c8::",
            ],
        );
        assert_all(
            Reserved,
            &[
                "::1.1.1.1",
                "::127.0.0.1",
                "::169.254.169.254",
                "64:ff9b::10.0.0.1",
                "64:ff9b::127.0.0.1",
                "64:ff9b:1::0.0.0.0",
                "2002:a00:1::1",
                "2002:7f00:1::1",
                "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            ],
        );
    }

    #[test]
    fn nat64_inside_a_network_is_read_with_every_length_of_prefix() {
        // 169.254.169.254 behind prefixes of 48, 56, 64 and 96 bits.
        assert_all(
            LinkLocal,
            &[
                "64:ff9b:1:a9fe:a9:fe00::",
                "64:ff9b:1:aaa9:fe:a9fe::",
                "64:ff9b:1:aa:a9:fea9:fe00:0",
                "64:ff9b:1:2:3:4:a9fe:a9fe",
            ],
        );
    }
}
