"""Calls that are made again: never by themselves, only where the caller asks and the tool says that it does no harm.

A call that was lost on its way may have taken effect, and nobody can tell. So `Host.call` makes it again only when both hold:
it was asked to (``retry=n``), and the tool is annotated as read-only or idempotent (``readOnlyHint``, ``idempotentHint``:
specification, ToolAnnotations). The hints are the server's own word; to ask is to believe them.

    what came of it                                  then
    a result, an error of the tool too               it is the answer
    a refusal for now (429, 503: `ports.RETRY_AFTER`)  again after the time that it names
    the server died, or cannot take calls now        again once it is ready, if it is on its way to that
    anything else                                    it is the answer
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .model.errors import ServerDied, ServerUnavailable
from .model.status import ServerStatus, ToolDef
from .ports import RETRY_AFTER

__all__ = ["check_retry", "may_repeat", "on_its_way", "pause_before"]


def check_retry(retry: object) -> None:
    """Refuse, with ValueError, a number of repetitions that is none."""
    if not isinstance(retry, int) or isinstance(retry, bool) or retry < 0:
        raise ValueError(f"retry is a number of repetitions, 0 or more, not {retry!r}")


def may_repeat(tool: ToolDef) -> bool:
    """Whether a tool says that calling it again does no harm."""
    hints: Mapping[str, Any] = tool.annotations or {}
    return hints.get("readOnlyHint") is True or hints.get("idempotentHint") is True


def on_its_way(status: ServerStatus) -> bool:
    """Whether a server that cannot take calls now will be able to by itself, soon."""
    life, report = status.lifecycle, status.report
    if life is None or life.probation or life.stage not in ("starting", "running", "backing_off"):
        return False
    return report is None or report.generation != life.generation or not report.needs_auth


def pause_before(outcome: Any) -> float | None:
    """The seconds to wait before a call is made again, by what came of it; None when that is the answer.

    Args:
        outcome: a result, or an exception.
    """
    if isinstance(outcome, ServerDied | ServerUnavailable):
        return 0.0
    if not getattr(outcome, "is_error", False):
        return None
    told = (getattr(outcome, "meta", None) or {}).get(RETRY_AFTER)
    return float(told) if isinstance(told, int | float) else None
