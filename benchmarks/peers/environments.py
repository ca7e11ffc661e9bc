"""An environment of its own for each peer, so that none of them decides which versions another one gets.

    python benchmarks/peers/environments.py [--where .venv-peers] [NAME …]

Made with the Python that runs this, once; an environment that was made of the same requirement is left as it is. The
versions are pinned: a row of the results is about them. Playbill itself, and the floor, run with that Python too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import venv
from pathlib import Path

WHERE = Path(__file__).resolve().parents[2] / ".venv-peers"

REQUIREMENTS = {
    "playbill": "",
    "mcp": "mcp==2.3.0",
    "fastmcp": "fastmcp==4.2.3",
    "langchain-mcp-adapters": "langchain-mcp-adapters==0.3.2",
    "openai-agents": "openai-agents==0.24.0",
    "pydantic-ai": "pydantic-ai-slim[mcp]==2.68.0",
    "google-adk": "google-adk[mcp]==2.13.0",
}
"""By the name of the environment, as pip takes them; empty for this one."""


def python_of(name: str, where: Path = WHERE) -> Path:
    """The interpreter of an environment, whether or not it was made."""
    if not REQUIREMENTS[name]:
        return Path(sys.executable)
    return where / name / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def make(name: str, where: Path = WHERE) -> str | None:
    """Make one, unless it is there.

    Args:
        name: a key of `REQUIREMENTS`.
        where: the folder of all of them.

    Returns:
        None, or in one line why it could not be made.
    """
    requirement = REQUIREMENTS[name]
    folder, done = where / name, where / name / "made-of.txt"
    if not requirement or (done.exists() and done.read_text() == requirement):
        return None
    if not python_of(name, where).exists():
        venv.create(folder, with_pip=True)
    install = [
        str(python_of(name, where)),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        requirement,
    ]
    ran = subprocess.run(install, capture_output=True, text=True, check=False)
    if ran.returncode:
        said = [line for line in ran.stderr.splitlines() if line.startswith("ERROR")] or ran.stderr.splitlines()
        return f"{requirement} could not be installed: {said[-1] if said else f'exit code {ran.returncode}'}"
    done.write_text(requirement)
    return None


def versions(name: str, where: Path = WHERE) -> dict[str, str]:
    """What is installed in one, by distribution name; empty when it was not made."""
    python = python_of(name, where)
    if not python.exists():
        return {}
    show = "import importlib.metadata as m, json; print(json.dumps({d.name: d.version for d in m.distributions()}))"
    ran = subprocess.run([str(python), "-c", show], capture_output=True, text=True, check=False)
    found: dict[str, str] = json.loads(ran.stdout) if ran.returncode == 0 else {}
    return found


def main() -> None:
    """Make those that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(REQUIREMENTS)}; none: all")
    parser.add_argument("--where", type=Path, default=WHERE, help="their folder")
    given = parser.parse_args()
    if unknown := [name for name in given.names if name not in REQUIREMENTS]:
        parser.error(f"no such peer: {', '.join(unknown)}")
    bad = 0
    for name in given.names or REQUIREMENTS:
        trouble = make(name, given.where)
        print(f"{name:<24} {trouble or 'ready'}", flush=True)
        bad += trouble is not None
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
