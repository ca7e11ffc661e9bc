"""Real servers, installed from the registries.

Deselected unless asked for (``-m real``): it installs from PyPI and npm, with the clients as they are configured here, into a
temporary folder, and needs `git`, `node` and `npm`. Nine servers by default, in about a minute; all sixteen of
`test_provider_exports.py` with ``PLAYBILL_REAL_SERVERS=all`` in the environment.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from attrs import frozen

ALL_SERVERS = os.environ.get("PLAYBILL_REAL_SERVERS") == "all"

OLD_TOO = ["mcp-server-fetch"] if ALL_SERVERS else []
NODE_PACKAGES = [
    *(f"@modelcontextprotocol/server-{name}" for name in ("everything", "filesystem", "memory", "sequential-thinking")),
    "@notionhq/notion-mcp-server",
]
if ALL_SERVERS:
    NODE_PACKAGES += [
        "@playwright/mcp",
        "chrome-devtools-mcp",
        "@upstash/context7-mcp",
        "@modelcontextprotocol/server-github",
        "firecrawl-mcp",
        "tavily-mcp",
    ]


def run(*command: str | Path, cwd: Path) -> None:
    """Run an installer to its end, and show what it said when it fails."""
    parts = [str(part) for part in command]
    done = subprocess.run(parts, cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600)
    assert done.returncode == 0, f"{' '.join(parts)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"


@frozen
class Installed:
    """Where the servers are.

    Args:
        new: bin folder of an environment with mcp 2.x.
        old: bin folder of one with mcp 1.x.
        node: folder of the npm packages' commands.
        work: a folder for them to work in: a git repository with one commit, and a file.
    """

    new: Path
    old: Path
    node: Path
    work: Path


def _environment(folder: Path, *packages: str) -> Path:
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "--quiet", "--disable-pip-version-check"]
    run(*pip, "install", "--no-compile", *packages, cwd=folder.parent)
    return folder / "bin"


def _node_packages(folder: Path, *packages: str) -> Path:
    folder.mkdir()
    (folder / "package.json").write_text('{"private": true}\n', "utf-8")
    run("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", *packages, cwd=folder)
    return folder / "node_modules" / ".bin"


def _repository(folder: Path) -> Path:
    folder.mkdir()
    (folder / "hello.txt").write_text("hello from a file\n", "utf-8")
    run("git", "init", "--quiet", folder, cwd=folder)
    run("git", "add", "hello.txt", cwd=folder)
    who = ["-c", "user.name=A Tester", "-c", "user.email=tester@example.invalid", "-c", "commit.gpgsign=false"]
    run("git", *who, "commit", "--quiet", "--message", "The first scene", cwd=folder)
    return folder


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """All servers, installed once for all tests here."""
    for needed in ("git", "npm", "node"):
        assert shutil.which(needed), f"these tests need {needed}"
    root = tmp_path_factory.mktemp("real")
    with ThreadPoolExecutor() as side_by_side:
        new = side_by_side.submit(
            _environment,
            root / "new",
            "mcp-server-time",
            "mcp-server-git",
            "mcp-server-sqlite",
            "excel-mcp-server",
            "mcp>=2",
        )
        old = side_by_side.submit(_environment, root / "old", "mcp-server-sqlite", *OLD_TOO, "mcp<2")
        node = side_by_side.submit(_node_packages, root / "node", *NODE_PACKAGES)
    return Installed(new.result(), old.result(), node.result(), _repository(root / "work"))
