"""The plots of the committed results, as SVG: white behind, text as text, Playbill in one colour; by matplotlib."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.ticker
from tables import BOUND, KINDS, LOADS, NAMES, merged, ratio

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

Results = dict[str, Any]
OURS, OTHERS, FLOOR, INK, BAD = "#0f766e", "#b9c0c8", "#444b54", "#1f2933", "#c2410c"
HEAT = LinearSegmentedColormap.from_list("heat", ["#e3f4ef", "#fdf3d8", "#fbd5a5", "#f39c7b", "#d9534f"])
FAILED, ENDED = "#991b1b", "#6b7280"
plt.rcParams.update(
    {
        "svg.hashsalt": "playbill",  # the same numbers make the same file
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.sans-serif": ["Helvetica", "Arial", "DejaVu Sans"],
        "font.size": 10,
        "text.color": INK,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "figure.facecolor": "white",
    }
)


def plain(peer: str) -> str:
    """A peer's name without Markdown."""
    return NAMES[peer].replace("*", "").replace("`", "")


# ── faults and peers ─────────────────────────────────────────────────────────────────────────────────────────────────────


def heat(found: dict[str, Results]) -> Figure:
    """A row for each peer, a column for each kind of fault: the worse of the two ratios of p99, errors, and what came back."""
    cells = found["peers_isolation"]["cells"]
    kinds = [each for each in KINDS if any(cell["kind"] == each for cell in cells)]
    names = [each for each in NAMES if any(cell["peer"] == each for cell in cells)]
    figure, axes = plt.subplots(figsize=(1.42 * len(kinds) + 2.6, 0.56 * len(names) + 1.5))
    scale = LogNorm(1.0, 10.0, clip=True)
    for cell in cells:
        if cell["kind"] not in kinds or cell["peer"] not in names:
            continue
        x, y = kinds.index(cell["kind"]), names.index(cell["peer"])
        colour, first, second = faced(cell, scale)
        axes.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, facecolor=colour, edgecolor="none"))
        weight = "bold" if cell["peer"] == "playbill" else "normal"
        ink = "white" if colour in (FAILED, ENDED) else INK
        axes.text(x, y - 0.13 * bool(second), first, ha="center", va="center", fontsize=10, weight=weight, color=ink)
        axes.text(x, y + 0.24, second, ha="center", va="center", fontsize=7, color=ink)
    axes.set_xlim(-0.5, len(kinds) - 0.5)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xticks(
        range(len(kinds)), [KINDS[kind].replace(" in the ", "\nin the ").replace(" of ", "\nof ") for kind in kinds]
    )
    axes.set_yticks(range(len(names)), [plain(name) for name in names])
    for label, name in zip(axes.get_yticklabels(), names, strict=True):
        if name == "playbill":
            label.set(color=OURS, weight="bold")
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    figure.text(
        0.01,
        0.01,
        "3 of 10 servers misbehave. Large: p99 of calls of healthy servers, over the same machine merely as busy (the worse of "
        "two loads; 1 is no harm).\nSmall: when a bad server can be called again. Dark red: calls of healthy servers failed. "
        "Grey: the fault ended the whole group, or could not strike.",
        fontsize=7.5,
        va="bottom",
    )
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    return figure


def faced(cell: Results, scale: LogNorm) -> tuple[Any, str, str]:
    """Colour, and two lines of text."""
    if "arms" not in cell or "the group failed" in cell:
        return ENDED, "all ended" if "the group failed" in cell else "could not", ""
    if not cell["faults"]:
        return "#e5e7eb", "–", "did not strike"
    ratios = [each for load in LOADS if (each := ratio(cell, load)) is not None]
    worst = max(ratios) if ratios else None
    without = sum(load["errors"] for load in cell["arms"]["busy"]["loads"].values())
    first = "–" if worst is None else f"×{worst:.2f}" if worst < 10 else f"×{worst:.0f}"
    again = short(cell)
    calls = sum(load["calls"] for load in cell["arms"]["faulty"]["loads"].values())
    if (
        cell["errors"] > without or cell["errors"] > calls / 2
    ):  # what the fault broke for good fails in the busy arm too
        return FAILED, f"{cell['errors']:,} of {calls:,} failed", again
    return (HEAT(scale(max(1.0, (worst or 1.0) / BOUND))), first, again)


def short(cell: Results) -> str:
    """Whether a bad server came back, in a word or two."""
    words = str(cell["callable again"])
    if words.startswith("dead"):
        return "dead, hangs not"
    if words.startswith("not within"):
        return words.partition(" after")[0]
    if words.startswith("not by itself; when"):
        return "only by its user"
    if "no restart of one" in words:
        return "no restart of one"
    if cell["back ms"] and not words.startswith("not"):
        middle = sorted(cell["back ms"])[len(cell["back ms"]) // 2]
        return (
            "callable" if middle < 20 else f"back: {middle / 1000:.1f} s" if middle >= 950 else f"back: {middle:.0f} ms"
        )
    return {"not by itself": "does not come back", "no process lives between calls": "none lives"}.get(words, words)


def bars(found: dict[str, Results], title: str, keys: list[str], *, log: bool, least: bool = True) -> Figure:
    """Horizontal bars, a peer each, sorted by the last of the cells; the floor as a line."""
    cells = merged(found["peers"])
    worst = float("inf") if least else -1.0

    def value(peer: str, key: str) -> float | None:
        each = cells[peer].get(key)
        return float(each) if isinstance(each, (int, float)) else None

    def rank(peer: str) -> float:
        each = value(peer, keys[-1])
        return worst if each is None else each

    names = sorted((each for each in cells if each != "floor"), key=rank, reverse=not least)
    figure, every = plt.subplots(
        1, len(keys), figsize=(3.5 * len(keys) + 2.4, 0.36 * len(names) + 1.5), sharey=True, squeeze=False
    )
    for axes, key in zip(every[0], keys, strict=True):
        numbers = [value(peer, key) for peer in names]
        floor = value("floor", key) if "floor" in cells else None
        known = [each for each in [*numbers, floor] if each]
        start = min(known, default=1.0) / 3 if log else 0.0
        axes.barh(
            range(len(names)),
            [(each or start) - start for each in numbers],
            left=start,
            height=0.66,
            color=[OURS if peer == "playbill" else OTHERS for peer in names],
        )
        for at, each in enumerate(numbers):
            words = "could not" if each is None else f"{each:,.0f}"
            axes.annotate(
                words, (each or start, at), (4, 0), textcoords="offset points", va="center", fontsize=8.5,
                color=BAD if each is None else INK,
            )  # fmt: skip
        if log:
            axes.set_xscale("log")
            axes.set_xlim(start, max(known, default=1.0) * 3.2)
        else:
            axes.set_xlim(0, max(known, default=1.0) * 1.18 or 1)
            axes.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(nbins=6, integer=True))
        if floor:
            axes.axvline(floor, color=FLOOR, linewidth=1, linestyle=(0, (2, 2)))
            axes.annotate("raw pipes", (floor, -0.62), (3, 0), textcoords="offset points", fontsize=7.5, color=FLOOR)
        axes.set_xlabel(key + (" (log)" if log else ""))
        axes.tick_params(axis="y", length=0)
    every[0][0].set_yticks(range(len(names)), [plain(name) for name in names])
    for label, name in zip(every[0][0].get_yticklabels(), names, strict=True):
        if name == "playbill":
            label.set(color=OURS, weight="bold")
    every[0][0].set_ylim(len(names) - 0.4, -0.9)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, weight="bold")
    figure.tight_layout()
    return figure


# ── Playbill itself ──────────────────────────────────────────────────────────────────────────────────────────────────────


def isolation(found: dict[str, Results]) -> Figure:
    """Ratios of p99 of all cells: a strip for each kind of fault."""
    cells = found["isolation"]["cells"]
    kinds = [each for each in KINDS if any(cell["kind"] == each for cell in cells)]
    sizes = sorted({cell["servers"] for cell in cells})
    figure, every = plt.subplots(
        1, len(LOADS), figsize=(11, 0.45 * len(kinds) + 1.7), sharey=True, sharex=True, squeeze=False
    )
    marks = dict(zip(sizes, "osD^", strict=False))
    for axes, load in zip(every[0], LOADS, strict=True):
        for cell in cells:
            each = ratio(cell, load)
            share = cell["bad"] / cell["servers"]
            at = kinds.index(cell["kind"]) + (share - 0.25) * 0.9 * (cell["bad"] > 0)
            if each is not None:
                colour = OURS if each <= BOUND else BAD
                hollow = cell["servers"] == sizes[0]
                axes.scatter(
                    each, at, marker=marks.get(cell["servers"], "o"), s=34, edgecolors=colour,
                    facecolors="white" if hollow else colour, zorder=3,
                )  # fmt: skip
        axes.axvline(1.0, color=FLOOR, linewidth=1)
        axes.axvline(BOUND, color=BAD, linewidth=1, linestyle=(0, (3, 2)))
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(matplotlib.ticker.LogLocator(base=10, subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
        axes.xaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
        axes.set_title(load, fontsize=10, loc="left")
        axes.set_xlabel("p99 beside misbehaving servers, over merely as busy (log)")
        axes.grid(axis="y", color="#eceff2")
        axes.tick_params(axis="y", length=0)
    every[0][0].set_yticks(range(len(kinds)), [KINDS[kind] for kind in kinds])
    every[0][0].set_ylim(len(kinds) - 0.5, -0.5)
    handles = [
        plt.Line2D([], [], marker=mark, linestyle="", markeredgecolor=OURS, markersize=6,
                   markerfacecolor="white" if size == sizes[0] else OURS, label=f"{size} servers")
        for size, mark in marks.items()
    ]  # fmt: skip
    handles.append(plt.Line2D([], [], color=BAD, linestyle=(0, (3, 2)), label=f"aim: {BOUND}"))
    every[0][1].legend(handles=handles, frameon=False, fontsize=8, loc="lower right")
    figure.suptitle(
        "Healthy servers' calls in Playbill: within a kind, 10 %, 25 % and 50 % of the servers misbehave, from above",
        x=0.01, ha="left", fontsize=11, weight="bold",
    )  # fmt: skip
    figure.tight_layout()
    return figure


def scaling(found: dict[str, Results]) -> Figure:
    """Four small plots: what grows with servers and with tools."""
    results = found["scaling"]
    figure, every = plt.subplots(1, 4, figsize=(14, 3.1))
    for axes, (part, column, words) in zip(
        every,
        (
            ("servers", "ready ms", "ms until all servers are ready"),
            ("servers", "KB a server", "KB of the host for each server"),
            ("tools", "ready ms", "ms until all tools are there"),
            ("tools", "toggle ms", "ms from toggle to snapshot"),
        ),
        strict=True,
    ):
        rows = results[part]
        counts, values = [row[part] for row in rows], [row[column] for row in rows]
        axes.plot(counts, values, color=OURS, marker="o", markersize=5)
        for count, value in zip(counts, values, strict=True):
            axes.annotate(f"{value:,.3g}" if value < 100 else f"{value:,.0f}", (count, value), (0, 6),
                          textcoords="offset points", ha="center", fontsize=8)  # fmt: skip
        axes.set_xscale("log")
        axes.set_xticks(counts, [f"{count:,}" for count in counts], fontsize=8)
        axes.minorticks_off()
        if column != "KB a server":
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(matplotlib.ticker.LogLocator(base=10, subs=(1, 3)))
            axes.yaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:,g}"))
            axes.yaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
            axes.set_ylim(min(values) / 2, max(values) * 3)
        else:
            axes.set_ylim(0, max(values) * 1.25)
        axes.set_xlabel(f"{part} (log)")
        axes.set_title(words + (" (log)" if column != "KB a server" else ""), fontsize=9.5, loc="left")
    figure.tight_layout()
    return figure


FIGURES: dict[str, Callable[[dict[str, Results]], Figure]] = {
    "front": heat,
    "isolation": isolation,
    "connect": lambda found: bars(
        found,
        "From nothing to the tools of all servers",
        ["connect + list 1, ms", "connect + list 10, ms", "connect + list 40, ms"],
        log=False,
    ),
    "calls": lambda found: bars(found, "Calls", ["calls a second, 16 at once", "call round trip, µs"], log=True),
    "leftovers": lambda found: bars(
        found,
        "Processes left behind, of 3 servers of which one refuses to die and has a child",
        ["processes left after close", "processes left after kill -9 of the program"],
        log=False,
    ),
    "scaling": scaling,
}


def draw(name: str, found: dict[str, Results], file: Path, made: str, png: Path | None = None) -> None:
    """Draw one.

    Args:
        name: a key of `FIGURES`.
        found: the results, by name.
        file: where to.
        made: what the file says of where it comes from.
        png: a folder for a picture of the same, to look at.
    """
    figure = FIGURES[name](found)
    figure.savefig(file, format="svg", metadata={"Date": None, "Description": made})
    if png is not None:
        png.mkdir(parents=True, exist_ok=True)
        figure.savefig(png / f"{name}.png", format="png", dpi=110)
    plt.close(figure)
