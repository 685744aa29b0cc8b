"""``brookmq pipeline status``: what the node heard of its pipeline, for people."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

import click

from brookmq.base.pipeline_status import PipelineStatus
from brookmq.spark.pipeline.display import COLUMNS, printable, shown

HEADINGS = ("query", "state", *(title for title, _ in COLUMNS), "last error")


def show_status(answer: Mapping[str, Any]) -> None:
    """A table in a terminal, lines with tabs elsewhere. ``answer`` is the node's."""
    if answer.get("id") is None:
        click.echo("No pipeline runs for this node, and none has since it was started: `brookmq pipeline run`.")
        return
    told = {name: answer[name] for name in PipelineStatus.model_fields if name in answer}
    status = PipelineStatus.model_validate(told)
    ago_s = max(time.time() - float(answer.get("heard_at") or 0.0), 0.0)
    if not answer.get("alive"):
        click.echo(f"No pipeline runs: the last one was heard of {ago_s:.0f} s ago. `brookmq pipeline run` starts one.")
        return
    if not sys.stdout.isatty():
        click.echo("\t".join(HEADINGS))
        for query in status.queries:
            cells = [query.name, query.state, *(cell(query) for _, cell in COLUMNS), query.message or ""]
            click.echo("\t".join(map(printable, cells)))
        return
    from rich.console import Console

    console = Console()
    console.print(shown(status, None, console.width))
    click.echo(printable(f"Spark {status.master}, {status.application}, since {_duration(status.started_at)}"))


def _duration(since: float) -> str:
    minutes, seconds = divmod(int(max(time.time() - since, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
