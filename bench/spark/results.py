"""The results file of the Spark figures: every round of every part, with the machine and the command it comes from.

Medians and ratios are not stored: whoever reads the file works them out, so no table can differ from the rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

from bench.results_file import read_results, write_results

RESULTS: Final = Path(__file__).parent.parent / "results" / "spark.json"

Figures = dict[str, float]
Say = Callable[[str], None]


@dataclass(slots=True)
class Part:
    """One comparison; ``load_before`` is the machine's load average when the run began."""

    date: str
    command: str
    versions: dict[str, str]
    load_before: float
    rounds: list[Figures] = field(default_factory=list)

    def figure(self, name: str) -> float | None:
        """The median over the rounds."""
        values = [one[name] for one in self.rounds if name in one]
        return median(values) if values else None

    def ratio(self, name: str, to: str) -> float | None:
        """The median of the rounds' own ratios: the two of a round had the same neighbours."""
        values = [one[name] / one[to] for one in self.rounds if name in one and one.get(to)]
        return median(values) if values else None


@dataclass(slots=True)
class Results:
    machine: dict[str, str]
    parts: dict[str, Part] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        write_results(asdict(self), path)

    @classmethod
    def load(cls, path: Path) -> Results:
        content = read_results(path)
        return cls(content["machine"], {key: Part(**value) for key, value in content["parts"].items()})
