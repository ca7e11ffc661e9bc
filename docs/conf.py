"""How Sphinx builds the documentation: `python -m sphinx -W --keep-going docs FOLDER`. Nothing is fetched while it does.

The order of the pages is here, not in a page: so the pages stay plain Markdown, which is read in the repository as well.
"""

from __future__ import annotations

import os
import re
import sys
from importlib.metadata import version as _version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
NAVIGATION = {
    "Start": ["quickstart", "embedding", "picker", "cli"],
    "Guides": [
        *(
            "config",
            "catalog",
            "native-tools",
            "providers",
            "profiles",
            "remote",
            "login",
            "features",
            "tracing",
            "testing",
        ),
    ],
    "How it works": ["architecture", "supervision", "processes"],
    "Reference": ["reference/config", "reference/cli", "reference/api", "reference/phases"],
    "About": ["about/contributing", "about/invariants", "about/benchmarks", "about/benchmark-notes", "about/changelog"],
}
"""Caption → pages, in the order of the sidebar. A page that no caption has fails the build."""
OUTSIDE = {
    "README.md": "index",
    "CONTRIBUTING.md": "about/contributing",
    "CHANGELOG.md": "about/changelog",
    "tests/INVARIANTS.md": "about/invariants",
    "benchmarks/README.md": "about/benchmarks",
    "benchmarks/NOTES.md": "about/benchmark-notes",
}
"""Pages whose text is elsewhere in the repository."""

NOT_CALLED = {"playbill.actors.Host", "playbill.actors.View", "playbill.actors.Catalog", "playbill.actors.Preview"}
"""Classes that no program makes an object of: how they are called is nobody's business."""

project = "Playbill"
author = "The Playbill developers"
project_copyright = author
version = release = _version("playbill")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "tools", "pictures"]
myst_heading_anchors = 3
myst_enable_extensions = ["deflist"]
suppress_warnings = ["myst.header"]

autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
napoleon_use_rtype = False
napoleon_use_ivar = True
add_module_names = False
toc_object_entries = False

html_theme = "furo"
html_title = "Playbill"
html_copy_source = False
html_show_sourcelink = False
pygments_style = "default"
smartquotes = False  # what is typed has straight quotes and two hyphens


def _navigation() -> str:
    parts = []
    for caption, pages in NAVIGATION.items():
        parts.append("```{toctree}\n:hidden:\n:caption: " + caption + "\n\n" + "\n".join(pages) + "\n```\n")
    return "\n".join(parts)


def _relinked(text: str, place: Path, page: str) -> str:
    """A text whose links hold in the site: it stands elsewhere there, and so may what it links to."""

    def link(found: re.Match[str]) -> str:
        target, anchor = found[1], found[2] or ""
        if "://" in target or not target:
            return found[0]
        path = os.path.relpath(place / target, ROOT).replace(os.sep, "/")
        path = f"docs/{OUTSIDE[path]}.md" if path in OUTSIDE else path
        return f"]({os.path.relpath(ROOT / path, (HERE / page).parent).replace(os.sep, '/')}{anchor})"

    return re.sub(r"\]\(([^)#\s]*)(#[^)\s]*)?\)", link, text)


def _read(app: Any, name: str, source: list[str]) -> None:
    outside = next((path for path, page in OUTSIDE.items() if page == name and name != "index"), None)
    place = (ROOT / outside).parent if outside else (HERE / name).parent
    source[0] = _relinked((ROOT / outside).read_text("utf-8") if outside else source[0], place, name)
    if name == "index":
        source[0] += f"\n{_navigation()}"


def _signed(
    app: Any, what: str, name: str, thing: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None] | None:
    if what != "class" or not isinstance(thing, type):
        return None
    if name in NOT_CALLED:
        return "", None
    sys.path.insert(0, str(HERE))
    try:
        from tools.fields import signature as written
    finally:
        sys.path.remove(str(HERE))
    found = written(thing)
    return None if found is None else (found, None)


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.connect("source-read", _read)
    app.connect("autodoc-process-signature", _signed)
