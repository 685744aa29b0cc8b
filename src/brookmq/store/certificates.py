"""The certificates of a cluster: an authority of its own, and what it signs for each member.

Members trust this authority and nothing else, so a certificate says one thing only: its holder had the cluster's
secret. A member is server and client at once (it takes routes and opens them), so its certificate is for both. Made by
the `cryptography` package: no program has to be there. Only `brookmq cluster …` needs it; a node that starts reads
files.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Iterable
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from brookmq.base.errors import OperationError

# Nobody renews these: a certificate that ends stops a cluster at night. Whoever must be shut out is shut out by a new
# secret, not by a date.
YEARS = 20
CLOCK_DAYS = 1  # that the clocks of two machines may differ
COMMON_NAME_CHARACTERS_MAX = 64  # of X.509


class KeyPair(NamedTuple):
    """A certificate and its key, both in PEM form."""

    certificate: str
    key: str


def make_authority(cluster: str) -> KeyPair:
    """A new authority. It signs members, and nobody whom it signs can sign others."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"BrookMQ cluster {cluster}")
    certificate = (
        _builder(name, name, key.public_key(), _now() + dt.timedelta(days=365 * YEARS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pair(certificate, key)


def issue(authority: KeyPair, name: str, hosts: Iterable[str]) -> KeyPair:
    """A certificate for a member that others reach under these host names and addresses."""
    root = x509.load_pem_x509_certificate(authority.certificate.encode())
    root_key = _load_key(authority.key)
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _builder(_name(name), root.subject, key.public_key(), root.not_valid_after_utc)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        .add_extension(x509.SubjectAlternativeName([_alternative(host) for host in dict.fromkeys(hosts)]), False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(root_key.public_key()), critical=False)
        .sign(root_key, hashes.SHA256())
    )
    return _pair(certificate, key)


def check_authority(authority: KeyPair) -> None:
    """Whether key and certificate belong together; OperationError if not, or if either can't be read."""
    try:
        certificate = x509.load_pem_x509_certificate(authority.certificate.encode())
        key = _load_key(authority.key)
        certificate.verify_directly_issued_by(certificate)
    except (ValueError, TypeError, InvalidSignature) as error:
        raise OperationError(f"the cluster's authority cannot be read ({error})") from None
    if certificate.public_key() != key.public_key():
        raise OperationError("the cluster's authority and its key do not belong together")


def _load_key(pem: str) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem.encode(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("not an elliptic curve key")
    return key


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, end: dt.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(_now() - dt.timedelta(days=CLOCK_DAYS))
        .not_valid_after(end)
    )


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:COMMON_NAME_CHARACTERS_MAX])])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return KeyPair(certificate.public_bytes(pem).decode(), private.decode())
