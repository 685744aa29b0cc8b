"""Certificates and keys from files into a TLS context, with errors that name the key of the configuration and the file.

OpenSSL's own errors name neither.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from brookmq.base.config.listeners import Certificate
from brookmq.base.errors import ConfigError


def load_authorities(context: ssl.SSLContext, file: str, key: str) -> None:
    """Trusts whom the certificates in this file have signed. ``key`` is the configuration's."""
    _check_readable(file, key)
    try:
        context.load_verify_locations(cafile=file)
    except ssl.SSLError as error:
        raise ConfigError(key, f"{file} has no certificates in PEM form") from error


def load_certificate(context: ssl.SSLContext, certificate: Certificate, path: str) -> None:
    """Shows this certificate to peers. ``path`` is the table of the configuration in which it stands."""
    _check_readable(certificate.cert, f"{path}.cert")
    _check_readable(certificate.key, f"{path}.key")
    password = certificate.key_password.get_secret_value()
    try:
        # Given as a function, since OpenSSL would ask in the terminal for a password that it misses.
        context.load_cert_chain(certificate.cert, certificate.key, lambda: password)
    except ssl.SSLError as error:
        raise ConfigError(f"{path}.cert", _explain(error, certificate, bool(password))) from error


def _check_readable(file: str, key: str) -> None:
    try:
        with Path(file).open("rb"):
            pass
    except OSError as error:
        raise ConfigError(key, f"cannot read {file}: {error.strerror}") from error


def _explain(error: ssl.SSLError, certificate: Certificate, has_password: bool) -> str:
    """OpenSSL's reasons in words that name the file."""
    reason = error.reason or ""
    if reason == "KEY_VALUES_MISMATCH":
        return f"the key in {certificate.key} is not the key of the certificate in {certificate.cert}"
    if b"ENCRYPTED" in Path(certificate.key).read_bytes():  # OpenSSL does not tell a wrong password from a broken file
        wrong = (
            "key_password is wrong, or the file is broken"
            if has_password
            else "the key has a password, set key_password"
        )
        return f"cannot read the key in {certificate.key}: {wrong}"
    return f"{certificate.cert} and {certificate.key} are not a certificate and its key in PEM form ({reason or error})"
