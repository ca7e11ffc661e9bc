"""What to run and how to keep it running: frozen values, all times in seconds of the trio clock."""

from __future__ import annotations

import enum
import math
import random
from collections.abc import Awaitable, Callable, Hashable
from typing import TYPE_CHECKING, Any, Literal

from attrs import Attribute, field, frozen

if TYPE_CHECKING:
    from .actor import Context

__all__ = ["Backoff", "ChildSpec", "Intensity", "Restart", "Shutdown"]


def _seconds(instance: object, attribute: Attribute[Any], value: float) -> None:
    if not 0 <= value < math.inf:
        raise ValueError(f"{attribute.name} must be a finite number of seconds, 0 or more, not {value!r}")


def _positive(instance: object, attribute: Attribute[Any], value: float) -> None:
    if not value > 0:
        raise ValueError(f"{attribute.name} must be more than 0, not {value!r}")


def _share(instance: object, attribute: Attribute[Any], value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"{attribute.name} must be between 0 and 1, not {value!r}")


def _count(instance: object, attribute: Attribute[Any], value: int) -> None:
    if value < 0:
        raise ValueError(f"{attribute.name} must be 0 or more, not {value!r}")


def _room(instance: object, attribute: Attribute[Any], value: float) -> None:
    if not (value == math.inf or (value >= 1 and value == int(value))):
        raise ValueError(f"{attribute.name} must be a whole number of items, 1 or more, or math.inf, not {value!r}")


def _known(instance: object, attribute: Attribute[Any], value: str) -> None:
    if value not in ("park", "escalate"):
        raise ValueError(f"{attribute.name} must be 'park' or 'escalate', not {value!r}")


def _retry(instance: object, attribute: Attribute[Any], value: float | None) -> None:
    if value is not None:
        _seconds(instance, attribute, value)


class Restart(enum.Enum):
    """Which ends of a child are answered with a restart, as in OTP; the table is `ledger.RESTARTS`.

    A child we stopped ourselves is never restarted, whatever its type.
    """

    PERMANENT = "permanent"
    """Always, also when its body returned."""
    TRANSIENT = "transient"
    """Only when it raised, or did not start."""
    TEMPORARY = "temporary"
    """Never."""


@frozen
class Backoff:
    """How long to wait before a restart.

    Args:
        base: seconds before the first restart.
        max: the most seconds ever waited, jitter included.
        jitter: share (0 to 1) by which a delay is randomly longer or shorter.
        reset_after: seconds of proven health (`Context.healthy`) after which earlier deaths are forgotten. Being started
            proves nothing: a child that starts and dies at once must back off.

    Raises:
        ValueError: a number out of its range.
    """

    base: float = field(default=0.5, validator=_seconds)
    max: float = field(default=30.0, validator=_seconds)
    jitter: float = field(default=0.1, validator=_share)
    reset_after: float = field(default=30.0, validator=_seconds)

    def delay(self, n: int, rng: random.Random) -> float:
        """``min(max, base·2ⁿ·(1±jitter))``, clamped last, so that no jitter exceeds ``max``.

        Args:
            n: deaths before this one since the history was last cleared, 0 or more, however large.
            rng: draws one number.

        Returns:
            Seconds, 0 to ``max``.
        """
        spread = 1 + self.jitter * (2 * rng.random() - 1)
        try:
            grown = math.ldexp(self.base, n)
        except OverflowError:
            grown = math.inf
        return min(self.max, grown * spread) if spread else 0.0


@frozen
class Intensity:
    """How many restarts of ONE child are too many, and what then.

    Args:
        restarts: as many restarts within ``window`` are borne; the next death is over the limit.
        window: seconds.
        then: ``escalate`` ends the whole supervisor with `Escalated`; ``park`` keeps the child visible and down.
        park_retry: seconds between the slow retries of a parked child; None: only `Supervisor.revive` starts it.

    Raises:
        ValueError: a number out of its range.
    """

    restarts: int = field(default=5, validator=_count)
    window: float = field(default=60.0, validator=_positive)
    then: Literal["park", "escalate"] = field(default="escalate", validator=_known)
    park_retry: float | None = field(default=300.0, validator=_retry)


@frozen
class Shutdown:
    """The budgets of a stop: stop message → ``grace`` → cancel → ``join``.

    Args:
        grace: seconds a child has to return by itself after the stop message; 0 cancels it at once.
        join: seconds it has to end after the cancellation; past them it is reported `Stuck`, and joined on.

    Raises:
        ValueError: a number out of its range.
    """

    grace: float = field(default=5.0, validator=_seconds)
    join: float = field(default=5.0, validator=_seconds)


@frozen
class ChildSpec:
    """One child: what to run and how to keep it running.

    Args:
        name: unique within the supervisor.
        body: the actor, called anew for each incarnation with its `Context`; must call ``ctx.started()`` soon.
        restart, backoff, intensity, shutdown: the rules it lives by.
        start_timeout: seconds from spawning to ``ctx.started()``; ``math.inf`` for no limit.
        mailbox: how many items its mailbox holds, 1 or more, or ``math.inf``.
        key: the caller's own identity of what is run, never looked into; compared through `Supervisor.keys`.

    Raises:
        ValueError: a number out of its range.
    """

    name: str
    body: Callable[[Context], Awaitable[None]]
    restart: Restart = Restart.PERMANENT
    backoff: Backoff = Backoff()
    intensity: Intensity = Intensity()
    shutdown: Shutdown = Shutdown()
    start_timeout: float = field(default=5.0, validator=_positive)
    mailbox: float = field(default=64, validator=_room)
    key: Hashable = None
