"""The plots of `run.py`: horizontal bars, a peer each, the floor as a line; SVG, by matplotlib (extra ``bench``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

PLOTS = {
    "connect": ("connect + list, ms", ["connect + list 1, ms", "connect + list 10, ms", "connect + list 40, ms"]),
    "call": ("call round trip, µs", ["call round trip, µs"]),
    "throughput": ("calls a second, 16 at once", ["calls a second, 16 at once"]),
    "leftovers": (
        "processes left behind",
        ["processes left after close", "processes left after kill -9 of the program"],
    ),
}
"""File name → title, and the cells in it."""

OURS, OTHERS = "#1f6f8b", "#b8b8b8"


def draw(rows: dict[str, dict[str, dict[str, Any]]], peers: list[str], folder: Path) -> str:
    """Draw what there is.

    Args:
        rows: row → peer → cell → value, as in results.json.
        peers: in this order, from the top.
        folder: where the files are written.

    Returns:
        One line: what was drawn, or why nothing was.
    """
    try:
        import matplotlib
    except ImportError:
        return "no plots: matplotlib is not installed (pip install 'playbill[bench]')"
    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "playbill"  # the same numbers make the same file
    cells: dict[str, dict[str, Any]] = {peer: {} for peer in peers}
    for by_peer in rows.values():
        for peer, found in by_peer.items():
            cells[peer] |= found
    drawn = []
    for name, (title, keys) in PLOTS.items():
        keys = [key for key in keys if any(isinstance(cells[peer].get(key), (int, float)) for peer in peers)]
        if not keys:
            continue
        figure, axes = plt.subplots(
            1, len(keys), figsize=(4.5 * len(keys) + 1.5, 0.4 * len(peers) + 1), sharey=True, squeeze=False
        )
        for axis, key in zip(axes[0], keys, strict=True):
            values = [cells[peer].get(key) for peer in peers]
            numbers = [value if isinstance(value, (int, float)) else 0 for value in values]
            axis.barh(peers, numbers, color=[OURS if peer == "playbill" else OTHERS for peer in peers])
            for at, value in enumerate(values):
                words = f" {value:,.0f}" if isinstance(value, (int, float)) else " could not"
                axis.text(numbers[at], at, words, va="center", fontsize=8)
            if "floor" in peers and numbers[peers.index("floor")]:
                axis.axvline(numbers[peers.index("floor")], color="#444444", linewidth=0.8, linestyle=":")
            axis.set_title(key, fontsize=9)
            axis.spines[["top", "right"]].set_visible(False)
            axis.margins(x=0.2)
        axes[0][0].invert_yaxis()
        figure.suptitle(title, fontsize=10)
        figure.tight_layout()
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        plt.close(figure)
        drawn.append(f"{name}.svg")
    return f"plots: {', '.join(drawn)}" if drawn else "no plots: nothing in them was measured"
