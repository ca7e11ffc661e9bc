"""The options of the verbs: one grammar, so that an option means the same wherever it is."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from attrs import frozen
from cyclopts import Parameter

from . import completers
from .errors import CliError, Exit

__all__ = [
    "CatalogOptions",
    "ChaosOptions",
    "DemoOptions",
    "EditOptions",
    "LoginOptions",
    "LogoutOptions",
    "Options",
    "PickOptions",
    "RunOptions",
    "SaidOptions",
    "Scope",
    "host_options",
]

Scope = Literal["project", "user"]


def _positive(_: Any, value: float | None) -> None:
    if value is not None and not (value > 0 and math.isfinite(value)):
        raise ValueError("it must be a number of seconds above 0")


def _count(_: Any, value: int | None) -> None:
    if value is not None and value < 1:
        raise ValueError("it must be 1 or more")


def _amount(_: Any, value: int | None) -> None:
    if value is not None and value < 0:
        raise ValueError("it must be 0 or more")


def host_options(profile: str | None, budget: int | None) -> dict[str, Any]:
    """What of ``--profile`` and ``--budget`` goes to `open_host`.

    Args:
        profile: the name of one, or None for the host's own.
        budget: how many tools, or None for the host's own.

    Raises:
        CliError: there is no such profile.
    """
    options: dict[str, Any] = {}
    if budget is not None:
        options["budget"] = budget
    if profile is not None:
        from ..model.profile import find_profile

        try:
            options["profile"] = find_profile(profile)
        except ValueError as error:
            raise CliError(Exit.USAGE, str(error)) from None
    return options


_Config = Annotated[
    str | None,
    Parameter(
        alias="-c",
        completer=completers.files,
        help="The mcp.json to use. Without it: the nearest .mcp.json and your own file, both together.",
    ),
]
_Scope = Annotated[
    Scope | None,
    Parameter(help="Of the files that are found, only the project's (.mcp.json), or only your own (user)."),
]
_Json = Annotated[bool, Parameter(negative="", show_default=False, help="Print JSON, and only that, on stdout.")]
_Quiet = Annotated[
    bool,
    Parameter(
        alias="-q", negative="", show_default=False, help="Say nothing but what was asked for and what is wrong."
    ),
]


_Verbose = Annotated[
    bool,
    Parameter(alias="-v", negative="", show_default=False, help="Tell what happens, with the seconds, on stderr."),
]


@Parameter(name="*")
@frozen(kw_only=True)
class SaidOptions:
    """The options of every verb: how its answer looks, and what is said besides."""

    json: _Json = False
    quiet: _Quiet = False
    verbose: _Verbose = False


@Parameter(name="*")
@frozen(kw_only=True)
class EditOptions(SaidOptions):
    """The options of the verbs that look at a config or edit it, and start nothing."""

    config: _Config = None
    scope: _Scope = None
    timeout: Annotated[
        float | None,
        Parameter(validator=_positive, help="Seconds that an edit waits for another program that edits the file (5)."),
    ] = None


@Parameter(name="*")
@frozen(kw_only=True)
class LoginOptions(EditOptions):
    """The options of the verb that logs in."""

    timeout: Annotated[
        float | None,
        Parameter(validator=_positive, help="Seconds for whoever logs in, from when the URL is shown (300)."),
    ] = None


@Parameter(name="*")
@frozen(kw_only=True)
class LogoutOptions(EditOptions):
    """The options of the verb that logs out."""

    timeout: Annotated[
        float | None, Parameter(validator=_positive, help="Taken as everywhere; logging out waits for nobody.")
    ] = None


@Parameter(name="*")
@frozen(kw_only=True)
class Options(EditOptions):
    """The options of the verbs that start servers."""

    timeout: Annotated[
        float | None, Parameter(validator=_positive, help="Seconds to wait for servers and answers.")
    ] = None


_Profile = Annotated[
    str | None,
    Parameter(
        completer=completers.profiles,
        help="What the catalog is made for: openai, anthropic, gemini, … (portable: what all of them take).",
    ),
]
_Budget = Annotated[int | None, Parameter(validator=_amount, help="How many tools are sent at most (100).")]


@Parameter(name="*")
@frozen(kw_only=True)
class CatalogOptions(Options):
    """The options of the verbs that show what is sent to the model."""

    profile: _Profile = None
    budget: _Budget = None


@Parameter(name="*")
@frozen(kw_only=True)
class RunOptions(EditOptions):
    """The options of the verb that goes on until it is ended."""

    timeout: Annotated[
        float | None,
        Parameter(validator=_positive, help="Seconds that the command is held back for servers to get ready (0)."),
    ] = None

    json: Annotated[
        bool,
        Parameter(negative="", show_default=False, help="Print JSON, an object a line; on stderr beside a command."),
    ] = False
    profile: _Profile = None
    budget: _Budget = None
    watch: Annotated[
        bool | None, Parameter(show_default=False, help="Whether to reload by itself when the config changes (yes).")
    ] = None


@Parameter(name="*")
@frozen(kw_only=True)
class PickOptions(SaidOptions):
    """The options of the picker."""

    config: _Config = None
    scope: _Scope = None
    json: Annotated[
        bool, Parameter(negative="", show_default=False, help="Print what is wrong as JSON too, on stdout.")
    ] = False
    verbose: Annotated[
        bool,
        Parameter(
            alias="-v",
            negative="",
            show_default=False,
            help="Tell what happened, with the seconds, on stderr: when the screen is gone, or at once in a file.",
        ),
    ] = False
    profile: _Profile = None
    budget: _Budget = None
    timeout: Annotated[
        float | None, Parameter(validator=_positive, help="Seconds that what a key asks for may take (30).")
    ] = None
    watch: Annotated[
        bool | None, Parameter(show_default=False, help="Whether to reload by itself when the config changes (yes).")
    ] = None


@Parameter(name="*")
@frozen(kw_only=True)
class DemoOptions(SaidOptions):
    """The options of the demo, which writes a config of its own."""

    config: Annotated[
        str | None,
        Parameter(
            alias="-c",
            help="Where to write the demo's mcp.json, for a look at it afterwards: a new file. Without it: a temporary one.",
        ),
    ] = None
    json: Annotated[
        bool, Parameter(negative="", show_default=False, help="Print the claims as JSON, and only that, on stdout.")
    ] = False
    timeout: Annotated[
        float | None, Parameter(validator=_positive, help="Seconds that any one wait may take (10).")
    ] = None


@Parameter(name="*")
@frozen(kw_only=True)
class ChaosOptions(SaidOptions):
    """The options of the chaos runs, which read no config."""

    seeds: Annotated[int | None, Parameter(validator=_count, help="How many runs are drawn (100).")] = None
    seed: Annotated[int | None, Parameter(help="The first seed; alone, the only one.")] = None
    systematic: Annotated[
        bool,
        Parameter(negative="", show_default=False, help="Play every single fault and every pair of faults instead."),
    ] = False
    replay: Annotated[str | None, Parameter(help="Play the plan in this file instead.")] = None
    keep: Annotated[str | None, Parameter(help="A folder in which the plan that failed is stored.")] = None
    wire: Annotated[
        bool | None,
        Parameter(
            help="Play all of it over bytes on pipes, or none, nor over HTTP (by the seed; systematic plans: at each level)."
        ),
    ] = None
    http: Annotated[bool, Parameter(negative="", show_default=False, help="Play all of it over HTTP.")] = False
    jobs: Annotated[int, Parameter(validator=_count, help="Processes side by side.")] = 1
