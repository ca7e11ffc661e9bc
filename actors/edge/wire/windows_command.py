"""What a command of the configuration runs on Windows: which file, and the one line of text that carries its arguments.

Pure. Written to Microsoft's documentation (``CreateProcessW``, ``cmd``, "Parsing C++ command-line arguments"); not run by us.

    the command                  what is looked for                                in
    has a ``\\``, ``/`` or ``:``    that file                                          the server's ``cwd``, or ours
    anything else                the name                                           the PATH of the server's environment
    ends in .exe .com .bat .cmd  itself first, then with each suffix of PATHEXT
    ends otherwise               with each suffix of PATHEXT only: beside ``npx.cmd`` lies ``npx``, a script for other systems

Of PATHEXT (the server's) only those four count: nothing else can be started without the program it belongs to. ``cmd`` and
``CreateProcess`` look in the current folder first; we do only where PATH names it: no project shall bring its own ``npx.cmd``.

A ``.cmd`` or ``.bat`` (npx, npm, pnpm, yarn …) is run by ``cmd.exe``, which reads the line again by rules of its own. So it is
written for ``cmd.exe``: an argument is data, whatever is in it, and one that cannot be written so is refused. ``command: cmd``
with ``args: ["/c", "npx", …]`` is an ordinary program with ordinary arguments, and works too.
"""

from __future__ import annotations

import ntpath
import re
from collections.abc import Callable, Mapping, Sequence
from subprocess import list2cmdline

from attrs import frozen

from .spawn import SpawnFailed

__all__ = ["Program", "environment", "resolve"]

RUNNABLE = (".com", ".exe", ".bat", ".cmd")
BATCH = (".bat", ".cmd")
LONGEST_CMD = 8191
"""Characters of a line that ``cmd.exe`` takes."""

_IS_PLAIN = re.compile(r"[A-Za-z0-9#$*+\-./:?@\\_]*[A-Za-z0-9#$*+\-./:?@_]\Z").match


@frozen
class Program:
    """What is handed to ``CreateProcessW``.

    Args:
        file: the executable, an absolute path.
        line: the command line, with the program's name.
    """

    file: str
    line: str


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """An environment as Windows has it, where ``Path`` and ``PATH`` are one name: the last of each name counts.

    Raises:
        SpawnFailed: a variable has no name, or a NUL is in it.
    """
    found: dict[str, tuple[str, str]] = {}
    for key, value in env.items():
        if not key or "=" in key:
            raise SpawnFailed(f"env: a variable cannot be named {key!r}")
        if "\0" in key + value:
            raise SpawnFailed(f"env: a NUL character in {key!r}")
        found[key.upper()] = (key, value)
    return dict(found.values())


def resolve(
    command: str,
    args: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str,
    is_file: Callable[[str], bool],
    system_root: str,
) -> Program:
    """Find the file of a command, and write its command line.

    Args:
        command: a path, or a name looked up in the PATH of ``env``.
        args: without the command.
        env: the server's, as `environment` gives it.
        cwd: the server's working folder, absolute.
        is_file: whether there is a file of that path.
        system_root: the folder of Windows, by our own environment: the ``cmd.exe`` in it runs batch files.

    Raises:
        SpawnFailed: not found, not runnable, or an argument cannot be handed to it.
    """
    if any("\0" in each for each in (command, *args, cwd)):
        raise SpawnFailed(f"command, args, env or cwd: a NUL character (in {command!r})")
    variables = {key.upper(): value for key, value in env.items()}
    file = _find(command, variables, cwd, is_file)
    if not file.lower().endswith(BATCH):
        return Program(file, list2cmdline([file, *args]))
    return Program(ntpath.join(system_root, "System32", "cmd.exe"), _batch_line(command, file, args))


def _find(command: str, variables: Mapping[str, str], cwd: str, is_file: Callable[[str], bool]) -> str:
    is_path = any(each in command for each in "\\/:")
    folders = [""] if is_path else [each.strip('"') for each in variables.get("PATH", "").split(";")]
    suffixes = [each for each in variables.get("PATHEXT", "").lower().split(";") if each in RUNNABLE] or RUNNABLE
    names = [command + suffix for suffix in suffixes]
    if command.lower().endswith(RUNNABLE):
        names.insert(0, command)
    for folder in folders:
        if folder or is_path:
            for name in names:
                file = ntpath.normpath(ntpath.join(cwd, folder, name))
                if is_file(file):
                    return file
    if is_path and is_file(ntpath.normpath(ntpath.join(cwd, command))):
        what = "is no program that Windows can start (.exe, .com, .bat, .cmd): name the one that runs it"
        raise SpawnFailed(f"command: {command!r} {what}")
    raise SpawnFailed(f"command: {command!r} {'does not exist' if is_path else 'is not found in PATH'}")


def _batch_line(command: str, file: str, args: Sequence[str]) -> str:
    # /d: no AutoRun of the registry; /e:on for `_literal`; /v:off: a ! is a !; /s: the outer quotes go, and nothing else.
    inner = " ".join([f'"{_literal(file)}"', *(_batch_argument(command, each) for each in args)])
    line = f'cmd.exe /d /e:on /v:off /s /c "{inner}"'
    if len(line) > LONGEST_CMD:
        raise SpawnFailed(
            f"args: longer than the {LONGEST_CMD} characters that a batch file ({command!r}) can be given"
        )
    return line


def _batch_argument(command: str, text: str) -> str:
    if "\r" in text or "\n" in text:
        raise SpawnFailed(f"args: a line break cannot be given to a batch file ({command!r})")
    if _IS_PLAIN(text):
        return text
    # For the program behind it, 2n backslashes before a quote are n; and a quote doubled in quotes is one, for both.
    quoted = re.sub(r'(\\*)("|\Z)', lambda found: found[1] * 2 + found[2] * 2, text)
    return f'"{_literal(quoted)}"'


def _literal(text: str) -> str:
    """No variable in it is expanded: after each % comes nothing, cut out of a variable that is always there."""
    return text.replace("%", "%%cd:~,%")
