"""Starts the command line, or a program that is a text, as `subprocess.Popen` does, but without the seconds that imports
take: a fork of a process that has imported what both import.

Theory of operation
    The first start begins a process of one thread, the stem (this file, run as a program), that imports what the command line
    imports and then waits. For each start it is sent the arguments, the environment and the open files; it forks twice, and
    the second child makes itself what a new interpreter would be, runs the module, and ends as a process ends. While it
    forks, the caller adopts orphans, so that the child is the caller's own: `Popen` waits for it and signals it as for any
    other, and to the child its parent is the caller.

    All that is tested of a process is there: its own id, standard streams, terminal, folder, environment, signals, exit code.
    What only an interpreter reads as it starts (the locale, ``PYTHON…``) is a stem's own: there is one for each. A closed
    stream, what `Popen` can be told beside, and what is not Linux get an interpreter of their own, and so does every test with
    ``PLAYBILL_FORKED=0``.
"""

from __future__ import annotations

import array
import atexit
import ctypes
import fcntl
import gc
import importlib
import io
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import termios
import types
from typing import Any

__all__ = ["Forked", "run"]

MODULE = "playbill.actors.cli"

VERBS = """app calling checking completing demo editing explaining hosting interrupt listing logins picking reviewing running
showing trusting"""
IMPORTED = [
    *(f"playbill.actors.cli.{name}" for name in VERBS.split()),
    *("playbill.actors.edge.wire.stdio", "playbill.actors.edge.wire.sdk"),
    *("playbill.actors.picker.terminal", "playbill.actors.picker.view"),
    *("playbill.actors.edge.auth.interactive", "playbill.actors.edge.auth.bearer"),
    *("mcp", "mcp.client", "rich.console", "rich.table", "urwid", "watchfiles"),
]
"""What it costs to import, and little else; what is not here is imported by who needs it."""

_SET_CHILD_SUBREAPER = 36
_READ_BY_AN_INTERPRETER = ("PYTHON", "LC_", "LANG")
_MOST_STEMS = 5
_LENGTH = 8


class Forked(subprocess.Popen):  # type: ignore[type-arg]
    """`subprocess.Popen`, in less time, for ``[sys.executable, "-m", "playbill.actors.cli", …]``, and for ``-c`` and a text."""

    def __init__(self, command: Any, *, takes_terminal: bool = False, **how: Any) -> None:
        """As `Popen`'s, and: takes_terminal: it begins a session, whose terminal is its stdin."""
        self._takes_terminal = takes_terminal
        if takes_terminal:
            how["start_new_session"] = True
        super().__init__(command, **how)

    def _execute_child(
        self,
        args: Any,
        executable: Any,
        preexec_fn: Any,
        close_fds: bool,
        pass_fds: Any,
        cwd: Any,
        env: Any,
        *rest: Any,
    ) -> None:
        (startupinfo, creationflags, shell, p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite) = rest[:9]
        (_, gid, gids, uid, umask, start_new_session, process_group) = rest[9:]
        environ = dict(os.environ if env is None else env)
        theirs = [given if given != -1 else fd for fd, given in enumerate((p2cread, c2pwrite, errwrite))]
        plain = close_fds and not (executable or preexec_fn or pass_fds or shell or startupinfo or creationflags)
        plain = plain and gid is gids is uid is None and umask < 0 and process_group < 0
        plain = plain and sys.platform == "linux" and os.environ.get("PLAYBILL_FORKED") != "0"
        if not (plain and _is_for_us(args) and all(map(_is_open, theirs))):
            if self._takes_terminal:
                preexec_fn = _take_terminal
            super()._execute_child(  # type: ignore[misc]
                args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *rest
            )
            return
        wanted = {
            "argv": list(map(_sent, args[1:])),
            "environ": [[_sent(name), _sent(value)] for name, value in environ.items()],
            "cwd": _sent(os.getcwd() if cwd is None else cwd),
            "session": bool(start_new_session),
            "terminal": self._takes_terminal,
            "ignored": [each for each in signal.valid_signals() if signal.getsignal(each) is signal.SIG_IGN],
        }
        self.pid = _stem(environ).start(wanted, theirs)
        self._child_created = True
        self._close_pipe_fds(  # type: ignore[attr-defined]
            p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite
        )


def run(
    command: list[Any], *, timeout: float, capture_output: bool = False, check: bool = False, **how: Any
) -> subprocess.CompletedProcess[Any]:
    """`subprocess.run`, with `Forked`."""
    if capture_output:
        how |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with Forked(command, **how) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(command, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _is_for_us(command: Any) -> bool:
    if isinstance(command, str | bytes):
        return False
    return list(command[:3]) == [sys.executable, "-m", MODULE] or list(command[:2]) == [sys.executable, "-c"]


def _sent(text: Any) -> str:
    """Bytes, or what stands for them, as JSON can carry them."""
    return os.fsencode(text).decode("latin-1")


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


class _Stem:
    """The caller's side of the process that is forked."""

    def __init__(self, environ: dict[str, str]) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                cwd="/",
                env=environ,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        self._libc = ctypes.CDLL(None)

    def start(self, wanted: dict[str, Any], fds: list[int]) -> int:
        """Start a process with these three standard streams; its id."""
        text = json.dumps(wanted).encode()
        self._libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        try:
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
            self._socket.sendmsg([len(text).to_bytes(_LENGTH, "big")], rights)
            self._socket.sendall(text)
            answer = self._socket.recv(_LENGTH)
        finally:
            self._libc.prctl(_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        pid = int.from_bytes(answer, "big")
        if not pid:
            raise OSError(f"the process that is forked has ended: {self._process.wait()}")
        return pid

    def end(self) -> None:
        """Let the process end."""
        self._socket.close()
        self._process.wait()


_stems: dict[tuple[int, frozenset[tuple[str, str]]], _Stem] = {}
"""By process, and by what an interpreter reads: the last one that was used is the last."""


def _stem(environ: dict[Any, Any]) -> _Stem:
    given = {os.fsdecode(name): os.fsdecode(value) for name, value in environ.items()}
    read = frozenset(each for each in given.items() if each[0].startswith(_READ_BY_AN_INTERPRETER))
    key = os.getpid(), read
    if key not in _stems:
        while len(_stems) >= _MOST_STEMS:
            _stems.pop(next(iter(_stems))).end()
        # Nothing else of the test's: by marks in the environment tests know what they left.
        plain = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LD_LIBRARY_PATH")}
        _stems[key] = _Stem(plain | dict(read))
    _stems[key] = _stems.pop(key)
    return _stems[key]


@atexit.register
def _end() -> None:
    for (owner, _), stem in _stems.items():
        if owner == os.getpid():
            stem.end()


def _await_orders(link: socket.socket) -> dict[str, Any]:
    """The stem's life: it returns in each new process only, with what that is to be."""
    while True:
        head, rights, _, _ = link.recvmsg(_LENGTH, socket.CMSG_SPACE(3 * array.array("i").itemsize))
        if not head:
            os._exit(0)
        fds = array.array("i", rights[0][2])
        size, text = int.from_bytes(head, "big"), b""
        while len(text) < size:
            text += link.recv(size - len(text))
        back, to_us = os.pipe()
        if not (first := os.fork()):
            between = os.getpid()
            if second := os.fork():
                os.write(to_us, second.to_bytes(_LENGTH, "big"))
                os._exit(0)
            while os.getppid() == between:
                os.sched_yield()
            os.close(back)
            os.close(to_us)
            link.close()
            _take(fds)
            return dict(json.loads(text))
        # Told only once it is an orphan no more: until then the caller adopts.
        os.waitpid(first, 0)
        link.sendall(os.read(back, _LENGTH))
        os.close(back)
        os.close(to_us)
        for fd in fds:
            os.close(fd)


def _take(fds: array.array[int]) -> None:
    high = [os.dup(fd) if fd > 2 else fd for fd in fds]
    for fd, given in enumerate(high):
        os.dup2(given, fd)
    for fd in {*fds, *high} - {0, 1, 2}:
        os.close(fd)


def _received(text: str) -> str:
    return os.fsdecode(text.encode("latin-1"))


def _become(wanted: dict[str, Any]) -> None:
    """Make of a forked process what a new interpreter would be."""
    if wanted["session"]:
        os.setsid()
    if wanted["terminal"]:
        _take_terminal()
    for each in signal.valid_signals():
        if each not in (signal.SIGKILL, signal.SIGSTOP):
            ignored = each in wanted["ignored"] or each == signal.SIGPIPE
            signal.signal(each, signal.SIG_IGN if ignored else signal.SIG_DFL)
    if signal.SIGINT not in wanted["ignored"]:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(_received(wanted["cwd"]))
    os.environ.clear()
    os.environb.update((name.encode("latin-1"), value.encode("latin-1")) for name, value in wanted["environ"])
    how, what, *words = map(_received, wanted["argv"])
    sys.argv = [what if how == "-m" else how, *words]
    sys.path[0] = os.getcwd() if how == "-m" else ""
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        raw = open(fd, "rb" if fd == 0 else "wb", buffering=-1, closefd=False)  # noqa: SIM115
        before = getattr(sys, name)
        stream = io.TextIOWrapper(
            raw,
            before.encoding,
            before.errors,
            newline=None if fd == 0 else "\n",
            line_buffering=fd == 2 or raw.isatty(),
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as _link:
        for _name in IMPORTED:
            importlib.import_module(_name)
        gc.collect()
        gc.freeze()
        _orders = _await_orders(_link)
    _become(_orders)
    if sys.argv[0] == MODULE:
        runpy.run_module(MODULE, run_name="__main__", alter_sys=True)
    else:
        _main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(_received(_orders["argv"][1]), "<string>", "exec"), _main.__dict__)
