"""Commands about a node's data: backups, and the way back."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import click

from brookmq.ops.ctl.connection import Node, NodeRefused
from brookmq.ops.ctl.options import node_options
from brookmq.ops.ctl.output import moment_of, print_facts, print_json, size
from brookmq.store.backup import file_format as file
from brookmq.store.backup.file_format import BackupReader, BadBackup

PIECE_BYTES = 256 * 1024


@click.group()
def data() -> None:
    """Write what a node keeps to a file, and read it back.

    A backup has the node's configuration (without secrets), retained and delayed messages, what the pipeline keeps, and
    sessions; with --journal also the messages that sessions have still to get and those that were captured.

    \b
    Examples:
      brookmq ctl data export backup.brookmq --journal
      brookmq ctl data show backup.brookmq
      brookmq ctl data import backup.brookmq
    """


@data.command(name="export")
@click.argument("path", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--journal", is_flag=True, help="With the messages of the journal: without them, queues are empty.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@node_options
def export_data(node: Node, as_json: bool, path: Path, journal: bool, force: bool) -> None:
    """Write a backup of a running node to FILE. Clients notice nothing.

    The file is complete when the command ends with 0; until then it has .part behind its name. It holds messages and
    client ids: only you may read it.

    \b
    Examples:
      brookmq ctl data export backup.brookmq
      brookmq ctl data export backup.brookmq --journal --json
    """
    if path.exists() and not force:
        raise click.UsageError(f"{path} exists; --force writes over it.")
    part = path.with_name(path.name + ".part")
    try:
        with open_private(part) as stream, progress(f"export to {path}", None) as advance:
            found = _receive(node.stream("/data", journal=journal), stream, advance)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
    except BadBackup as error:
        raise NodeRefused(f"the export was not complete: {error}") from None
    except OSError as error:
        raise click.FileError(str(path), error.strerror or str(error)) from None
    finally:
        part.unlink(missing_ok=True)
    _say(found, path, as_json)


@data.command(name="import")
@click.argument("path", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--replace", is_flag=True, help="End the sessions of the node and remove what it keeps, first.")
@node_options
def import_data(node: Node, as_json: bool, path: Path, replace: bool) -> None:
    """Read a backup into a node without sessions, or with --replace into any.

    The file is checked whole before anything is sent. Clients are refused while it is read. The configuration is not
    changed: `brookmq ctl data config FILE` prints the one of the backup.

    \b
    Examples:
      brookmq ctl data import backup.brookmq
      brookmq ctl data import backup.brookmq --replace
    """
    found = _check(path)
    with progress(f"import from {path}", path.stat().st_size) as advance:
        result = node.send("/data", _in_order(path, found, advance), replace=replace)
    if as_json:
        print_json(result)
        return
    print_facts(
        {
            "retained and delayed": result["values"],
            "sessions": result["sessions"],
            "pipeline": f"{result.get('pipeline', 0)} positions of queries, rules and schemas",
            "journal": f"{result['messages']} messages",
            "left behind": f"{result['messages_left']} messages",
        }
    )
    if not found.about.get("journal"):
        click.echo("The backup has no journal: sessions are back without the messages that waited for them.", err=True)
    if not result["same_configuration"]:
        click.echo(f"The node's configuration is another one: `brookmq ctl data config {path}` prints it.", err=True)


@data.command(name="show")
@click.argument("path", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show_data(path: Path, as_json: bool) -> None:
    """Check a backup and show what is in it. Needs no node.

    \b
    Example:
      brookmq ctl data show backup.brookmq
    """
    _say(_check(path), path, as_json)


@data.command(name="config")
@click.argument("path", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def show_config(path: Path) -> None:
    """Print the configuration in a backup, as TOML. Needs no node.

    \b
    Example:
      brookmq ctl data config backup.brookmq > brookmq.toml
    """
    click.echo(_check(path).configuration, nl=False)


class Section(NamedTuple):
    """A section of a file: where it begins and ends, how many records it has, its checksum."""

    kind: int
    start: int
    end: int
    records: int
    checksum: str


class Found:
    """What is in a file that was read whole, and is right."""

    def __init__(self) -> None:
        self.about: dict[str, Any] = {}
        self.head_bytes = 0
        self.bytes = 0
        self.sections: list[Section] = []
        self.configuration = ""


class _Inspector:
    """Reads along, and remembers where sections are. Bytes of a section are counted by its own lengths."""

    def __init__(self) -> None:
        self.found = Found()
        self._reader = BackupReader()
        self._start = 0

    def feed(self, piece: bytes) -> None:
        self.found.bytes += len(piece)
        for event in self._reader.feed(piece):
            consumed = self.found.bytes - self._reader.waiting_bytes
            if isinstance(event, file.Head):
                self.found.about = event.about
                self.found.head_bytes = self._start = consumed
            elif isinstance(event, file.SectionEnd):
                self.found.sections.append(Section(event.kind, self._start, consumed, event.records, event.checksum))
                self._start = consumed
            elif isinstance(event, file.Records) and event.kind == file.CONFIGURATION:
                self.found.configuration += "".join(text.decode() for _, text in event.records)

    def finish(self) -> Found:
        self._reader.finish()
        return self.found


def _receive(pieces: Iterable[bytes], stream: IO[bytes], advance: Advance) -> Found:
    inspector = _Inspector()
    for piece in pieces:
        inspector.feed(piece)
        stream.write(piece)
        advance(len(piece))
    return inspector.finish()


def _check(path: Path) -> Found:
    """Read a file to its end, so that nothing of a damaged one is ever used."""
    inspector = _Inspector()
    try:
        with path.open("rb") as stream:
            while piece := stream.read(PIECE_BYTES):
                inspector.feed(piece)
        return inspector.finish()
    except BadBackup as error:
        raise NodeRefused(f"{path}: {error}") from None
    except OSError as error:
        raise click.FileError(str(path), error.strerror or str(error)) from None


def _in_order(path: Path, found: Found, advance: Advance) -> Iterator[bytes]:
    """The file with its journal before its sessions: they are fitted to where its messages come to lie."""
    order = (file.CONFIGURATION, file.VALUES, file.PIPELINE, file.JOURNAL, file.SESSIONS)
    sections = sorted(found.sections, key=lambda section: order.index(section.kind))
    stretches = [(0, found.head_bytes), *((section.start, section.end) for section in sections)]
    with path.open("rb") as stream:
        for start, end in stretches:
            stream.seek(start)
            while start < end and (piece := stream.read(min(PIECE_BYTES, end - start))):
                yield piece
                start += len(piece)
                advance(len(piece))
    yield file.end()


def _say(found: Found, path: Path, as_json: bool) -> None:
    if as_json:
        sections = {
            file.NAMES[section.kind]: {"records": section.records, "sha256": section.checksum}
            for section in found.sections
        }
        print_json({"file": str(path), "bytes": found.bytes, "about": found.about, "sections": sections})
        return
    facts: dict[str, object] = {
        "file": path,
        "size": size(found.bytes),
        "node": found.about.get("node"),
        "version": found.about.get("version"),
        "exported at": moment_of(found.about.get("exported_at")),
    }
    facts |= {
        file.NAMES[section.kind]: f"{section.records} records, sha256 {section.checksum[:16]}…"
        for section in found.sections
    }
    print_facts(facts)


# -- what the user sees meanwhile


class Advance:
    """Tells how many more bytes are done."""

    def __init__(self, tell: Any = None) -> None:
        self._tell = tell

    def __call__(self, count_bytes: int) -> None:
        if self._tell is not None:
            self._tell(count_bytes)


@contextmanager
def progress(what: str, total_bytes: int | None) -> Iterator[Advance]:
    """A bar on stderr in a terminal; nothing in a pipe, where the summary has to do."""
    if not sys.stderr.isatty():
        yield Advance()
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total_bytes)
        yield Advance(lambda count_bytes: bar.advance(task, count_bytes))


@contextmanager
def open_private(path: Path) -> Iterator[IO[bytes]]:
    """A new file that only its owner may read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        yield stream
