"""`pipeline status`, from the node's answer."""

from __future__ import annotations

import time

import pytest

from brookmq.spark.pipeline.showing import HEADINGS, show_status
from tests.spark.pipeline.test_display import query, status


def test_no_pipeline_ever(capsys: pytest.CaptureFixture[str]) -> None:
    show_status({"alive": False, "queries": []})
    assert "none has since it was started" in capsys.readouterr().out


def test_one_that_is_gone(capsys: pytest.CaptureFixture[str]) -> None:
    show_status({**status(query()).document(), "alive": False, "heard_at": time.time() - 20})
    assert "20 s ago" in capsys.readouterr().out


def test_lines_with_tabs(capsys: pytest.CaptureFixture[str]) -> None:
    told = status(query(matched=5), query("table/b", state="failed", message="a\tb"))
    show_status({**told.document(), "alive": True, "heard_at": time.time()})
    heading, first, second = capsys.readouterr().out.splitlines()
    assert heading.split("\t") == list(HEADINGS)
    assert dict(zip(HEADINGS, first.split("\t"), strict=True))["matched"] == "5"
    assert second.split("\t")[-1] == r"a\tb"


def test_a_table_in_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    show_status({**status(query()).document(), "alive": True, "heard_at": time.time()})
    output = capsys.readouterr().out
    assert "rule/a" in output
    assert "Spark local[2], local-1" in output
