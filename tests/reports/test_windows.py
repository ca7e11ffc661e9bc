"""Reports from Windows, as far as they are about any system: commands that cannot be run, arguments that need care."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from playbill.actors import open_host
from playbill.supervision import Backoff

from .conftest import PATIENCE, SMALL, Project, said, until

QUICK = Backoff(base=0.01, max=0.1, reset_after=30.0)
ARGS = ["a b", "a&b", "a|b", "^a^", "%PATH%", '"a"', "it's", "$HOME", ">=1", "*", "\\", "a\nb", "", "-"]
SHOWS = """
def call(id_, name):
    write(line(id=id_, result=text(json.dumps(sys.argv[1:]))))

serve(lambda cursor: listed("show"), call)
"""


def _missing(path: Path) -> None:
    pass


def _folder(path: Path) -> None:
    path.mkdir()


def _no_permission(path: Path) -> None:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o644)


def _bad_interpreter(path: Path) -> None:
    path.write_text("#!/no/such/interpreter\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_missing, "does not exist"),
        (_folder, "not executable"),
        (_no_permission, "not executable"),
        (_bad_interpreter, "interpreter"),
    ],
)
async def test_b097_a_command_that_cannot_be_run_is_told_at_once_and_not_at_the_end_of_the_start_limit(
    project: Project, make: object, words: str
) -> None:
    command = project.folder / "server"
    make(command)  # type: ignore[operator]
    # The start limit is so long that only an answer at once comes within the patience of this test.
    project.write(a={"command": str(command), "connectTimeout": 900})
    async with open_host(project.path, backoff=QUICK) as host:
        snapshot = await until(host, lambda snapshot: snapshot.model.server("a").error)
        error = snapshot.model.server("a").error
        assert error is not None
        assert str(command) in error
        assert words in error


async def test_b098_arguments_arrive_unchanged_because_no_shell_reads_them(project: Project) -> None:
    shim = project.folder / "a shim & more"
    shim.write_text('#!/bin/sh\nexec "$@"\n')
    os.chmod(shim, 0o755)
    for command, before in ((sys.executable, []), (str(shim), [sys.executable])):
        project.write(a={"command": command, "args": [*before, "-I", "-S", "-c", SMALL + SHOWS, *ARGS]})
        async with open_host(project.path) as host:
            assert await host.ready(timeout=PATIENCE)
            assert json.loads(said(await host.call("mcp__a__show", timeout=PATIENCE))) == ARGS
