//! What a client's certificate says of its holder.

use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

/// Why a certificate names nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It cannot be read.
    #[error("the client certificate cannot be read")]
    Unreadable,
    /// It has no name that is used here.
    #[error("the client certificate has neither a SPIFFE id nor a DNS name among its alternative names")]
    Nameless,
    /// It could mean several holders.
    #[error(
        "the client certificate has several names of one kind, so it names nobody; issue one with a single SPIFFE id"
    )]
    Ambiguous,
}

/// The one name of a certificate's holder: its SPIFFE id (a URI among the subject's alternative names, of which X509-SVID
/// section 2 permits one), else its one DNS name. The common name is not looked at: anything may stand there.
///
/// # Errors
/// When there is none, or more than one.
pub fn holder(leaf: &CertificateDer<'_>) -> Result<String, NameError> {
    let parsed = EndEntityCert::try_from(leaf).map_err(|_| NameError::Unreadable)?;
    if let Some(id) = only(parsed.valid_uri_names())? {
        let is_spiffe = id.strip_prefix("spiffe://").is_some_and(|rest| !rest.is_empty());
        return if is_spiffe {
            Ok(id.to_owned())
        } else {
            Err(NameError::Nameless)
        };
    }
    only(parsed.valid_dns_names())?
        .map(str::to_owned)
        .ok_or(NameError::Nameless)
}

fn only<'n>(mut names: impl Iterator<Item = &'n str>) -> Result<Option<&'n str>, NameError> {
    match (names.next(), names.next()) {
        (one, None) => Ok(one),
        (_, Some(_)) => Err(NameError::Ambiguous),
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    use super::*;

    fn certificate(names: &[SanType]) -> CertificateDer<'static> {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, "root");
        parameters.subject_alt_names = names.to_vec();
        let key = KeyPair::generate().unwrap();
        parameters.self_signed(&key).unwrap().der().clone()
    }

    fn uri(text: &str) -> SanType {
        SanType::URI(text.try_into().unwrap())
    }

    fn dns(text: &str) -> SanType {
        SanType::DnsName(text.try_into().unwrap())
    }

    #[test]
    fn a_spiffe_id_names_the_holder_and_then_a_dns_name() {
        let id = "spiffe://example.org/ns/prod/sa/billing";
        assert_eq!(holder(&certificate(&[dns("a.example"), uri(id)])).unwrap(), id);
        assert_eq!(holder(&certificate(&[dns("a.example")])).unwrap(), "a.example");
    }

    #[test]
    fn a_certificate_that_could_mean_several_or_nobody_names_nobody() {
        for (names, expected) in [
            (vec![], NameError::Nameless),
            (vec![uri("https://example.org/billing")], NameError::Nameless),
            (vec![uri("spiffe://")], NameError::Nameless),
            (
                vec![uri("spiffe://a/b"), uri("spiffe://a/c")],
                NameError::Ambiguous,
            ),
            (vec![dns("a.example"), dns("b.example")], NameError::Ambiguous),
        ] {
            assert_eq!(holder(&certificate(&names)), Err(expected), "{names:?}");
        }
        assert_eq!(
            holder(&CertificateDer::from(vec![1, 2, 3])),
            Err(NameError::Unreadable)
        );
    }
}
