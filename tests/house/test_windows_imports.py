"""The package can be imported on Windows: no module needs, to be imported, what Windows' Python has not.

No machine of ours runs Windows. So one process imports everything (and thereby every other package), forgets our modules, hides
what is missing there, and imports them again: what then fails would fail there. Whether a function that is called needs it is
not seen; mypy, told that it is on Windows, says that.

The names are those that typeshed (``stdlib/os/__init__.pyi``, ``stdlib/signal.pyi``, as of mypy 2.4) declares for other systems
only; it is also the "Availability" of the standard library's documentation. Some came to Windows after Python 3.11, our first.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

MODULES = "fcntl grp posix pty pwd readline resource syslog termios tty _posixsubprocess"

SIGNAL = """
    ITIMER_PROF ITIMER_REAL ITIMER_VIRTUAL ItimerError SIGALRM SIGBUS SIGCHLD SIGCLD SIGCONT SIGHUP SIGIO SIGIOT SIGKILL
    SIGPIPE SIGPOLL SIGPROF SIGPWR SIGQUIT SIGRTMAX SIGRTMIN SIGSTKFLT SIGSTOP SIGSYS SIGTRAP SIGTSTP SIGTTIN SIGTTOU SIGURG
    SIGUSR1 SIGUSR2 SIGVTALRM SIGWINCH SIGXCPU SIGXFSZ SIG_BLOCK SIG_SETMASK SIG_UNBLOCK Sigmasks alarm getitimer pause
    pidfd_send_signal pthread_kill pthread_sigmask setitimer siginterrupt sigpending sigtimedwait sigwait sigwaitinfo
    struct_siginfo
"""
OS = """
    CLD_CONTINUED CLD_DUMPED CLD_EXITED CLD_KILLED CLD_STOPPED CLD_TRAPPED EX_USAGE F_LOCK F_TEST F_TLOCK F_ULOCK O_ACCMODE
    O_ASYNC O_CLOEXEC O_DIRECT O_DIRECTORY O_DSYNC O_NDELAY O_NOATIME O_NOCTTY O_NOFOLLOW O_NONBLOCK O_PATH O_SYNC O_TMPFILE
    POSIX_FADV_DONTNEED POSIX_SPAWN_CLOSE POSIX_SPAWN_DUP2 POSIX_SPAWN_OPEN PRIO_PROCESS P_ALL P_PGID P_PID P_PIDFD RTLD_LAZY
    SCHED_OTHER SEEK_DATA SEEK_HOLE WCONTINUED WCOREDUMP WEXITED WEXITSTATUS WIFCONTINUED WIFEXITED WIFSIGNALED WIFSTOPPED
    WNOHANG WNOWAIT WSTOPPED WSTOPSIG WTERMSIG WUNTRACED chown chroot confstr copy_file_range ctermid environb eventfd fchdir
    fchown fdatasync fork forkpty fpathconf fstatvfs fwalk getegid getenvb geteuid getgid getgrouplist getgroups getloadavg
    getpgid getpgrp getpriority getrandom getresgid getresuid getsid getuid getxattr initgroups killpg lchown listxattr lockf
    major makedev memfd_create minor mkfifo mknod nice openpty pathconf pidfd_open pipe2 posix_fadvise posix_fallocate
    posix_spawn posix_spawnp pread preadv pwrite pwritev readv register_at_fork removexattr sched_getaffinity
    sched_setaffinity sched_yield sendfile setegid seteuid setgid setgroups setpgid setpgrp setpriority setregid setresgid
    setresuid setreuid setsid setuid setxattr spawnlp spawnlpe spawnvp spawnvpe splice statvfs sync sysconf tcgetpgrp
    tcsetpgrp ttyname uname wait wait3 wait4 waitid waitid_result writev
    fchmod get_blocking set_blocking
"""
OTHERS = {
    "socket": "AF_UNIX CMSG_SPACE SCM_RIGHTS recv_fds send_fds",
    "select": "epoll kqueue poll",
    "trio.lowlevel": "FdStream",
}

PROGRAM_FOR_OTHERS = "playbill.actors.edge.wire.watcher"
"""Not imported but run, by path, and not on Windows."""

CODE = """
import importlib, json, os, pkgutil, sys

modules, missing, leave_out, extra = json.loads(sys.argv[1])
sys.path[:0] = extra[:1]

def every_name():
    found = []
    for package in ("playbill.actors", "playbill.supervision"):
        for each in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
            if each.name != leave_out and not each.name.endswith("__main__"):
                found.append(each.name)
    return found

sys.path[:0] = [os.path.join(importlib.import_module("playbill.actors").__path__[0], "servers")]
names = every_name()
for name in names:
    importlib.import_module(name)
for name in [each for each in sys.modules if each.split(".")[0] in ("playbill", "_stdio")]:
    del sys.modules[name]
for module, gone in missing.items():
    for name in gone:
        importlib.import_module(module).__dict__.pop(name, None)
for name in modules:
    sys.modules[name] = None  # the import system takes this for "there is none"
sys.platform = "win32"
failed = {}
for name in ["playbill.actors", "playbill.supervision", *names, *extra[1:]]:
    try:
        importlib.import_module(name)
    except Exception as error:
        failed[name] = f"{type(error).__name__}: {error}"
sys.stdout.write(json.dumps([len(names), failed]))
sys.stdout.flush()
os._exit(0)  # what the standard library does on leaving may need what is hidden
"""


def imported(extra: tuple[str, ...] = ()) -> tuple[int, dict[str, str]]:
    """How many modules were imported as on Windows, and which could not be; `extra`: a folder, and modules in it."""
    missing = {"signal": SIGNAL.split(), "os": OS.split(), **{name: text.split() for name, text in OTHERS.items()}}
    result = subprocess.run(
        [sys.executable, "-c", CODE, json.dumps([MODULES.split(), missing, PROGRAM_FOR_OTHERS, extra])],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    count, failed = json.loads(result.stdout)
    return count, failed


def test_every_module_can_be_imported_where_the_posix_parts_are_missing(tmp_path: Path) -> None:
    (tmp_path / "needs_fcntl.py").write_text("import fcntl\n")
    (tmp_path / "needs_a_signal.py").write_text("import signal\nWANTED = (signal.SIGINT, signal.SIGHUP)\n")
    (tmp_path / "needs_fchown.py").write_text("from os import fchown\n")
    (tmp_path / "needs_nothing.py").write_text(
        "import os, signal, subprocess, trio\nassert signal.SIGTERM and os.getpid\n"
    )
    count, failed = imported((str(tmp_path), "needs_fcntl", "needs_a_signal", "needs_fchown", "needs_nothing"))
    # The hiding itself, on modules made up for it.
    assert sorted(name for name in failed if name.startswith("needs")) == [
        "needs_a_signal",
        "needs_fchown",
        "needs_fcntl",
    ]
    assert {name: why for name, why in failed.items() if not name.startswith("needs")} == {}
    assert count > 100


@pytest.mark.parametrize("text", [SIGNAL, OS])
def test_no_name_is_listed_twice(text: str) -> None:
    assert len(text.split()) == len(set(text.split()))
