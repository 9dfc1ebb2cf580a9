//! Who named a destination, and what that permits.

use std::net::IpAddr;

use url::{Host, Url};

use super::address::AddressClass;
use super::error::OutboundError;

/// Who named the URLs of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Destination {
    /// An operator wrote it into the configuration: loopback and private addresses are fine, link-local ones and cloud
    /// metadata never are.
    Configured,
    /// An agent or a document named it: public addresses only.
    Named,
}

/// Host names under which clouds serve metadata, whatever they resolve to.
const METADATA_HOSTS: [&str; 12] = [
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "metadata.azure.com",
    "metadata.azure.internal",
    "metadata.tencentyun.com",
    "metadata.platformequinix.com",
    "metadata.packet.net",
    "instance-data",
    "instance-data.ec2.internal",
    "rancher-metadata",
    "rancher-metadata.rancher.internal",
];

impl Destination {
    /// Whether an address may be connected to.
    pub fn admits(self, class: AddressClass) -> bool {
        match (self, class) {
            (Self::Configured | Self::Named, AddressClass::Public)
            | (Self::Configured, AddressClass::Private | AddressClass::Loopback) => true,
            (Self::Named, AddressClass::Private | AddressClass::Loopback)
            | (
                Self::Configured | Self::Named,
                AddressClass::Reserved | AddressClass::LinkLocal | AddressClass::Metadata,
            ) => false,
        }
    }

    /// Checks everything about a URL that needs no resolver: its scheme, that it holds no credentials, and its host where
    /// that is an address or a name of a metadata service.
    ///
    /// # Errors
    /// When it must not be requested.
    pub fn check(self, url: &Url) -> Result<(), OutboundError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(OutboundError::Url("it must begin with http:// or https://"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(OutboundError::Url("it holds credentials; put them into a header"));
        }
        match url.host() {
            None => Err(OutboundError::Url("it has no host")),
            Some(Host::Ipv4(address)) => self.check_address(&address.to_string(), address.into()),
            Some(Host::Ipv6(address)) => self.check_address(&address.to_string(), address.into()),
            Some(Host::Domain(name)) => self.check_name(name),
        }
    }

    /// Checks a name; what it resolves to is checked by [`Destination::check_address`].
    pub(super) fn check_name(self, name: &str) -> Result<(), OutboundError> {
        let bare = name.trim_end_matches('.');
        if METADATA_HOSTS.iter().any(|host| bare.eq_ignore_ascii_case(host)) {
            return Err(self.refuses(name, AddressClass::Metadata));
        }
        Ok(())
    }

    pub(super) fn check_address(self, host: &str, address: IpAddr) -> Result<(), OutboundError> {
        let class = AddressClass::of(address);
        if self.admits(class) {
            Ok(())
        } else {
            Err(self.refuses(host, class))
        }
    }

    fn refuses(self, host: &str, class: AddressClass) -> OutboundError {
        let why = match self {
            Self::Named if matches!(class, AddressClass::Private | AddressClass::Loopback) => {
                "only a URL of the configuration may reach"
            }
            Self::Configured | Self::Named => "no request may reach",
        };
        OutboundError::Forbidden {
            host: host.to_owned(),
            class,
            why,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(destination: Destination, url: &str) -> bool {
        destination.check(&url.parse().unwrap()).is_err()
    }

    #[test]
    fn configured_urls_may_reach_inside_and_named_ones_may_not() {
        for url in [
            "http://127.0.0.1:8080/",
            "http://10.1.2.3/",
            "http://[::1]/",
            "http://[fd12::1]/",
            "http://[::ffff:10.0.0.1]/",
            "http://100.64.0.1/",
        ] {
            assert!(!is_refused(Destination::Configured, url), "{url}");
            assert!(is_refused(Destination::Named, url), "{url}");
        }
        for url in [
            "https://1.1.1.1/",
            "https://[2606:4700:4700::1111]/",
            "https://example.com/",
            "http://localhost/",
        ] {
            assert!(!is_refused(Destination::Named, url), "{url}");
        }
    }

    #[test]
    fn metadata_and_link_local_are_refused_however_they_are_written() {
        for url in [
            "http://169.254.169.254/latest/meta-data/",
            "http://0xa9fea9fe/",
            "http://2852039166/",
            "http://0251.0376.0251.0376/",
            "http://169.254.43518/",
            "http://169.254.169.254./",
            "http://[::ffff:169.254.169.254]/",
            "http://[64:ff9b::a9fe:a9fe]/",
            "http://[fd00:ec2::254]/",
            "http://[fe80::1]/",
            "http://metadata.google.internal/",
            "http://METADATA.google.internal./",
            "http://metadata/computeMetadata/v1/",
            "http://instance-data/",
            "http://0.0.0.0/",
            "http://[::]/",
            "http://224.0.0.1/",
        ] {
            assert!(is_refused(Destination::Configured, url), "{url}");
            assert!(is_refused(Destination::Named, url), "{url}");
        }
    }

    #[test]
    fn other_schemes_and_credentials_are_refused_without_being_shown() {
        for url in [
            "ftp://example.com/",
            "file:///etc/passwd",
            "data:text/plain,x",
            "http://u:hunter2@example.com/",
            "http://u@example.com/",
        ] {
            let error = Destination::Configured
                .check(&url.parse().unwrap())
                .unwrap_err()
                .to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
