"""Running a verb under trio so that Ctrl-C, SIGTERM, SIGQUIT and a closed terminal end it in order.

The signals are received, not thrown: the verb is cancelled, its host closes and stops every server by its own deadlines, and
only then does the process end with 128 + the signal's number. Servers run in sessions of their own, so the terminal's Ctrl-C
reaches only us.
"""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable

import trio

__all__ = ["run"]

# Windows has no SIGHUP; there, Ctrl-Break is what a program is asked to end with that has its own process group.
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGBREAK")
_SIGNALS = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))


def run(verb: Callable[[], Awaitable[int]]) -> int:
    """Run a verb to its end, or until a signal.

    Args:
        verb: the async function; what it returns is the exit code.

    Returns:
        Its exit code, or 128 + the number of the signal that ended it.

    Raises:
        Exception: what the verb raised, itself and not in a group of ours.
    """
    return trio.run(_guarded, verb)


async def _guarded(verb: Callable[[], Awaitable[int]]) -> int:
    wanted = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
    if not wanted:
        return await verb()
    caught: int | None = None
    result: int | Exception = 0
    # The receiver is the outermost: a second signal must not cut short the orderly stop, which has deadlines of its own.
    with trio.open_signal_receiver(*wanted) as signals:
        async with trio.open_nursery() as nursery:

            async def listen() -> None:
                nonlocal caught
                async for signum in signals:
                    caught = caught or signum
                    scope.cancel()

            nursery.start_soon(listen)
            with trio.CancelScope() as scope:
                try:
                    result = await verb()
                except Exception as error:
                    result = error
                except BaseExceptionGroup as group:
                    # What failed while it was cancelled comes in one group with the cancellation.
                    _, others = group.split(trio.Cancelled)
                    if not isinstance(others, Exception):
                        raise
                    result = others
            nursery.cancel_scope.cancel()
    if caught is not None:
        return 128 + caught
    if isinstance(result, Exception):
        raise result
    return result
