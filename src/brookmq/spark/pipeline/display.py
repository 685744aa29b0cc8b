"""What a pipeline shows while it runs: a table that changes in a terminal, lines in a pipe, JSON for programs.

Names and messages come from others and may hold control characters; a terminal would obey them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, Final, Protocol

from brookmq.base.pipeline_status import PipelineStatus, QueryStatus

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

LINES_EVERY_S: Final = 10.0
WIDE: Final = 110  # characters of a line from which on a table has a column for errors
NAME_WIDTH_MIN: Final = 16
OTHERS_WIDTH: Final = 68  # of the other columns, with numbers as they are
MESSAGE_WIDTH: Final = 200
_COLOURS: Final = {"running": "green", "starting": "yellow", "waiting": "yellow", "failed": "red", "stopped": "dim"}


class Display(Protocol):
    """``show`` comes about every second, ``note`` is what stands above: where the pipeline is, or what is wrong."""

    def note(self, text: str) -> None: ...

    def show(self, status: PipelineStatus, problem: str | None, now: float) -> None: ...

    def close(self) -> None: ...


def display_for(stream: IO[str], *, as_json: bool) -> Display:
    """What suits the place where the output goes."""
    if as_json:
        return JsonDisplay(stream)
    return TerminalDisplay() if stream.isatty() else PlainDisplay(stream)


class JsonDisplay:
    """One object a line: the status whenever something in it changed, ``{"note": …}`` for the rest."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._shown: dict[str, object] = {}

    def note(self, text: str) -> None:
        self._print({"note": text})

    def show(self, status: PipelineStatus, problem: str | None, now: float) -> None:
        told = {**status.document(), "problem": problem}
        if _timeless(told) != self._shown:
            self._shown = _timeless(told)
            self._print(told)

    def close(self) -> None:
        """Every line is out already."""

    def _print(self, value: dict[str, object]) -> None:
        print(json.dumps(value, ensure_ascii=False), file=self._stream, flush=True)


def _timeless(told: dict[str, object]) -> dict[str, object]:
    """Without what changes with the clock alone."""
    queries = told["queries"]
    assert isinstance(queries, (list, tuple))
    return {**told, "queries": [{**query, "since": 0, "rows_per_second": 0} for query in queries]}


class PlainDisplay:
    """A line when a query changes its state, and now and then how far those are that did something."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._states: dict[str, tuple[str, str | None]] = {}
        self._told: dict[str, tuple[float, int]] = {}  # when, and which batch
        self._problem: str | None = None

    def note(self, text: str) -> None:
        self._print(text)

    def show(self, status: PipelineStatus, problem: str | None, now: float) -> None:
        if problem != self._problem:
            self._problem = problem
            self._print(f"node: {problem}" if problem else "node: answers again")
        names = {query.name for query in status.queries}
        for name in [name for name in self._states if name not in names]:
            del self._states[name]
            self._told.pop(name, None)
            self._print(f"{name}: removed")
        for query in status.queries:
            self._show(query, now)

    def close(self) -> None:
        """Every line is out already."""

    def _show(self, query: QueryStatus, now: float) -> None:
        state = (query.state, query.message)
        before, self._states[query.name] = self._states.get(query.name), state
        if state != before:
            self._print(f"{query.name}: {query.state}" + (f": {query.message}" if query.message else ""))
        told_at, batch = self._told.get(query.name, (-LINES_EVERY_S, -1))
        if query.batch > batch and now - told_at >= LINES_EVERY_S:
            self._told[query.name] = (now, query.batch)
            self._print(
                f"{query.name}: batch {query.batch}, {query.batch_ms:.0f} ms, {query.rows_per_second:g} rows/s, "
                f"lag {query.lag}, matched {query.matched}, passed {query.passed}, failed {query.failed}"
            )

    def _print(self, text: str) -> None:
        print(printable(text), file=self._stream, flush=True)


class TerminalDisplay:
    """A table that stays in its place; what is printed otherwise goes above it. It comes with the first status: what
    Java says while it starts would go right through it."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._live = Live(console=Console(), auto_refresh=False, vertical_overflow="ellipsis")

    def note(self, text: str) -> None:
        from rich.text import Text

        self._live.console.print(Text(printable(text)))

    def show(self, status: PipelineStatus, problem: str | None, now: float) -> None:
        if not self._live.is_started:
            self._live.start()
        self._live.update(shown(status, problem, self._live.console.width), refresh=True)

    def close(self) -> None:
        self._live.stop()


Cell = Callable[[QueryStatus], str]
COLUMNS: Final[Sequence[tuple[str, Cell]]] = (
    ("rows/s", lambda query: f"{query.rows_per_second:,.0f}"),
    ("lag", lambda query: f"{query.lag:,}"),
    ("batch ms", lambda query: f"{query.batch_ms:,.0f}" if query.batch >= 0 else "-"),
    ("matched", lambda query: f"{query.matched:,}"),
    ("passed", lambda query: f"{query.passed:,}"),
    ("failed", lambda query: f"{query.failed:,}"),
)


def shown(status: PipelineStatus, problem: str | None, width: int) -> RenderableType:
    """The queries of a pipeline, for a terminal. Errors have a column where there is room for it, else lines below."""
    from rich.console import Group
    from rich.text import Text

    wide = width >= WIDE
    parts: list[RenderableType] = [Text("no rule or table is enabled", "dim")]
    if status.queries:
        name_width = width // 4 if wide else max(width - OTHERS_WIDTH, NAME_WIDTH_MIN)
        parts = [_table(status.queries, name_width, errors=wide)]
    for query in () if wide else status.queries:
        if query.message is not None:
            parts.append(Text(f"{printable(query.name)}: {_message(query)}"))
    if problem:
        parts.append(Text(printable(f"the node does not answer: {problem}"), "red"))
    return Group(*parts)


def _table(queries: Sequence[QueryStatus], name_width: int, *, errors: bool) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    found = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0), expand=errors)
    found.add_column("query", no_wrap=True, overflow="ellipsis", max_width=name_width)
    found.add_column("state", no_wrap=True)
    for title, _ in COLUMNS:
        found.add_column(title, justify="right", no_wrap=True)
    if errors:
        found.add_column("last error", overflow="fold", ratio=1)
    for query in queries:
        state = Text(query.state + (f" ({query.restarts})" if query.restarts else ""), _COLOURS.get(query.state, ""))
        cells = [Text(printable(query.name)), state, *(Text(cell(query)) for _, cell in COLUMNS)]
        found.add_row(*cells, *([Text(_message(query))] if errors else []))
    return found


def _message(query: QueryStatus) -> str:
    return printable(query.message or "")[:MESSAGE_WIDTH]


def printable(text: str) -> str:
    """A text that a terminal only shows."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
