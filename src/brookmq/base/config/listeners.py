"""``[listeners.NAME]`` and ``[http]``: where a node listens."""

from __future__ import annotations

from typing import Literal

from pydantic import SecretStr

from brookmq.base.config.section import Limit, Section, setting
from brookmq.base.config.values import Address, Bind, Mountpoint, parse_address

ListenerType = Literal["tcp", "tls", "ws", "wss", "unix"]


class Certificate(Section):
    """``{ cert, key }``: a certificate with its private key."""

    cert: str = setting(..., "File with the certificate chain (PEM).", min_length=1)
    key: str = setting(..., "File with the private key (PEM).", min_length=1)
    key_password: SecretStr = setting(SecretStr(""), "Password of the private key, when it has one.")


class Tls(Certificate):
    """``[listeners.NAME.tls]``."""

    ca: str = setting("", "File with the certificates (PEM) that client certificates are checked against.")
    client_certificates: Literal["none", "optional", "required"] = setting(
        "none", "Whether clients show a certificate; optional and required need ca."
    )
    version_min: Literal["1.2", "1.3"] = setting("1.2", "Lowest TLS version that is accepted.")
    sni: dict[str, Certificate] = setting(
        {}, "Other certificates, by the host name that the client asks for: a table of HOST = { cert, key }."
    )


class Listener(Section):
    """``[listeners.NAME]``."""

    type: ListenerType = setting("tcp", "Transport. tls and wss need a tls table.")
    bind: str = setting(
        "127.0.0.1:1883",
        "HOST:PORT, IPv6 as [::1]:1883, port 0 for any free one; for unix the path of the socket.",
    )
    enable: bool = setting(True, "Whether it listens.")
    path: str = setting("/mqtt", "Path of the WebSocket (ws and wss).", pattern="^/")
    proxy_protocol: bool = setting(
        False,
        "Expect a PROXY protocol header (v1 or v2) from a load balancer in front; a connection without one is closed.",
    )
    connections_max: int = setting(
        1_000_000,
        "Connections at a time.",
        limit=Limit("A further connection is closed when it is accepted, and counted.", unit="connections"),
        ge=1,
    )
    connect_rate_max: int = setting(
        0,
        "New connections per second, 0 for no limit.",
        limit=Limit("Accepting pauses; who comes meanwhile waits in the backlog.", unit="connections per second"),
        ge=0,
    )
    mountpoint: Mountpoint = setting(
        "",
        "Put in front of every topic of its clients and taken off again on the way out. "
        "${client_id} and ${username} are filled in.",
    )
    backlog: int = setting(
        4096,
        "Connections that the system keeps until they are accepted.",
        limit=Limit("The system drops the attempt; the client tries again.", unit="connections"),
        ge=1,
        le=65_535,
    )
    tls: Tls | None = setting(None, "Certificate and TLS settings (tls and wss).")

    @property
    def address(self) -> Address:
        """Host and port; not for unix."""
        return parse_address(self.bind)

    @property
    def is_secure(self) -> bool:
        return self.type in {"tls", "wss"}


class Http(Section):
    """``[http]``: API, metrics and overview page."""

    enable: bool = setting(True, "Whether the HTTP server runs.")
    bind: Bind = setting("127.0.0.1:18083", "HOST:PORT; beyond loopback only with a login, which a plugin provides.")

    @property
    def address(self) -> Address:
        return parse_address(self.bind)


LISTENER_EXAMPLES = [
    {
        "secure": {
            "type": "tls",
            "bind": "127.0.0.1:8883",
            "tls": {
                "cert": "server.crt",
                "key": "server.key",
                "key_password_file": "server.password",
                "ca": "clients.crt",
                "client_certificates": "optional",
                "version_min": "1.2",
                "sni": {"devices.example.org": {"cert": "devices.crt", "key": "devices.key"}},
            },
        },
        "web": {"type": "ws", "bind": "127.0.0.1:8083", "path": "/mqtt"},
        "local": {"type": "unix", "bind": "data/mqtt.sock"},
    }
]
