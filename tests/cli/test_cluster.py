"""`brookmq cluster`: what people type, what they get, and what to do next."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner, Result
from tests.store.three_stores import three_stores

from brookmq.cli import main

CORES = ["a@10.0.0.1", "b@10.0.0.2", "c@10.0.0.3"]
NAMED = [word for core in CORES for word in ("--core-nodes", core)]


def invoke(*arguments: str, stdin: str = "") -> Result:
    cleared = {name: None for name in os.environ if name.startswith("BROOKMQ_") and name != "BROOKMQ_PURE"}
    return CliRunner().invoke(main, ["cluster", *arguments], env=cleared, input=stdin)


def found(folder: Path, *more: str) -> Result:
    return invoke("init", "--data-dir", str(folder), "--name", CORES[0], *NAMED, *more)


@pytest.mark.parametrize("command", [(), ("init",), ("join",), ("store",), ("secret",)])
def test_every_command_has_help_with_an_example(command: tuple[str, ...]) -> None:
    result = invoke(*command, "--help")
    assert result.exit_code == 0
    assert "Example" in result.output
    assert f"brookmq cluster {' '.join(command)}".strip() in result.output


def test_init_says_what_comes_next(tmp_path: Path) -> None:
    result = found(tmp_path / "a", "--cluster", "fleet")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "cluster fleet: this is its core a@10.0.0.1"
    assert str(tmp_path / "a" / "cluster" / "secret") in lines[1]
    assert "  brookmq cluster join secret --name b@10.0.0.2" in lines
    assert "  brookmq cluster join secret --name c@10.0.0.3" in lines
    assert "brookmq-cluster-secret" not in result.stdout


def test_the_configuration_names_the_cores_too(tmp_path: Path) -> None:
    file = tmp_path / "brookmq.toml"
    file.write_text(
        f'[node]\nname = "b@10.0.0.2"\ncore_nodes = {CORES}\ndata_dir = "{tmp_path}/b"\n[cluster]\nname = "fleet"\n'
    )
    result = invoke("init", "--config", str(file), "--listen", "0.0.0.0", "--json")
    assert json.loads(result.stdout) == {
        "cluster": "fleet",
        "node": "b@10.0.0.2",
        "data_dir": f"{tmp_path}/b",
        "listen": "0.0.0.0",
        "cores": [{"name": core, "store": f"{core[2:]}:4222", "routes": f"{core[2:]}:6222"} for core in CORES],
        "secret": f"{tmp_path}/b/cluster/secret",
    }


def test_the_others_join_with_the_file_or_what_it_holds(tmp_path: Path) -> None:
    found(tmp_path / "a")
    file = tmp_path / "a" / "cluster" / "secret"
    by_file = invoke("join", str(file), "--name", CORES[1], "--data-dir", str(tmp_path / "b"))
    assert by_file.exit_code == 0, by_file.output
    assert by_file.stdout.startswith("cluster brookmq: this is its core b@10.0.0.2\n")
    assert "  c@10.0.0.3  store 10.0.0.3:4222, routes 10.0.0.3:6222" in by_file.stdout
    assert by_file.stderr == ""
    line = invoke("secret", "--data-dir", str(tmp_path / "a")).stdout
    assert line == file.read_text()
    assert json.loads(invoke("secret", "--data-dir", str(tmp_path / "a"), "--json").stdout) == {"secret": line.strip()}
    by_pipe = invoke("join", "-", "--name", CORES[2], "--data-dir", str(tmp_path / "c"), "--json", stdin=line)
    assert json.loads(by_pipe.stdout)["node"] == CORES[2]


def test_a_copy_that_others_can_read_is_told(tmp_path: Path) -> None:
    found(tmp_path / "a")
    copy = tmp_path / "secret"
    copy.write_text((tmp_path / "a" / "cluster" / "secret").read_text())
    copy.chmod(0o644)
    result = invoke("join", str(copy), "--name", CORES[1], "--data-dir", str(tmp_path / "b"))
    assert result.exit_code == 0
    assert result.stderr == f"brookmq: {copy} can be read by others on this machine; chmod 600 it, or delete it\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["init"], "name the cores, this one too: --core-nodes NAME@HOST for each"),
        (["init", *NAMED], "brookmq@127.0.0.1 is none of the cluster's cores"),
        (["init", *NAMED[:4]], "a cluster has 3, 5 or 7 cores"),
        (["init", "--core-nodes", "a"], "'a' is not the address of a core: expected NAME@HOST"),
        (["init", "--cluster", "a b", *NAMED], "cluster.name: does not look right"),
        (["init", "--config", "/none.toml"], "no such configuration file: /none.toml"),
        (["join", "/none"], "there is no file /none"),
        (["join", "-"], "this is not the secret of a cluster"),
        (["secret"], "the secret is in the folder where `brookmq cluster init` ran"),
    ],
)
def test_what_the_user_can_mend_is_one_line_and_2(tmp_path: Path, arguments: list[str], words: str) -> None:
    result = invoke(*arguments, "--data-dir", str(tmp_path / "x"))
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    assert line.startswith("brookmq: ")
    assert words in line


def test_a_folder_with_the_data_of_a_lone_node_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "store" / "jetstream" / "BROOKMQ").mkdir(parents=True)
    result = found(tmp_path)
    assert result.exit_code == 2
    assert "the data of a lone node" in result.stderr
    assert "--data-dir" in result.stderr
    assert not (tmp_path / "cluster").exists()


def test_a_node_on_somebody_else_s_store_is_told_so(tmp_path: Path) -> None:
    file = tmp_path / "brookmq.toml"
    file.write_text('[store]\nservers = ["nats://10.0.0.9:4222"]\n')
    result = invoke("init", "--config", str(file), *NAMED)
    assert result.exit_code == 2
    assert "store.servers names a store that others run" in result.stderr


class TestStore:
    """A real process beside two stores of the harness."""

    @staticmethod
    def run(folder: Path, name: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "brookmq", "cluster", "store", "--json", "--data-dir", str(folder)]
        environ = {key: value for key, value in os.environ.items() if not key.startswith("BROOKMQ_")}
        return subprocess.Popen([*command, "--name", name], stdout=subprocess.PIPE, text=True, env=environ)

    def test_it_takes_its_place_and_leaves_nothing_behind(self, tmp_path: Path) -> None:
        with three_stores(tmp_path) as stores:
            stores.wait_ready()
            stores.kill(2)
            stores.release_folder(2)
            node = stores.memberships[2].node
            process = self.run(tmp_path / "2", node.name)
            try:
                assert process.stdout is not None
                ready = json.loads(process.stdout.readline())
                assert (ready["ready"], ready["name"], ready["store"]) == (True, node.name, node.store)
                assert psutil.pid_exists(ready["pid"])
                process.terminate()
                assert process.wait(20) == 0
                assert not psutil.pid_exists(ready["pid"])
            finally:
                process.kill()
                process.communicate()

    def test_a_folder_of_no_cluster(self, tmp_path: Path) -> None:
        result = invoke("store", "--data-dir", str(tmp_path))
        assert result.exit_code == 2
        assert "is no core of a cluster: run `brookmq cluster init`" in result.stderr
