"""Draws a state machine as an SVG picture: boxes where the machine says, and bowed arrows between them.

Nothing is laid out by itself, so that the same machine always gives the same bytes.
"""

from __future__ import annotations

import math
from html import escape

from .states import Edge, Machine

__all__ = ["draw"]

_WIDTH, _HEIGHT = 116, 38  # of a box
_STEP_X, _STEP_Y = 190, 110  # between the places
_MARGIN = 40
_STYLE = (
    "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#1f2328;text-anchor:middle}"
    ".l{font-size:11px;fill:#57606a;paint-order:stroke;stroke:#fff;stroke-width:4px;stroke-linejoin:round}"
    ".b{fill:#ddf4ff;stroke:#0969da;stroke-width:1.5}.e{fill:#f6f8fa;stroke:#6e7781;stroke-width:1.5}"
    ".w{fill:none;stroke:#6e7781;stroke-width:1.4;marker-end:url(#a)}"
)


def _centre(place: tuple[float, float]) -> tuple[float, float]:
    return _MARGIN + _WIDTH / 2 + place[0] * _STEP_X, _MARGIN + _HEIGHT / 2 + place[1] * _STEP_Y


def _border(at: tuple[float, float], towards: tuple[float, float]) -> tuple[float, float]:
    """Where a line from the middle of a box to a point leaves the box."""
    dx, dy = towards[0] - at[0], towards[1] - at[1]
    scale = min(
        (_WIDTH / 2 + 3) / abs(dx) if dx else math.inf,
        (_HEIGHT / 2 + 3) / abs(dy) if dy else math.inf,
    )
    return at[0] + dx * scale, at[1] + dy * scale


def _arrow(machine: Machine, edge: Edge) -> tuple[str, str]:
    """An arrow, and its label or an empty text."""
    start, end = _centre(machine.places[edge.source]), _centre(machine.places[edge.target])
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = math.hypot(dx, dy)
    both = any((other.source, other.target) == (edge.target, edge.source) for other in machine.edges)
    bow = 34 if both else 14
    # To the right of its own direction, so that the way back goes on the other side.
    bend = (start[0] + dx / 2 - dy / length * bow, start[1] + dy / 2 + dx / length * bow)
    (x1, y1), (x2, y2) = _border(start, bend), _border(end, bend)
    path = f'<path class="w" d="M{x1:.1f} {y1:.1f}Q{bend[0]:.1f} {bend[1]:.1f} {x2:.1f} {y2:.1f}"/>'
    if not edge.label:
        return path, ""
    x, y = (x1 + 2 * bend[0] + x2) / 4, (y1 + 2 * bend[1] + y2) / 4
    return path, f'<text class="l" x="{x:.1f}" y="{y:.1f}">{escape(edge.label)}</text>'


def draw(machine: Machine) -> str:
    """The picture.

    Args:
        machine: what to draw.

    Returns:
        An SVG document that refers to nothing outside itself.
    """
    right = max(x for x, _ in map(_centre, machine.places.values())) + _WIDTH / 2 + _MARGIN
    below = max(y for _, y in map(_centre, machine.places.values())) + _HEIGHT / 2 + _MARGIN
    boxes = []
    for state, place in machine.places.items():
        x, y = _centre(place)
        kind = "e" if state in machine.ends else "b"
        boxes.append(
            f'<rect class="{kind}" x="{x - _WIDTH / 2:.1f}" y="{y - _HEIGHT / 2:.1f}" width="{_WIDTH}" height="{_HEIGHT}"'
            ' rx="8"/>'
            f'\n<text x="{x:.1f}" y="{y + 5:.1f}">{escape(state)}</text>'
        )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {right:.0f} {below:.0f}"'
        f' width="{right:.0f}" height="{below:.0f}">'
        f"\n<title>{escape(machine.name)}</title>\n<style>{_STYLE}</style>"
        '\n<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#6e7781"/></marker></defs>'
        f'\n<rect width="{right:.0f}" height="{below:.0f}" rx="10" fill="#ffffff"/>'
    )
    arrows, labels = zip(*(_arrow(machine, edge) for edge in machine.edges), strict=True)
    # Arrows above boxes: what runs behind a box would seem to lead to it.
    return "\n".join((head, *boxes, *arrows, *filter(None, labels), "</svg>\n"))
