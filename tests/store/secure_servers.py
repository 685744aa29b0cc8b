"""Certificates for stores with TLS, and the settings of servers and clients that use them."""

from __future__ import annotations

from pathlib import Path

from brookmq.base.config.storing import Store
from tests.edge.certificates import Authority, CertificateFiles
from tests.store.log_servers import Servers


class Secured:
    """``server`` is a certificate for 127.0.0.1, ``client`` one for whoever asks; ``foreign`` is another authority."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder / "own")
        self.foreign = Authority(folder / "foreign", "another authority")
        self.server = self.authority.issue("server", "server", ("127.0.0.1",))
        self.client = self.authority.issue("client", "client")

    @property
    def ca(self) -> str:
        return str(self.authority.ca)

    def settings(self, files: CertificateFiles | None = None, *, verify: bool = False) -> str:
        """What makes a server ask for TLS, and with ``verify`` for certificates of its clients."""
        files = files or self.server
        return (
            f'tls {{ cert_file: "{files.cert}", key_file: "{files.key}", ca_file: "{self.ca}", '
            f"verify: {str(verify).lower()}, timeout: 5 }}"
        )


def secure_urls(servers: Servers) -> list[str]:
    return [url.replace("nats://", "tls://") for url in servers.urls]


def store_of(servers: Servers, **keys: str) -> Store:
    """The section of a configuration for these servers."""
    return Store(servers=secure_urls(servers), **keys)
