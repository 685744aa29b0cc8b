"""TLS to servers that somebody else runs, as `[store]` says."""

from __future__ import annotations

import logging
import ssl

from brookmq.base.config.listeners import Certificate
from brookmq.base.config.storing import Store
from brookmq.base.tls_files import load_authorities, load_certificate


def tls_of(store: Store) -> ssl.SSLContext | None:
    """The context for connections to ``store.servers``; None where they have no TLS. ConfigError names key and file."""
    if not store.has_tls:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # asks for a certificate of the right name
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if store.ca:
        load_authorities(context, store.ca, "store.ca")
    else:
        context.load_default_certs()
    if store.cert:
        certificate = Certificate(cert=store.cert, key=store.key, key_password=store.key_password)
        load_certificate(context, certificate, "store")
    hush()
    return context


def hush() -> None:
    """The client library's connections make the loop complain at each end of one with TLS; it means nothing."""
    logging.getLogger("asyncio").addFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    return "eof_received() has no effect when using ssl" not in str(record.msg)
