"""The command line: what people type, what they get, which code it ends with."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import brookmq
from brookmq.base.config import Config
from brookmq.base.config.example import example
from brookmq.base.errors import ConfigError, InvariantError, OperationError
from brookmq.cli import main
from brookmq.cli.lazy import LazyCommand, LazyGroup


def invoke(*arguments: str, **environ: str | None) -> Result:
    cleared = {name: None for name in os.environ if name.startswith("BROOKMQ_") and name != "BROOKMQ_PURE"}
    return CliRunner().invoke(main, arguments, env={**cleared, **environ})


class TestMain:
    def test_version_says_whether_it_is_compiled(self) -> None:
        output = invoke("--version").output
        assert output.startswith(f"brookmq {brookmq.__version__} (Python 3.")
        assert "compiled" in output or "plain Python" in output

    def test_python_dash_m(self) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "brookmq", "--version"], capture_output=True, text=True, check=True
        )
        assert done.stdout.startswith("brookmq ")

    def test_help_names_every_command(self) -> None:
        output = invoke("--help").output
        assert all(f"\n  {name} " in output for name in ("start", "conf", "ctl", "bench"))

    def test_help_imports_no_part_of_the_broker(self) -> None:
        code = (
            "import sys; from click.testing import CliRunner; from brookmq.cli import main;"
            "assert CliRunner().invoke(main, ['--help']).exit_code == 0;"
            "print(*sorted(set(sys.modules) & {'pydantic', 'fastapi', 'uvloop', 'rich', 'httpx', 'brookmq.mqtt'}))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == ""

    @pytest.mark.parametrize("arguments", [("start",), ("conf",), ("conf", "check"), ("conf", "example")])
    def test_every_command_has_help_with_an_example(self, arguments: tuple[str, ...]) -> None:
        result = invoke(*arguments, "--help")
        assert result.exit_code == 0
        assert "brookmq" in result.output

    def test_unknown_command(self) -> None:
        result = invoke("strat")
        assert result.exit_code == 2
        assert "strat" in result.output


class TestLazy:
    @staticmethod
    def group(target: str) -> click.Group:
        return LazyGroup("top", lazy={"sub": LazyCommand(target, "Something.")})

    def test_a_command_of_ours_that_is_not_there(self) -> None:
        result = CliRunner().invoke(self.group("brookmq.missing.part:command"), ["sub"])
        assert result.exit_code == 1
        assert "this installation has no `brookmq sub`" in result.output

    def test_a_package_that_is_not_installed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "needy_command.py").write_text("import a_package_of_nobody\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        result = CliRunner().invoke(self.group("needy_command:command"), ["sub"])
        assert result.exit_code == 1
        assert "needs the Python package a_package_of_nobody" in result.output

    def test_something_that_is_no_command(self) -> None:
        result = CliRunner().invoke(self.group("json:dumps"), ["sub"])
        assert isinstance(result.exception, TypeError)


class TestConf:
    def test_example_is_accepted_by_check(self, tmp_path: Path) -> None:
        printed = invoke("conf", "example")
        assert printed.output == example()
        file = tmp_path / "brookmq.toml"
        file.write_text(printed.output)
        result = invoke("conf", "check", str(file))
        assert result.exit_code == 0
        assert result.output == f"{file}: good\n"

    def test_check_prints_every_problem_and_ends_with_2(self, tmp_path: Path) -> None:
        file = tmp_path / "brookmq.toml"
        file.write_text("[mqtt]\nqos_max = 3\nqos_min = 0")
        result = invoke("conf", "check", str(file))
        assert result.exit_code == 2
        assert result.stdout == ""
        assert result.stderr.splitlines() == [
            f"brookmq: mqtt.qos_max: has to be at most 2, got 3 (in {file})",
            f"brookmq: mqtt.qos_min: unknown key; did you mean qos_max? (in {file})",
        ]

    def test_check_looks_at_the_environment_too(self) -> None:
        assert invoke("conf", "check").output == "the environment: good\n"
        result = invoke("conf", "check", BROOKMQ_MQTT__QOS_MAX="9")
        assert result.exit_code == 2
        assert "BROOKMQ_MQTT__QOS_MAX" in result.stderr


class TestStart:
    @pytest.fixture
    def started(self, monkeypatch: pytest.MonkeyPatch) -> list[Config]:
        """Configurations with which a node was run; the node itself has its own tests."""
        configs: list[Config] = []

        def run(config: Config) -> int:
            configs.append(config)
            if config.node.name.startswith("port"):
                raise OperationError("listeners.default.bind: 127.0.0.1:1883 is in use")
            if config.node.name.startswith("bug"):
                raise InvariantError("must not be")
            return 3

        node = types.ModuleType("brookmq.node")
        node.run = run  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "brookmq.node", node)
        monkeypatch.setattr("brookmq.base.logs.configure", lambda _config: None)
        return configs

    def test_options_become_configuration(self, started: list[Config], tmp_path: Path) -> None:
        file = tmp_path / "brookmq.toml"
        file.write_text('[listeners.web]\ntype = "ws"\nbind = "127.0.0.1:0"\n[http]\nenable = false')
        options = {
            "--config": str(file),
            "--name": "a@host",
            "--role": "gateway",
            "--core-nodes": "core@host",
            "--data-dir": "there",
            "--mqtt": "127.0.0.1:5",
            "--http": "127.0.0.1:6",
            "--log-level": "debug",
            "--log-format": "json",
        }
        result = invoke("start", *(word for option in options.items() for word in option))
        assert result.exit_code == 3, result.output  # what the node returns
        [config] = started
        assert (config.node.name, config.node.role, config.node.data_dir) == ("a@host", "gateway", "there")
        assert config.node.core_nodes == ["core@host"]
        assert {name: listener.bind for name, listener in config.listeners.items()} == {"default": "127.0.0.1:5"}
        assert (config.http.enable, config.http.bind) == (True, "127.0.0.1:6")
        assert (config.log.level, config.log.format) == ("debug", "json")

    def test_the_file_may_be_named_in_the_environment(self, started: list[Config], tmp_path: Path) -> None:
        file = tmp_path / "brookmq.toml"
        file.write_text('[cluster]\nname = "fleet"')
        invoke("start", BROOKMQ_CONFIG=str(file))
        assert started[0].cluster.name == "fleet"

    @pytest.mark.parametrize(
        ("arguments", "line"),
        [
            (["--name", "port@host"], "brookmq: listeners.default.bind: 127.0.0.1:1883 is in use"),
            (["--name", "nobody"], "brookmq: node.name: does not look right, got 'nobody'"),
            (["--mqtt", "0.0.0.0:1883"], "brookmq: listeners.default.bind: 0.0.0.0:1883 is open to other machines"),
            (["--config", "/none.toml"], "brookmq: no such configuration file: /none.toml"),
        ],
    )
    def test_what_the_user_can_mend_is_one_line_and_2(
        self, started: list[Config], arguments: list[str], line: str
    ) -> None:
        result = invoke("start", *arguments)
        assert result.exit_code == 2
        assert result.stdout == ""
        [printed] = result.stderr.splitlines()
        assert printed.startswith(line)

    def test_a_bug_is_not_hidden(self, started: list[Config]) -> None:
        assert isinstance(invoke("start", "--name", "bug@host").exception, InvariantError)

    def test_config_error_is_an_operation_error(self) -> None:
        assert issubclass(ConfigError, OperationError)
