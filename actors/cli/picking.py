"""The verb that shows the picker: a host in this process, its config watched, and the screen on top of it."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..edge.config.discover import Scope
from ..edge.config.watch import can_watch
from .configs import open_store, openable
from .errors import CliError, Exit, diagnose
from .interrupt import run
from .options import host_options
from .typeahead import unechoed
from .voice import voice

__all__ = ["pick_tools"]


def pick_tools(
    path: str | None,
    *,
    scope: Scope | None = None,
    watch: bool | None = None,
    timeout: float | None = None,
    profile: str | None = None,
    budget: int | None = None,
) -> int:
    """Open a host and show its servers and tools until the person leaves.

    The screen is painted from the host's first snapshot: it waits for no server. What is logged, and with ``--verbose`` what
    happens, is said when the screen is gone, or at once on a stderr that is no terminal.

    Args:
        path, scope: of the config, as in `configs.open_store`.
        watch: whether to reload when the config changes; None: if what watches is installed, and say so if it is not.
        timeout: seconds that an operation may take until it is visible; None: the host's own.
        profile, budget: what the catalog is made for.

    Returns:
        `Exit.OK`; or 128 + the number of the signal that ended it.

    Raises:
        CliError: there is no terminal, the extra is not installed, or an option is wrong.
        ConfigError: the config cannot be read.
    """
    open_store(path, scope)  # says what is wrong with the two options
    options = host_options(profile, budget)
    if timeout is not None:
        options["operation_timeout"] = timeout
    with unechoed() as typed:
        return _pick(path, scope, watch, options, typed)


def _pick(
    path: str | None, scope: Scope | None, watch: bool | None, options: dict[str, Any], typed: Callable[[], bytes]
) -> int:
    # Most of the time until the first screen is importing, and a tenth of that is looking for garbage in what stays.
    gc.disable()
    try:
        from ..picker.terminal import NoTerminal, open_terminal
        from ..picker.view import run_picker
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "urwid":
            raise
        how = "install playbill with its extra 'picker' (in a clone: pip install '.[picker]')"
        raise CliError(Exit.USAGE, f"the picker needs urwid: {how}") from None
    else:
        from .hosting import opened
        from .reviewing import FileReviewer
    finally:
        gc.freeze()
        gc.enable()

    if watch is None and not (watch := can_watch()) and not voice().quiet:
        diagnose("the config is not watched: that needs the extra 'watch' (in a clone: pip install '.[watch]')")

    async def verb() -> int:
        where = None if path is None else Path(openable(path))
        try:
            # Before any server is started: without a terminal there is nothing to do.
            with open_terminal() as terminal:
                async with opened(where, scope=scope, watch=bool(watch), **options) as host:
                    with voice().held():
                        reviewer = FileReviewer(host, path, scope)
                        await run_picker(host, terminal, reviewer=reviewer, typed=typed())
        except NoTerminal as error:
            raise CliError(Exit.USAGE, str(error)) from None
        return Exit.OK

    return run(verb)
