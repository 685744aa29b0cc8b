"""The tables in docs/performance.md are those of the stored results."""

from __future__ import annotations

import pytest
from bench.results import RESULTS, Results

from bench import documentation


def test_the_page_has_what_the_results_give() -> None:
    page = documentation.PAGE.read_text()
    assert page == documentation.inserted(page, documentation.section(Results.load(RESULTS)))


def test_a_changed_figure_would_be_noticed() -> None:
    page = documentation.PAGE.read_text()
    results = Results.load(RESULTS)
    results.series["pairs-0"].reports["brookmq"] = [{"messages_per_s": 1.0, "broker_cpu_us_per_message": 99.0}]
    assert page != documentation.inserted(page, documentation.section(results))


def test_a_page_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="markers"):
        documentation.inserted("nothing here", "text")
