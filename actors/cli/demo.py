"""`playbill demo`: the play in five acts, each claim of it checked.

It needs nothing but the installed package: a temporary mcp.json names three servers that ship with it, and every process is
a real one. A false claim, or an act that ends in an error, makes it exit 1 and is named on stderr.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import trio

from .. import open_host
from .acts import ACTS, Act, Scene, first_config, write_config
from .errors import CliError, Exit, diagnose, explain
from .interrupt import run
from .processes import alive, children, poll
from .render import print_json
from .stage import Stage, stage_for

__all__ = ["demo", "play"]

SCHEMA = 1
WAIT = 60.0
"""Long: where nothing was compiled yet and the machine is busy, the first start of three Pythons takes its time."""
_ACT_WAITS = 4
"""An act waits for few things; one that takes longer than this many waits hangs."""


def demo(
    *,
    as_json: bool = False,
    quiet: bool = False,
    wait: float | None = None,
    config: str | None = None,
    opener: Callable[..., Any] = open_host,
) -> int:
    """Play the demo.

    Args:
        as_json: print the claims as JSON instead of playing to a person.
        quiet: print only how it went.
        wait: seconds that any one wait may take; None = 60.
        config: where to write the demo's mcp.json; None = a temporary file.
        opener: `open_host`, or what stands in for it.

    Returns:
        `Exit.OK`, or `Exit.FAILURE` when a claim is false.

    Raises:
        CliError: there is something at ``config`` already, or nothing can be written there; it is left as it is.
    """
    if config is not None:
        _claim_place(Path(config))
    stage = stage_for(silent=as_json or quiet)
    started = time.monotonic()

    async def verb() -> int:
        await play(stage, WAIT if wait is None else wait, opener, config=None if config is None else Path(config))
        return Exit.FAILURE if stage.false else Exit.OK

    code = run(verb)
    if code not in (Exit.OK, Exit.FAILURE):
        return code
    seconds = time.monotonic() - started
    stage.end(seconds)
    if as_json:
        claims = [
            {"act": each.act, "claim": each.claim, "held": each.held, "detail": each.detail} for each in stage.claims
        ]
        print_json({"schema": SCHEMA, "ok": not stage.false, "seconds": round(seconds, 2), "claims": claims})
    elif quiet:
        print(stage.verdict(seconds))
    for each in stage.false:
        diagnose(f"false claim in act {each.act}: {each.claim}" + (f" ({each.detail})" if each.detail else ""))
    return code


def _claim_place(path: Path) -> None:
    try:
        with path.open("x"):
            pass
    except FileExistsError:
        raise CliError(Exit.USAGE, f"{path}: there is such a file already; the demo writes a new one") from None
    except OSError as error:
        raise CliError(Exit.USAGE, f"{path}: cannot be written: {error.strerror or error}") from None


async def play(
    stage: Stage, wait: float, opener: Callable[..., Any], acts: Sequence[Act] = ACTS, *, config: Path | None = None
) -> None:
    """Play all acts; what comes of it is in the stage's claims.

    Args:
        stage: where.
        quiet: print only how it went.
        wait: seconds that any one wait may take.
        opener: `open_host`, or what stands in for it.
        acts: which, in order; the curtain always falls.
        config: the mcp.json to write; None = a temporary one.
    """
    others = children()
    pids: set[int] = set()
    with tempfile.TemporaryDirectory(prefix="playbill-demo-") as folder:
        path = Path(folder, "mcp.json") if config is None else config
        write_config(path, first_config())
        try:
            async with opener(path) as host:
                await _acts(Scene(host, path, stage, wait, pids), acts)
        except Exception as error:
            stage.claim("the host opens and closes in order", False, explain(error)[1])
        await _curtain(stage, wait, pids, others)


async def _acts(scene: Scene, acts: Sequence[Act]) -> None:
    for act in acts:
        try:
            with trio.fail_after(_ACT_WAITS * scene.wait):
                await act(scene)
        except Exception as error:
            reason = "it hung" if isinstance(error, trio.TooSlowError) else explain(error)[1]
            scene.stage.claim(f"act {scene.stage.number} plays to its end", False, reason)
            break
        await trio.sleep(scene.stage.pause)
    scene.processes()


async def _curtain(stage: Stage, wait: float, pids: set[int], others: set[int]) -> None:
    """The last act: after the host closed, nothing of it is left."""
    stage.act("The curtain", "The host is closed.")

    def left() -> set[int]:
        return {pid for pid in pids if alive(pid)} | (children() - others)

    await poll(lambda: not left(), wait)
    still = left()
    stage.claim(
        "nothing is left running",
        not still,
        f"still there: {sorted(still)}" if still else f"{len(pids)} server processes were started, all are gone",
    )
