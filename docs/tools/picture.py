"""A screen as a picture: an SVG document that refers to nothing outside itself.

The text of the screen goes into the file as well, as its description: it is what tells whether the picture is still true, and
what somebody who cannot see the picture reads.
"""

from __future__ import annotations

import html
import io
import re

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

__all__ = ["Screen", "described", "picture", "text_of"]

Screen = list[Text]
"""Lines of a screen, each with its styles."""

_THEME = TerminalTheme(
    (22, 27, 34),
    (230, 237, 243),
    [
        (72, 79, 88), (255, 123, 114), (63, 185, 80), (210, 153, 34),
        (88, 166, 255), (188, 140, 255), (57, 197, 207), (177, 186, 196),
    ],
    [
        (110, 118, 129), (255, 161, 152), (86, 211, 100), (227, 179, 65),
        (121, 192, 255), (210, 168, 255), (86, 212, 221), (255, 255, 255),
    ],
)  # fmt: skip

# The fields in braces are those that `Console.export_svg` documents. No font is fetched: whatever monospaced one there is.
_SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""  # noqa: E501


def text_of(screen: Screen) -> str:
    """The letters of a screen, without blanks at the ends of lines and empty lines at the end."""
    return "\n".join(line.plain.rstrip() for line in screen).rstrip()


def picture(screen: Screen, *, title: str, columns: int) -> str:
    """A screen as an SVG document.

    Args:
        screen: normalised, so that the same program gives the same picture.
        title: what the window is called.
        columns: its width in characters.
    """
    console = Console(
        width=columns,
        record=True,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
    )
    for line in screen:
        console.print(line, no_wrap=True, crop=True, highlight=False)
    drawn = console.export_svg(title=title, theme=_THEME, code_format=_SVG, unique_id="playbill")
    description = f"<desc>{html.escape(text_of(screen), quote=False)}\n</desc>\n"
    return drawn.replace("<style>", f"<title>{html.escape(title)}</title>\n{description}<style>", 1)


def described(svg: str) -> str:
    """The text that a picture was made from.

    Args:
        svg: what `picture` gave.
    """
    found = re.search(r"<desc>(.*?)</desc>", svg, re.DOTALL)
    return html.unescape(found[1]).rstrip() if found else ""
