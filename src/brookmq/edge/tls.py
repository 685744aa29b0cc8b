"""TLS of a listener: the context from its configuration, certificates by host name, and new files without a restart.

A reload builds everything anew from the files and only then swaps it in: connections that are there keep what they
have, new handshakes use the new files, and with a bad file the old certificates stay in use. With ``client_certificates
= "required"`` a client without a good certificate never gets to MQTT.
"""

from __future__ import annotations

import ssl

from brookmq.base.config.listeners import Certificate, Tls
from brookmq.base.errors import ConfigError
from brookmq.base.tls_files import load_authorities, load_certificate

_VERIFY = {"none": ssl.CERT_NONE, "optional": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


class TlsContexts:
    """``current`` is what a new handshake uses. ``path`` is the key of the configuration, for errors."""

    __slots__ = ("_alpn", "_config", "_path", "current")

    def __init__(self, config: Tls, path: str, alpn: str) -> None:
        self._config = config
        self._path = path
        self._alpn = alpn  # offered to clients that negotiate the protocol ("mqtt", "http/1.1"); others are fine too
        self.current = self._build()

    def reload(self) -> None:
        """Read the files again. Raises ConfigError, with the old certificates still in use, when one of them is bad."""
        self.current = self._build()

    def _build(self) -> ssl.SSLContext:
        context = self._context_of(self._config, self._path)
        if self._config.sni:
            names = {
                name.lower().rstrip("."): self._context_of(certificate, f'{self._path}.sni."{name}"')
                for name, certificate in self._config.sni.items()
            }
            context.sni_callback = lambda connection, name, _: _choose(names, connection, name)
        return context

    def _context_of(self, certificate: Certificate, path: str) -> ssl.SSLContext:
        """A context with one certificate. All else is the same for every name: OpenSSL takes some of it from the one
        that the handshake began with and some (who signs client certificates) from the one that the name leads to."""
        config = self._config
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = _VERSIONS[config.version_min]
        context.set_alpn_protocols([self._alpn])
        context.verify_mode = _VERIFY[config.client_certificates]
        if config.ca:
            load_authorities(context, config.ca, f"{self._path}.ca")
        elif context.verify_mode is not ssl.CERT_NONE:
            raise ConfigError(f"{self._path}.ca", "client certificates are asked for, so their CA is needed")
        load_certificate(context, certificate, path)
        return context


def _choose(names: dict[str, ssl.SSLContext], connection: ssl.SSLObject | ssl.SSLSocket, name: str | None) -> None:
    """The certificate for the name that the client asks for; the default one for any other name or none."""
    if name is None:
        return
    name = name.lower().rstrip(".")
    chosen = names.get(name) or names.get("*." + name.partition(".")[2])
    if chosen is not None:
        connection.context = chosen
