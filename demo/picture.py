"""The picture: all devices on a plan of their campus, and beside it how the messages went through the pipeline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from matplotlib import rc_context
from matplotlib.collections import CircleCollection, PatchCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Patch, Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from demo.fleet import DOOR, ENERGY, HOT_CELSIUS, KINDS, ROOMS_PER_BUILDING, TEMPERATURE
from demo.node_api import WINDOW_S
from demo.results import DeviceResult, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NIGHT: Final = "#0c1222"
PANEL: Final = "#141c30"
LINE: Final = "#26314c"
TEXT: Final = "#e8ecf6"
MUTED: Final = "#93a0bd"
GOOD: Final = "#5fd38d"
BAD: Final = "#ff5d5d"
COLOURS: Final = {TEMPERATURE: "#ff9f5a", ENERGY: "#41c9e2", DOOR: "#b794f6"}
NAMES: Final = {TEMPERATURE: "thermometers", ENERGY: "energy meters", DOOR: "doors"}
HEAT: Final = LinearSegmentedColormap.from_list(
    "heat", ["#1d3f7a", "#2f7fb8", "#79c7b4", "#f4e285", "#f2934c", "#d7263d"]
)
SIZE_INCHES: Final = (16, 9.4)
DPI: Final = 120
TILE: Final = 0.90  # of a room's width
KILOWATTS_FULL: Final = 4.5  # a circle that fills its room
TABLES: Final = "table/"
STYLE: Final[dict[Any, Any]] = {
    "font.size": 10, "text.color": TEXT, "axes.facecolor": PANEL, "axes.edgecolor": LINE, "axes.labelcolor": MUTED,
    "xtick.color": MUTED, "ytick.color": MUTED, "axes.titlecolor": TEXT, "axes.titlesize": 11,
}  # fmt: skip


def draw(results: Results, file: Path) -> None:
    """Writes the picture as PNG."""
    with rc_context(STYLE):
        figure = Figure(figsize=SIZE_INCHES, facecolor=NIGHT)
        _header(figure, results)
        _plan(figure.add_axes((0.025, 0.125, 0.595, 0.665)), results.devices)
        _plan_legend(figure, results)
        _messages(figure.add_axes((0.680, 0.600, 0.270, 0.155)), results)
        _windows(figure.add_axes((0.680, 0.352, 0.270, 0.155)), results)
        _lag(figure.add_axes((0.680, 0.104, 0.270, 0.155)), results)
        figure.savefig(file, dpi=DPI, facecolor=NIGHT)


def _header(figure: Figure, results: Results) -> None:
    figure.text(0.025, 0.952, "BrookMQ", fontsize=23, fontweight="bold", va="center")
    path = "devices  →  MQTT  →  journal  →  Spark  →  tables, rules, and back to MQTT"
    figure.text(0.137, 0.949, path, fontsize=13, color=MUTED, va="center")
    seconds = max((len(counts) for counts in results.seconds.values()), default=0)
    lag_max = max((max(sample.lag.values(), default=0) for sample in results.samples), default=0)
    right = not results.problems
    tiles = [
        (f"{len(results.devices):,}", "devices in the tables", TEXT),
        (f"{results.messages:,}", "readings sent", TEXT),
        (
            "each once" if right else f"{len(results.problems)} wrong",
            "in the tables, one by one",
            GOOD if right else BAD,
        ),
        (f"{results.messages / max(1, seconds):,.0f} /s", "readings per second", TEXT),
        (f"{results.alarms:,}", "alarms, back by MQTT", TEXT),
        (f"{results.alarm_p50_s:.2f} s", "device to alarm, median", TEXT),
        (f"{lag_max:,}", "messages, the largest lag", TEXT),
    ]
    width = 0.955 / len(tiles)
    for number, (figures, caption, colour) in enumerate(tiles):
        x = 0.025 + number * width
        box = FancyBboxPatch(
            (x + 0.001, 0.838), width - 0.010, 0.071, boxstyle="round,pad=0,rounding_size=0.006", facecolor=PANEL,
            edgecolor=LINE, transform=figure.transFigure, mutation_aspect=SIZE_INCHES[0] / SIZE_INCHES[1],
        )  # fmt: skip
        figure.add_artist(box)
        figure.text(x + 0.010, 0.884, figures, fontsize=17, fontweight="bold", color=colour, va="center")
        figure.text(x + 0.010, 0.854, caption, fontsize=8.2, color=MUTED, va="center")


# The plan of the campus


def _plan(axes: Axes, devices: Sequence[DeviceResult]) -> None:
    columns = max((one.x for one in devices), default=0) + 1
    rows = max((one.y for one in devices), default=0) + 1
    axes.set_xlim(-0.5, columns - 0.5)
    axes.set_ylim(-0.5, rows - 0.5)
    axes.set_aspect("equal", anchor="W")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    axes.set_facecolor(NIGHT)
    axes.set_title("Every device with its last reading", loc="left", pad=8)
    by_kind = {kind: [one for one in devices if one.kind == kind] for kind in KINDS}
    _thermometers(axes, by_kind[TEMPERATURE])
    _meters(axes, by_kind[ENERGY])
    _doors(axes, by_kind[DOOR])
    for edge in range(ROOMS_PER_BUILDING, columns, ROOMS_PER_BUILDING):
        axes.axvline(edge - 0.5, color=MUTED, linewidth=0.8, linestyle=(0, (2, 3)))
    for start in range(0, columns, ROOMS_PER_BUILDING):
        middle = (start + min(start + ROOMS_PER_BUILDING, columns) - 1) / 2
        number = start // ROOMS_PER_BUILDING + 1
        axes.text(middle, -0.85, f"building {number}", color=MUTED, fontsize=9, ha="center", va="top")


def _tiles(devices: Sequence[DeviceResult], size: float = TILE) -> list[Rectangle]:
    return [Rectangle((one.x - size / 2, one.y - size / 2), size, size) for one in devices]


def _scale(devices: Sequence[DeviceResult]) -> Normalize:
    values = [one.value for one in devices if one.kind == TEMPERATURE]
    return Normalize(math.floor(min(values, default=15)), math.ceil(max(values, default=30)))


def _thermometers(axes: Axes, devices: Sequence[DeviceResult]) -> None:
    hot = [one.value > HOT_CELSIUS for one in devices]
    tiles = PatchCollection(_tiles(devices), cmap=HEAT, norm=_scale(devices))
    tiles.set_array(np.array([one.value for one in devices]))
    tiles.set_edgecolor(["white" if one else "none" for one in hot])
    tiles.set_linewidth([1.1 if one else 0 for one in hot])
    axes.add_collection(tiles)


def _meters(axes: Axes, devices: Sequence[DeviceResult]) -> None:
    axes.add_collection(PatchCollection(_tiles(devices), facecolor=PANEL, linewidth=0))
    points_per_room = axes.get_window_extent().width / axes.figure.dpi * 72 / (axes.get_xlim()[1] - axes.get_xlim()[0])
    diameters = [TILE * points_per_room * math.sqrt(min(1.0, one.value / KILOWATTS_FULL)) for one in devices]
    circles = CircleCollection(
        [math.pi / 4 * max(1.5, diameter) ** 2 for diameter in diameters],
        offsets=[(one.x, one.y) for one in devices],
        transOffset=axes.transData,
        facecolor=COLOURS[ENERGY],
        linewidth=0,
    )
    axes.add_collection(circles)


def _doors(axes: Axes, devices: Sequence[DeviceResult]) -> None:
    opened = [one for one in devices if one.value]
    closed = [one for one in devices if not one.value]
    axes.add_collection(PatchCollection(_tiles(closed), facecolor="#352a55", linewidth=0))
    axes.add_collection(PatchCollection(_tiles(opened, 0.72), facecolor="none", edgecolor=COLOURS[DOOR], linewidth=1.6))


def _plan_legend(figure: Figure, results: Results) -> None:
    scale = _scale(results.devices)
    low, high = scale.vmin or 0.0, scale.vmax or 1.0
    bar = figure.add_axes((0.025, 0.060, 0.14, 0.014))
    bar.imshow(np.linspace(0, 1, 256)[None, :], aspect="auto", cmap=HEAT, extent=(low, high, 0, 1))
    bar.set_yticks([])
    bar.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    bar.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}°"))
    bar.tick_params(length=0, pad=3, labelsize=8.5)
    bar.spines[:].set_visible(False)
    counted = {kind: sum(one.kind == kind for one in results.devices) for kind in KINDS}
    handles = [
        Patch(facecolor="#f2934c", label=f"{counted[TEMPERATURE]:,} thermometers"),
        Patch(facecolor="#d7263d", edgecolor="white", label=f"over {HOT_CELSIUS:g} °C: alarm"),
        Line2D(
            [],
            [],
            marker="o",
            linestyle="",
            color=COLOURS[ENERGY],
            label=f"{counted[ENERGY]:,} energy meters, area: kW",
        ),
        Patch(facecolor="none", edgecolor=COLOURS[DOOR], linewidth=1.6, label=f"{counted[DOOR]:,} doors: open"),
        Patch(facecolor="#352a55", label="closed"),
    ]
    figure.legend(
        handles=handles, loc="center left", bbox_to_anchor=(0.175, 0.060), ncols=len(handles), frameon=False,
        labelcolor=MUTED, fontsize=8.8, handlelength=1.1, columnspacing=1.4, handletextpad=0.5,
    )  # fmt: skip


# The panels at the right


def _panel(axes: Axes, title: str, caption: str) -> None:
    axes.set_title(title, loc="left", pad=18)
    axes.text(0, 1.045, caption, transform=axes.transAxes, color=MUTED, fontsize=8.6)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(axis="y", color=LINE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelsize=8.5)
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_major_locator(MaxNLocator(7, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} s"))


def _messages(axes: Axes, results: Results) -> None:
    _panel(axes, "Readings per second", "from the table silver")
    length = max((len(counts) for counts in results.seconds.values()), default=0)
    order = [kind for kind in (TEMPERATURE, ENERGY, DOOR) if kind in results.seconds]
    axes.stackplot(
        range(length), *(results.seconds[kind] for kind in order), colors=[COLOURS[kind] for kind in order],
        labels=[NAMES[kind] for kind in order], alpha=0.85, linewidth=0,
    )  # fmt: skip
    axes.set_xlim(0, max(1, length - 1))
    axes.set_ylim(0)
    axes.legend(
        loc="lower right", bbox_to_anchor=(1.02, 0.985), ncols=3, frameon=False, labelcolor=MUTED, fontsize=8.2,
        handlelength=0.9, handletextpad=0.4, columnspacing=1.0,
    )  # fmt: skip


def _windows(axes: Axes, results: Results) -> None:
    _panel(axes, f"Windows of {WINDOW_S} seconds", "a rule in SQL: °C lowest, mean and highest; mean kW")
    by_kind = {kind: [one for one in results.windows if one.kind == kind] for kind in KINDS}
    for one in by_kind[TEMPERATURE]:
        span = (one.start_s + 0.04 * WINDOW_S, one.start_s + 0.96 * WINDOW_S)
        axes.fill_between(span, one.low, one.high, color=COLOURS[TEMPERATURE], alpha=0.22, linewidth=0)
        axes.plot(span, (one.mean, one.mean), color=COLOURS[TEMPERATURE], linewidth=2.2)
    energy = axes.twinx()
    _panel_right(energy)
    energy.plot(
        [one.start_s + WINDOW_S / 2 for one in by_kind[ENERGY]], [one.mean for one in by_kind[ENERGY]],
        color=COLOURS[ENERGY], marker="o", markersize=5.5, markeredgecolor=PANEL, linewidth=1.8,
    )  # fmt: skip
    energy.set_ylim(0, 1.25 * max((one.mean for one in by_kind[ENERGY]), default=1))
    axes.set_xlim(min((one.start_s for one in results.windows), default=0))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} °C"))
    axes.tick_params(axis="y", labelcolor=COLOURS[TEMPERATURE])


def _panel_right(axes: Axes) -> None:
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, labelsize=8.5, labelcolor=COLOURS[ENERGY])
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} kW"))


def _lag(axes: Axes, results: Results) -> None:
    _panel(axes, "Lag", "messages that tables and rules have not read yet")
    at_s = [sample.at_s for sample in results.samples]
    names = sorted({name for sample in results.samples for name in sample.lag})
    shades = {True: iter(("#5b6f9e", "#7d91bf", "#a3b3d9", "#c9d4ee")), False: iter((GOOD, "#f4e285", "#f2934c", BAD))}
    lines = []
    for name in names:
        lags = [sample.lag.get(name, 0) for sample in results.samples]
        table = name.startswith(TABLES)
        colour = next(shades[table], MUTED)
        lines += axes.plot(at_s, lags, color=colour, linewidth=1.0 if table else 1.8, label=name.replace("/", " "))
    axes.set_xlim(0, max(at_s, default=1))
    axes.set_ylim(0)
    axes.legend(
        handles=lines, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=max(1, math.ceil(len(names) / 2)),
        frameon=False, labelcolor=MUTED, fontsize=8, handlelength=1.2, handletextpad=0.5, columnspacing=1.2,
    )  # fmt: skip
