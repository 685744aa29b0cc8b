"""``python -m demo``, which is ``make demo``."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import click
import httpx
from rich.console import Console
from rich.text import Text

from demo.connections import LostConnectionError
from demo.node_api import RefusedError
from demo.picture import draw
from demo.processes import ProcessError
from demo.results import Results
from demo.running import Plan, TimeoutInStepError, run_demo
from demo.terminal import Screen, screen_for

INTERRUPTED: Final = 130
FAILURES: Final = (LostConnectionError, ProcessError, RefusedError, TimeoutInStepError, OSError, httpx.HTTPError)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--devices", default=1000, show_default=True, type=click.IntRange(10, 10_000), help="How many.")
@click.option("--seconds", default=15.0, show_default=True, type=click.FloatRange(1), help="For how long they speak.")
@click.option(
    "--output",
    default=Path("build/demo"),
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the picture and the figures.",
)
@click.option("--master", metavar="URL", help="Spark to run on; without it all cores of this machine.")
@click.option("--keep", is_flag=True, help="Leave the node's data, the tables and the logs where they are.")
def main(devices: int, seconds: float, output: Path, master: str | None, keep: bool) -> None:
    """Run a node, simulated devices and the pipeline, and draw what came out."""
    console = Console(highlight=False)
    began = time.monotonic()
    work = Path(tempfile.mkdtemp(prefix="brookmq-demo-"))
    try:
        results, picture = _attempt(Plan(devices, seconds, work, master), output, console)
    except (KeyboardInterrupt, asyncio.CancelledError):
        console.print("interrupted; everything was stopped")
        sys.exit(INTERRUPTED)
    finally:
        if keep:
            console.print(f"data, tables and logs: {work}", soft_wrap=True)
        else:
            shutil.rmtree(work, ignore_errors=True)
    for problem in results.problems:
        console.print(f"[red]wrong[/red]: {problem}")
    console.print(
        f"\n{len(results.devices):,} devices, {results.messages:,} messages, {results.alarms:,} alarms"
        f" in {time.monotonic() - began:.0f} s"
    )
    console.print(f"the picture: [bold]{picture}[/bold]", soft_wrap=True)
    sys.exit(1 if results.problems else 0)


def _attempt(plan: Plan, output: Path, console: Console) -> tuple[Results, Path]:
    """Exit code 1 with what was wrong, in words."""
    failures: list[BaseException] = []
    try:
        return _perform(plan, output, console)
    except* FAILURES as group:
        failures = _leaves(group)
    for failure in failures:
        console.print(Text("failed: ", "red") + Text(str(failure) or type(failure).__name__))
    sys.exit(1)


def _perform(plan: Plan, output: Path, console: Console) -> tuple[Results, Path]:
    screen, showing = screen_for(console)
    with showing:
        results = asyncio.run(_until_told_to_end(plan, screen))
        screen.begin("a picture")
        output.mkdir(parents=True, exist_ok=True)
        picture = output / "brookmq-demo.png"
        results.write(picture.with_suffix(".json"))
        draw(results, picture)
        screen.end()
    return results, picture


async def _until_told_to_end(plan: Plan, screen: Screen) -> Results:
    """SIGTERM ends it as Ctrl-C does; and Ctrl-C does so where a shell in the background has it ignored."""
    task = asyncio.current_task()
    assert task is not None
    for one in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(one, task.cancel)
    return await run_demo(plan, screen)


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    return [
        leaf for one in group.exceptions for leaf in (_leaves(one) if isinstance(one, BaseExceptionGroup) else [one])
    ]


if __name__ == "__main__":
    main()
