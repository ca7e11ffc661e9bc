"""The verb that teaches a shell the names: `completion` prints a script, or installs it.

The script is the library's. It knows verbs and options itself, and asks `completers` for the names in the config.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Literal

from .configs import near
from .errors import CliError, Exit
from .options import SaidOptions
from .render import print_json
from .verbs import app

__all__ = ["Shell", "complete_in"]

Shell = Literal["bash", "zsh", "fish"]

_PLAIN = re.compile(r"[\w ./@%+,:=~^-]*", re.UNICODE).fullmatch

SCHEMA = 1
"""The version of the JSON; it grows when a key changes or goes, not when one is added."""


def complete_in(shell: Shell, *, install: bool, options: SaidOptions) -> int:
    """Print the script for a shell, or put it where that shell looks for it.

    Args:
        shell: which.
        install: write it, and have the shell's own start-up file read it, where that is needed.
        options: how to tell.

    Raises:
        CliError: it cannot be written.
    """
    if not install:
        script = app.generate_completion(shell=shell)
        if options.json:
            print_json({"schema": SCHEMA, "shell": shell, "file": None, "script": script})
        else:
            print(script)
        return Exit.OK
    reader = _reader(shell)
    try:
        file = app.install_completion(shell=shell)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise CliError(Exit.FAILURE, f"{where}not written: {error.strerror or error}") from None
    if options.json:
        print_json({"schema": SCHEMA, "shell": shell, "file": str(file), "script": file.read_text("utf-8")})
    elif not options.quiet:
        # The library leaves the start-up file alone where the shell's own framework looks into the folder.
        named = reader is not None and reader.is_file() and str(file.parent) in reader.read_text("utf-8", "replace")
        read_by = f", which {near(reader)} reads" if reader is not None and named else ""
        print(f"written to {near(file)}{read_by}; a {shell} that is started from now on completes playbill's names")
    return Exit.OK


def _reader(shell: Shell) -> Path | None:
    """The shell's own file that is made to read the script; None when the shell finds it by itself.

    Looked at before anything is written, so that all of it is done or nothing.

    Raises:
        CliError: there is no home folder, its name would be read by the shell as more than a name, or the file is none that
            can be added to.
    """
    home = os.environ["HOME"] if "HOME" in os.environ else str(Path.home())
    if not Path(home).is_dir() or not Path(home).is_absolute():
        raise CliError(Exit.FAILURE, f"not written: there is no home folder {home!r}")
    if not _PLAIN(home) or (shell == "zsh" and " " in home):
        raise CliError(
            Exit.FAILURE, f"a shell would read more than a name in {home!r}: put the script where you want it"
        )
    if shell == "fish":
        return None
    file = Path(home) / f".{shell}rc"
    try:
        if not os.access(file if file.exists() else Path(home), os.W_OK) or (file.exists() and not file.is_file()):
            raise CliError(Exit.FAILURE, f"{file}: not written: it is no file that can be added to")
        if file.exists() and file.read_bytes()[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise CliError(Exit.FAILURE, f"{file}: not written: it is UTF-16, which {shell} does not read")
    except OSError as error:
        raise CliError(Exit.FAILURE, f"{file}: not written: {error.strerror or error}") from None
    return file
