"""Who is at the other end of a connection, as the listener saw it.

Made once per connection, before MQTT begins: access hooks, the list of clients and log lines read it. Behind a proxy
the address is the one that the PROXY header tells, so that limits and bans hit the client and not the proxy.
"""

from __future__ import annotations

from brookmq.base.config.listeners import ListenerType

# The keys by which OpenSSL names the parts of a subject, in the short form that people write.
_SHORT_NAMES = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "emailAddress": "emailAddress",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "serialNumber": "serialNumber",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}


class Certificate:
    """What a verified client certificate says. Never made from one that was not verified."""

    __slots__ = ("common_name", "serial_number", "subject")

    def __init__(self, subject: str, common_name: str | None, serial_number: str | None = None) -> None:
        self.subject = subject  # "CN=device-7,O=Example": the order of the certificate
        self.common_name = common_name
        self.serial_number = serial_number  # hexadecimal; None when a proxy ended TLS and did not tell

    def __repr__(self) -> str:
        return f"Certificate({self.subject!r})"

    @classmethod
    def of_common_name(cls, common_name: str) -> Certificate:
        """The little that a PROXY header tells about a certificate that the proxy verified."""
        return cls(f"CN={_escaped(common_name)}", common_name)

    @classmethod
    def of_peercert(cls, peercert: dict[str, object] | None) -> Certificate | None:
        """From ``SSLObject.getpeercert()``, which is empty unless the certificate was asked for and verified."""
        if not peercert:
            return None
        parts: list[str] = []
        common_name: str | None = None
        subject = peercert.get("subject", ())
        if isinstance(subject, tuple):
            for relative_name in subject:
                for key, value in relative_name:
                    parts.append(f"{_SHORT_NAMES.get(key, key)}={_escaped(value)}")
                    if key == "commonName":
                        common_name = value
        serial_number = peercert.get("serialNumber")
        return cls(",".join(parts), common_name, serial_number if isinstance(serial_number, str) else None)


class Peer:
    """One remote end. ``port`` is 0 where there is none (Unix sockets)."""

    __slots__ = ("accepted_at", "address", "certificate", "listener", "local_address", "port", "transport")

    def __init__(
        self,
        address: str,
        port: int,
        local_address: str,
        listener: str,
        transport: ListenerType,
        accepted_at: float,
        certificate: Certificate | None = None,
    ) -> None:
        self.address = address
        self.port = port
        self.local_address = local_address  # what the client connected to, "host:port" or a path
        self.listener = listener
        self.transport: ListenerType = transport
        self.accepted_at = accepted_at  # time of the event loop; the time to a complete CONNECT counts from here
        self.certificate = certificate

    def __str__(self) -> str:
        return join_host_port(self.address, self.port) if self.port else self.address

    def __repr__(self) -> str:
        return f"Peer({self}, listener={self.listener!r}, transport={self.transport!r})"


def join_host_port(host: str, port: int) -> str:
    """``host:port``, an IPv6 address in brackets, as configuration and the ready line write it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _escaped(value: str) -> str:
    """A value in a subject with the separators escaped, so that one name cannot pose as two (RFC 4514, 2.4)."""
    for character in ("\\", ",", "+", "="):
        value = value.replace(character, "\\" + character)
    return value
