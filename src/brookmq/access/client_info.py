"""Who is connected: made for every connection, and so compiled. (A dataclass of slots takes fifteen times as long.)"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Certificate:
    """The client's certificate, checked by TLS against the listener's authorities."""

    common_name: str
    subject: str  # RFC 4514, such as CN=device-7,O=Example
    serial: str = ""


@dataclass(frozen=True)  # no slots: the compiled form has them anyway, and knows no such word
class ClientInfo:
    """Who is connected, as far as hooks may know it."""

    client_id: str
    username: str | None
    address: str  # host:port of the peer (from the PROXY header where there is one)
    protocol_version: int  # 3 (MQTT 3.1), 4 (3.1.1), 5
    listener: str  # its name in the configuration
    certificate: Certificate | None = None
    superuser: bool = False  # skips authorize
