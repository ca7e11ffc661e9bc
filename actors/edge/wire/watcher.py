"""The watcher: a small process that outlives the host by the moment it takes to kill what the host left.

It is run by path, isolated, and imports nothing but the standard library. Its stdin is a pipe from the host, which writes
``+<group>`` when it has started a server and ``-<group>`` when that server's group is gone. The end of the pipe means that
the host is gone, however that came about; what is still registered then is killed.
"""

import contextlib
import os
import select
import signal
import sys


def main() -> None:
    """Watch until the host is gone (argument 1: its process id), then kill every group still registered."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    groups: set[int] = set()
    poll = select.poll()
    poll.register(0, select.POLLIN)
    host = int(sys.argv[1])
    # A fork of the host may hold the pipe open after the host's death; where there are pidfds, they tell that too.
    pidfd = None
    if hasattr(os, "pidfd_open"):
        try:
            pidfd = os.pidfd_open(host)
        except OSError:
            pidfd = None
        else:
            if os.getppid() == host:
                poll.register(pidfd, select.POLLIN)
    rest = b""
    alive = True
    while alive:
        ready = {fd for fd, _ in poll.poll()}
        if 0 in ready:
            data = os.read(0, 65536)
            alive = bool(data)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                group = int(line[1:])
                if line[:1] == b"+":
                    groups.add(group)
                else:
                    groups.discard(group)
        elif pidfd in ready:
            alive = False
    for group in groups:
        with contextlib.suppress(OSError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
