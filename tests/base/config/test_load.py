"""File, environment and command line to a Config, and each mistake to one clear line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from brookmq.base.config import Config, check, load
from brookmq.base.errors import ConfigError

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str) -> Path:
        file = tmp_path / "brookmq.toml"
        file.write_text(text)
        return file

    return write


def first_problem(text: str, write: Write) -> str:
    """The line for a file, without the name of the file."""
    file = write(text)
    with pytest.raises(ConfigError) as caught:
        load(file, {}, {})
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith(caught.value.path)
    return line.removesuffix(f" (in {file})")


def test_nothing_configured_gives_the_defaults() -> None:
    config = load(None, {}, {})
    assert config == Config()
    assert config.mqtt.packet_size_max == 1 << 20
    assert config.mqtt.connect_timeout == 10.0
    assert config.session.expiry_max == 604_800
    assert [(name, listener.type, listener.bind) for name, listener in config.listeners.items()] == [
        ("default", "tcp", "127.0.0.1:1883")
    ]


def test_command_line_over_environment_over_file(write: Write) -> None:
    file = write('[mqtt]\nqos_max = 0\nreceive_max = 10\n[node]\nname = "file@host"\n[session]\nexpiry_max = "1h"')
    environ = {"BROOKMQ_MQTT__QOS_MAX": "1", "BROOKMQ_NODE__NAME": "environment@host"}
    config = load(file, environ, {"node.name": "line@host"})
    assert config.mqtt.qos_max == 1
    assert config.mqtt.receive_max == 10
    assert config.node.name == "line@host"
    assert config.session.expiry_max == 3_600


def test_a_configured_listener_stands_for_all(write: Write) -> None:
    config = load(write('[listeners.web]\ntype = "ws"\nbind = "127.0.0.1:0"'), {}, {})
    assert list(config.listeners) == ["web"]


def test_an_override_replaces_a_whole_table(write: Write) -> None:
    file = write('[listeners.web]\ntype = "ws"\nbind = "127.0.0.1:0"')
    config = load(file, {}, {"listeners": {"default": {"bind": "127.0.0.1:5"}}})
    assert list(config.listeners) == ["default"]
    assert config.listeners["default"].address == ("127.0.0.1", 5)


def test_sections_do_not_change() -> None:
    config = Config()
    with pytest.raises(ValidationError, match="frozen"):
        config.mqtt.qos_max = 1  # type: ignore[misc]


class TestEnvironment:
    def test_each_kind_of_value(self) -> None:
        environ = {
            "BROOKMQ_CLUSTER__NAME": "42",  # text stays text
            "BROOKMQ_LOG__LEVEL": "debug",
            "BROOKMQ_MQTT__CONNECT_TIMEOUT": "500ms",
            "BROOKMQ_MQTT__KEEP_ALIVE_FACTOR": "2",
            "BROOKMQ_MQTT__PACKET_SIZE_MAX": "65536",
            "BROOKMQ_MQTT__SUBSCRIPTIONS_MAX": "5_000",
            "BROOKMQ_NODE__CORE_NODES": '["a@host", "b@host"]',
            "BROOKMQ_REWRITE": '[{"filter": "a/#", "pattern": "^a", "target": "b"}]',
            "BROOKMQ_DELAYED__ENABLE": "False",
            "BROOKMQ_SHARED__GROUPS": '{ workers = { strategy = "sticky" } }',
            "BROOKMQ_LISTENERS__INSIDE__BIND": "[::1]:0",
            "BROOKMQ_PLUGINS__SETTINGS__EXAMPLE__COUNT": "3",
            "BROOKMQ_PLUGINS__SETTINGS__EXAMPLE__WORD": "three",
        }
        config = load(None, environ, {})
        assert config.cluster.name == "42"
        assert config.log.level == "debug"
        assert config.mqtt.connect_timeout == 0.5
        assert config.mqtt.keep_alive_factor == 2
        assert config.mqtt.packet_size_max == 65_536
        assert config.mqtt.subscriptions_max == 5_000
        assert config.node.core_nodes == ["a@host", "b@host"]
        assert config.rewrite[0].target == "b"
        assert config.delayed.enable is False
        assert config.shared.groups["workers"].strategy == "sticky"
        assert list(config.listeners) == ["inside"]
        assert config.plugins.settings == {"example": {"count": 3, "word": "three"}}

    def test_variables_of_others_are_left_alone(self) -> None:
        environ = {"BROOKMQ_PURE": "1", "BROOKMQ_URL": "http://x", "PATH": "/bin", "OTHER_MQTT__QOS_MAX": "7"}
        assert load(None, environ, {}) == Config()

    @pytest.mark.parametrize(
        ("name", "value", "line"),
        [
            ("BROOKMQ_MQTT__QOS_MAX", "3", "mqtt.qos_max: has to be at most 2, got 3 (from BROOKMQ_MQTT__QOS_MAX)"),
            (
                "BROOKMQ_MQTT__QOS_MAX",
                "x",
                "mqtt.qos_max: expected a whole number, got 'x' (from BROOKMQ_MQTT__QOS_MAX)",
            ),
            ("BROOKMQ_MQT__QOS_MAX", "1", "mqt: unknown key; did you mean mqtt? (from BROOKMQ_MQT__QOS_MAX)"),
            ("BROOKMQ_MQTT__", "1", "mqtt.: the variable BROOKMQ_MQTT__ has an empty part"),
            ("BROOKMQ_MQTT", "1", "mqtt: expected a table, got 1 (from BROOKMQ_MQTT)"),
        ],
    )
    def test_a_mistake_names_the_variable(self, name: str, value: str, line: str) -> None:
        assert [str(problem) for problem in check(None, {name: value}, {})] == [line]

    def test_a_value_cannot_become_a_table(self, write: Write) -> None:
        problems = check(write("mqtt = 5"), {"BROOKMQ_MQTT__QOS_MAX": "1"}, {})
        assert str(problems[0]) == "mqtt: is no table, so from BROOKMQ_MQTT__QOS_MAX cannot set mqtt.qos_max"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[mqtt]\npacket_sise_max = 5", "mqtt.packet_sise_max: unknown key; did you mean packet_size_max?"),
        ("[exclusive]\nxyz = 5", "exclusive.xyz: unknown key; known here: enable"),
        ("[mqtt]\npacket_size_max = 5", "mqtt.packet_size_max: has to be at least 64 bytes, got 5"),
        ("[mqtt]\npacket_size_max = true", "mqtt.packet_size_max: expected a whole number of bytes, got true"),
        ("[mqtt]\nconnect_timeout = 0", "mqtt.connect_timeout: has to be more than 0 seconds, got 0"),
        ('[mqtt]\nqos_max = "2"', "mqtt.qos_max: expected a whole number, got '2'"),
        ("[mqtt]\nqos_max = 1.5", "mqtt.qos_max: expected a whole number, got 1.5"),
        ("[mqtt]\nretain_available = 1", "mqtt.retain_available: expected true or false, got 1"),
        ('[mqtt]\nkeep_alive_factor = "x"', "mqtt.keep_alive_factor: expected a number, got 'x'"),
        ('[session]\nexpiry_max = "1.5s"', "session.expiry_max: expected a whole number of seconds, got 1.5"),
        (
            '[session]\nqueue_full = "drop_odest"',
            "session.queue_full: expected one of drop_oldest, drop_newest, got 'drop_odest'; did you mean drop_oldest?",
        ),
        ("[node]\ncore_nodes = 5", "node.core_nodes: expected a list, got 5"),
        ('[node]\ndata_dir = ""', "node.data_dir: must not be empty, got ''"),
        ("[cluster]\nname = 5", "cluster.name: expected text, got 5"),
        (
            '[store]\nservers = ["tcp://a:1"]',
            "store.servers[0]: expected tls://HOST:PORT or nats://HOST:PORT, got 'tcp://a:1'",
        ),
        (
            '[store]\nservers = ["nats://a"]',
            "store.servers[0]: expected HOST:PORT, such as 127.0.0.1:1883 or [::1]:1883; got 'a'",
        ),
        (
            '[store]\nservers = ["nats://core:secret@a:1"]',
            "store.servers[0]: a server's address has no user in it; set store.user and store.password",
        ),
        ('[store]\nwait = "0.5s"', "store.wait: has to be at least 1 seconds, got 0.5"),
        ("[journal]\nshards = 13", "journal.shards: has to be at most 12, got 13"),
        (
            '[journal]\ncapture = ["a/#/b"]',
            "journal.capture[0]: # stands alone in the last level of a topic filter; got 'a/#/b'",
        ),
        ("listeners = 5", "listeners: expected a table, got 5"),
        ("[[rewrite]]\nfilter = 'a'\npattern = 'a'", "rewrite[0].target: is required"),
        (
            "[[rewrite]]\nfilter = 'a/#/b'\npattern = 'a'\ntarget = 'b'",
            "rewrite[0].filter: # stands alone in the last level of a topic filter; got 'a/#/b'",
        ),
        (
            "[[auto_subscribe]]\nfilter = '${who}'",
            "auto_subscribe[0].filter: ${who} is not known; ${client_id} and ${username} are",
        ),
    ],
)
def test_each_mistake_is_one_line_with_the_path_of_the_key(text: str, line: str, write: Write) -> None:
    assert first_problem(text, write) == line


def test_a_wrong_name_shows_what_it_has_to_match(write: Write) -> None:
    assert first_problem('[node]\nname = "x"', write).startswith(
        "node.name: does not look right, got 'x'; it has to match "
    )


def test_long_values_are_shortened(write: Write) -> None:
    assert len(first_problem(f'[mqtt]\nqos_max = "{"x" * 1000}"', write)) < 150


def test_check_lists_all_problems(write: Write) -> None:
    problems = check(write("[mqtt]\nqos_max = 3\nfoo = 1\n[session]\ncount_max = 0"), {}, {})
    assert {problem.path for problem in problems} == {"mqtt.qos_max", "mqtt.foo", "session.count_max"}


class TestFile:
    def test_missing(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="no such configuration file"):
            load(tmp_path / "none.toml", {}, {})

    def test_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="cannot read"):
            load(tmp_path, {}, {})

    def test_not_toml(self, write: Write) -> None:
        with pytest.raises(ConfigError, match=r"is not TOML: .*line 2"):
            load(write("[mqtt]\nqos_max == 1"), {}, {})

    def test_not_text(self, tmp_path: Path) -> None:
        file = tmp_path / "binary.toml"
        file.write_bytes(b"\xff\xfe")
        with pytest.raises(ConfigError, match="is not TOML"):
            load(file, {}, {})


class TestSecrets:
    TLS = "[listeners.default.tls]\ncert = 'c'\nkey = 'k'\n"

    def test_from_a_file(self, tmp_path: Path, write: Write) -> None:
        for name, content in {"c": "", "k": "", "password": " s3cret \n"}.items():
            (tmp_path / name).write_text(content)
        text = f"""
            [listeners.default]
            type = "tls"
            [listeners.default.tls]
            cert = "{tmp_path}/c"
            key = "{tmp_path}/k"
            key_password_file = "{tmp_path}/password"
        """
        tls = load(write(text), {}, {}).listeners["default"].tls
        assert tls is not None
        assert tls.key_password.get_secret_value() == " s3cret "
        assert "s3cret" not in repr(tls)

    def test_named_in_the_environment(self, tmp_path: Path, write: Write) -> None:
        missing = str(tmp_path / "none")
        environ = {"BROOKMQ_LISTENERS__DEFAULT__TLS__KEY_PASSWORD_FILE": missing}
        [problem] = check(write(self.TLS), environ, {})
        assert str(problem) == (
            f"listeners.default.tls.key_password_file: cannot read {missing}: No such file or directory"
        )

    def test_a_wrong_secret_is_not_shown(self, write: Write) -> None:
        assert first_problem(self.TLS + "key_password = 12345", write) == (
            "listeners.default.tls.key_password: expected text"
        )

    def test_both_ways_at_once(self, write: Write) -> None:
        line = first_problem(self.TLS + "key_password = 'x'\nkey_password_file = 'y'", write)
        assert line == "listeners.default.tls.key_password_file: key_password is set too; one of them is enough"

    def test_the_name_of_the_file_is_text(self, write: Write) -> None:
        line = first_problem(self.TLS + "key_password_file = 5", write)
        assert line == "listeners.default.tls.key_password_file: expected the name of a file, got 5"
