"""A configuration as a file: read back, it is the same."""

from __future__ import annotations

from pathlib import Path

from brookmq.base.config import Config, load
from brookmq.base.config.written import written

FILE = """
[node]
name = "n@127.0.0.1"

[listeners.default]
bind = "127.0.0.1:1"

[listeners."t-x"]
type = "ws"
path = "/with \\"quotes\\" and ü"

[mqtt]
packet_size_max = "2MiB"
max_qos = 1

[plugins]
enabled = ["a", "b"]

[plugins.settings.a]
number = 1
nested = { "key with space" = [1, 2.5, true] }

[[auto_subscribe]]
filter = "a/${client_id}"
qos = 1

[[auto_subscribe]]
filter = "b"
"""


def test_what_is_written_is_read_as_it_was(tmp_path: Path) -> None:
    first, again = tmp_path / "first.toml", tmp_path / "again.toml"
    first.write_text(FILE.replace("max_qos = 1\n", ""))
    config = load(first, {}, {})
    again.write_text(written(config))
    assert load(again, {}, {}) == config


def test_only_what_differs_is_written() -> None:
    assert written(Config()).strip() == ""


def test_secrets_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("")
    file = tmp_path / "tls.toml"
    file.write_text(
        '[listeners.default]\ntype = "tls"\n[listeners.default.tls]\n'
        f'cert = "{tmp_path / "cert.pem"}"\nkey = "{tmp_path / "cert.pem"}"\nkey_password = "hush"\n'
    )
    text = written(load(file, {}, {}))
    assert "hush" not in text
    assert "# key_password was set, and is a secret" in text
