"""The watcher as on another system, and watched itself: odd_watcher.py WATCHER LOG OPTION,OPTION… HOST

Options: no_pidfd (a Python without them), old_kernel (a kernel without them), no_lists (of children), no_subreaper (not Linux),
slow_exec, slow_chdir (until there is a file LOG.go), no_setsid (a C library without it).
In the log is each signal that was sent, and each process that was reaped.
"""

import errno
import os
import signal
import sys
import time

path, log, options, host = sys.argv[1:]
sys.argv[1:] = [host]
LOG = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def logged(what, function):
    def call(first, *rest):
        result = function(first, *rest)
        subject = result[0] if what == "reaped" else first
        if subject:
            os.write(LOG, f"{what} {subject}\n".encode())
        return result

    return call


def refused(*_):
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


os.killpg = logged("group", os.killpg)
os.kill = logged("process", os.kill)
os.waitpid = logged("reaped", os.waitpid)
if "no_pidfd" in options:
    del os.pidfd_open
    del signal.pidfd_send_signal
if "old_kernel" in options:
    os.pidfd_open = refused

names = {"__name__": "watcher"}
with open(path) as file:
    exec(compile(file.read(), path, "exec"), names)
if "no_lists" in options:
    names["LISTS_CHILDREN"] = False
if "no_subreaper" in options:
    names["LIBC"] = None
    names["children_of"] = lambda pid: []
    names["descendants"] = set


def held(what):
    """Say so in the log, and go on when there is a file beside it."""
    os.write(LOG, f"{what} {os.getpid()}\n".encode())
    while not os.path.exists(log + ".go"):
        time.sleep(0.005)


if "slow_exec" in options:
    execute = names["execute"]

    def slowly(*args):
        held("executes")
        return execute(*args)

    names["execute"] = slowly
if "slow_chdir" in options:
    chdir = os.chdir

    def slow_chdir(folder):
        if folder != "/":
            held("enters")
        chdir(folder)

    os.chdir = slow_chdir
if "no_setsid" in options:

    def not_here(*args, **kwargs):
        raise NotImplementedError("setsid parameter is not supported")

    os.posix_spawn = not_here
names["main"]()
