"""A PostgreSQL server of our own, in a folder that goes with it, on a socket of its own: no port, nobody else's data.

PostgreSQL does not run as root: where we are root, it runs as the user that Debian's package made for it.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import adbc_driver_postgresql.dbapi as dbapi  # type: ignore[import-untyped]
import pyarrow as pa

USER = "brook"
PASSWORD = "pass word/with&signs"
PROGRAMS = Path("/usr/lib/postgresql")  # Debian has a folder for each version
WAIT_S = 60


class Server:
    """A server that runs. The socket's folder has a short path: a socket's name has 107 bytes at most."""

    def __init__(self, folder: Path, as_user: Sequence[str]) -> None:
        self._folder = folder
        self._as_user = as_user
        self.uri = f"postgresql://{USER}@localhost/postgres?host={quote(str(folder), safe='')}"

    def connect(self) -> Any:
        return dbapi.connect(f"{self.uri}&password={quote(PASSWORD, safe='')}")

    def rows(self, sql: str) -> pa.Table:
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetch_arrow_table()

    def do(self, *statements: str) -> None:
        with self.connect() as connection:
            with connection.cursor() as cursor:
                for sql in statements:
                    cursor.execute(sql)
            connection.commit()

    def restart(self) -> None:
        self._control("restart", "-m", "immediate")

    def start(self) -> None:
        # No TCP, and no waiting for the disk: what is tested is what a process does, not what a power cut does.
        options = f"-c listen_addresses='' -c unix_socket_directories='{self._folder}' -c fsync=off"
        self._control("start", "-l", str(self._folder / "log"), "-o", options)

    def stop(self) -> None:
        self._control("stop", "-m", "immediate")

    def initialise(self) -> None:
        secret = self._folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        self._run("initdb", "--auth=scram-sha-256", f"--username={USER}", f"--pwfile={secret}", "--encoding=UTF8",
                  "--locale=C", "--no-sync", f"--pgdata={self._folder / 'data'}")  # fmt: skip

    def _control(self, *arguments: str) -> None:
        self._run("pg_ctl", "--wait", f"--timeout={WAIT_S}", f"--pgdata={self._folder / 'data'}", *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        command = [*self._as_user, str(programs() / program), *arguments]
        wait_s = 2 * WAIT_S
        with (self._folder / f"{program}.out").open("a+") as output:  # not a pipe, which the server would keep open
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", timeout=wait_s, check=False
            )
            output.seek(0)
            assert done.returncode == 0, output.read()


def programs() -> Path:
    """The newest version that is installed."""
    found = sorted(PROGRAMS.glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    assert found, f"there is no PostgreSQL in {PROGRAMS}: make setup-test"
    return found[-1].parent


@contextmanager
def running_server() -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="brookmq-pg-", dir="/tmp"))
    try:
        as_user: list[str] = []
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            shutil.chown(folder, user.pw_uid, user.pw_gid)
            as_user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        folder.chmod(0o755)
        server = Server(folder, as_user)
        server.initialise()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)
