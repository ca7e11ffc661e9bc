"""The committed results as tables, in `benchmarks/README.md` and on the front page, and as plots: one command renders all.

    python benchmarks/report.py            # after a run; the plots need matplotlib (extra ``bench``)
    python benchmarks/report.py --check    # is what stands there made of the committed results? needs nothing but Python

Tables stand between ``<!-- results: NAME -->`` and ``<!-- end of results: NAME -->``. A plot says of which results it was made,
by their digest, so that the check needs no matplotlib.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from record import RESULTS
from tables import SECTIONS, front

HERE = Path(__file__).resolve().parent
DOCUMENTS = (HERE / "README.md", HERE.parent / "README.md")
PLOTS = {
    "front": ("peers_isolation",),
    "isolation": ("isolation",),
    "connect": ("peers",),
    "calls": ("peers",),
    "leftovers": ("peers",),
    "scaling": ("scaling",),
}
"""File name → the results it is made of; how is in `figures.py`."""


def results(folder: Path = RESULTS) -> dict[str, Any]:
    """What was measured, by name."""
    return {name: json.loads(file.read_text()) for name in SECTIONS if (file := folder / f"{name}.json").exists()}


def digest(names: tuple[str, ...], folder: Path = RESULTS) -> str:
    """Of these results."""
    whole = hashlib.sha256()
    for name in names:
        whole.update((folder / f"{name}.json").read_bytes())
    return whole.hexdigest()[:16]


def sections(found: dict[str, Any]) -> dict[str, str]:
    """The text of each section; those without results say so."""
    texts = {
        name: make(found[name]) if name in found else "No results are committed yet." for name, make in SECTIONS.items()
    }
    texts["front"] = front(found) if "peers" in found else "No results are committed yet."
    for name, needed in PLOTS.items():
        there = all(each in found for each in needed)
        texts[f"plot {name}"] = f"![{name}](results/{name}.svg)" if there else ""
    texts["plot front page"] = FRONT if "peers_isolation" in found else ""
    return texts


FRONT = (
    "![What faults of some servers do to calls of the others: Playbill and others, under seven kinds of fault]"
    "(benchmarks/results/front.svg)"
)


def rendered(text: str, texts: dict[str, str]) -> str:
    """A document with its sections made anew.

    Raises:
        SystemExit: a section begins that is not known, or does not end.
    """
    parts = text.split("<!-- results: ")
    done = [parts[0]]
    for part in parts[1:]:
        name = part.partition(" -->")[0]
        end = f"<!-- end of results: {name} -->"
        if name not in texts or end not in part:
            sys.exit(f"the section {name!r} is not known, or does not end")
        body = f"\n{texts[name]}\n" if texts[name] else "\n"
        done.append(f"{name} -->{body}{end}{part.partition(end)[2]}")
    return "<!-- results: ".join(done)


def stale(folder: Path = RESULTS) -> list[str]:
    """What is not made of the committed results: documents and plots, in a line each."""
    found = results(folder)
    texts = sections(found)
    wrong = [
        f"{document.relative_to(HERE.parent)}: its tables are not those of the committed results"
        for document in DOCUMENTS
        if rendered(document.read_text(), texts) != document.read_text()
    ]
    for name, needed in PLOTS.items():
        file = folder / f"{name}.svg"
        if all(each in found for each in needed):
            if not file.exists() or f"made of {digest(needed, folder)}" not in file.read_text():
                wrong.append(f"{name}.svg: is not made of the committed results")
        elif file.exists():
            wrong.append(f"{name}.svg: there are no results of which it could be made")
    return wrong


def main() -> None:
    """Write all, or say what is not up to date."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--png", type=Path, help="write the plots there too, as pictures to look at")
    given = parser.parse_args()
    if given.check:
        wrong = stale()
        print("\n".join(wrong or ["tables and plots are those of the committed results"]))
        sys.exit(1 if wrong else 0)
    found = results()
    texts = sections(found)
    for document in DOCUMENTS:
        document.write_text(rendered(document.read_text(), texts))
    try:
        from figures import draw
    except ImportError:
        sys.exit("tables are written; no plots: matplotlib is not installed (pip install 'playbill[bench]')")
    for name, needed in PLOTS.items():
        if all(each in found for each in needed):
            draw(name, found, RESULTS / f"{name}.svg", f"made of {digest(needed)}", given.png)
            print(f"{name}.svg", flush=True)


if __name__ == "__main__":
    main()
