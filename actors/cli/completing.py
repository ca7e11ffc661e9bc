"""The verb that teaches a shell the names: `completion` prints a script, or installs it.

The script is the library's. It knows verbs and options itself, and asks `completers` for the names in the config.
"""

from __future__ import annotations

from typing import Literal

from .configs import near
from .errors import CliError, Exit
from .options import SaidOptions
from .render import print_json
from .verbs import app

__all__ = ["Shell", "complete_in"]

Shell = Literal["bash", "zsh", "fish"]

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
    try:
        file = app.install_completion(shell=shell)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise CliError(Exit.FAILURE, f"{where}not written: {error.strerror or error}") from None
    if options.json:
        print_json({"schema": SCHEMA, "shell": shell, "file": str(file), "script": file.read_text("utf-8")})
    elif not options.quiet:
        print(f"written to {near(file)}; a {shell} that is started from now on completes playbill's names")
    return Exit.OK
