"""The watcher and its reapers: the small processes between the host and its servers, which outlive the host by a moment.

This file is a program. It is run by path, isolated, and imports little, and of the standard library alone: the first server
waits until it runs, and each reaper copies what it touches.

Theory of operation. A dead process can do nothing, so others must clean up after it. The host starts one watcher; its stdin is
a socket, on which the host hands over, for each server, one byte and four file descriptors: the server's stdin, stdout, stderr,
and a control socket. The watcher forks a reaper for it, which starts the server and is its parent for as long as it lives.

    host ──▶ watcher ──fork──▶ reaper ──fork, exec──▶ server ──▶ what the server starts
      ╰──────────── control ─────╯

On Linux a reaper is a subreaper: whatever descends from its server and loses its parent becomes the reaper's child, also what
left the server's process group or session. So when the server's leader is dead, everything it left is found, killed and reaped;
and nothing else can be, because nothing else descends from the reaper. The watcher is a subreaper too, and kills what a reaper
that was itself killed left behind. Where there are no subreapers, only the server's process group is killed.

    state      server                          the host hears        then
    starting   being executed                  started / failed      running / the end
    running    lives, or is ending             –                     on its exit, or the end of the control socket: sweeping
    sweeping   its group is killed; reaped     exited                everything that descends from it is killed, again and again
    swept      nothing is left                 the end of control    the reaper ends

The host's death is the end of the control socket, or a pidfd where a fork of the host keeps that socket open. The leader is
reaped only after its group was killed: until then its id cannot be anybody else's.

    from the host     the request, once: length (4 bytes), then fields ended by NUL: see `_request`; ``T``: SIGTERM to the group
    to the host       ``starting`` · ``started <pid>`` · ``failed <stage> <errno>`` · ``exited <wait status>``, a line each
"""

import _socket  # socket itself doubles the time to start
import errno
import gc
import os
import select
import signal
import sys

LIBC = None
if sys.platform == "linux":
    try:
        import ctypes

        LIBC = ctypes.CDLL(None)
    except ImportError:
        pass  # a Python built without it: what leaves its group is nobody's, then

READ = 65536
FD = 4  # bytes of an int
PR_SET_PDEATHSIG, PR_SET_NAME, PR_SET_CHILD_SUBREAPER = 1, 15, 36
FIRST_PAUSE, LONGEST_PAUSE = 0.001, 0.5  # seconds between two looks at what will not end
CLOSE_ON_EXEC = getattr(_socket, "MSG_CMSG_CLOEXEC", 0)  # where it is missing, a reaper sets it
LISTS_CHILDREN = os.path.exists(f"/proc/self/task/{os.getpid()}/children")  # a choice of the kernel's builder
IGNORED = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT]
DEFAULTS = [*IGNORED, signal.SIGPIPE, signal.SIGXFSZ]  # what Python and we ignore; a program would inherit that


def main() -> None:
    """Fork a reaper for each request until the host (argument 1: its process id) is gone, and all reapers with it."""
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    become_subreaper(b"playbill watch")
    gc.disable()
    gc.freeze()  # what is never looked at again stays shared with the reapers
    host = _socket.socket(fileno=0)
    death = pidfd_of_parent(int(sys.argv[1]))
    children = Children()
    reapers: set[int] = set()
    poll = select.poll()
    for fd in (0, death, children.fd):
        if fd is not None:
            poll.register(fd, select.POLLIN)
    alive = True
    while alive:
        ready = {fd for fd, _ in poll.poll()}
        if children.fd in ready:
            _bury(children, reapers)
        if 0 in ready:
            fds = _receive_fds(host)
            alive = fds is not None
            fds = fds or []
            if len(fds) == 4:
                reapers |= _fork_reaper(fds, death, host)
            for fd in fds:
                os.close(fd)  # or later reapers would hold them open
        elif death in ready:
            alive = False
    host.close()
    pause = FIRST_PAUSE
    while not _bury(children, reapers):  # they have seen it too
        children.wait(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def _receive_fds(host: _socket.socket) -> list[int] | None:
    """What came with one request, or None when the host is gone."""
    try:
        data, received, _, _ = host.recvmsg(1, _socket.CMSG_SPACE(4 * FD), CLOSE_ON_EXEC)
    except OSError:
        return None
    if not data:
        return None
    fds = b"".join(each for level, kind, each in received if (level, kind) == (_socket.SOL_SOCKET, _socket.SCM_RIGHTS))
    return [int.from_bytes(fds[at : at + FD], sys.byteorder) for at in range(0, len(fds) - FD + 1, FD)]


def _bury(children: "Children", reapers: set[int]) -> bool:
    """Reap what has ended, and kill what a killed reaper left. Returns whether there is no child at all."""
    children.clear()
    while (pid := reap_one()) > 0:
        reapers.discard(pid)
    if pid == 0:
        for reaper in reapers:
            os.kill(reaper, signal.SIGCONT)  # its server may have stopped it; it is not reaped, so its id is its own
        signal_below(set(children_of(os.getpid())) - reapers)
    return pid < 0


def _fork_reaper(fds: list[int], death: int | None, host: _socket.socket) -> set[int]:
    try:
        pid = os.fork()
    except OSError as error:
        try:
            os.write(fds[3], f"failed fork {error.errno}\n".encode())
        except OSError:
            pass
        return set()
    if pid == 0:
        status = 1
        try:
            host.detach()
            os.dup2(1, 0)  # the watcher's connection is not the reapers'; and descriptor 0 stays taken
            Reaper(fds, death).run()
            status = 0
        finally:
            os._exit(status)
    return {pid}


class Reaper:
    """The parent of one server.

    Args:
        fds: the server's stdin, stdout, stderr, and the control socket.
        death: a pidfd of the host, or None.
    """

    def __init__(self, fds: list[int], death: int | None) -> None:
        os.setsid()
        become_subreaper(b"playbill reap")
        for fd in fds:
            os.set_inheritable(fd, False)
        self.control = _socket.socket(fileno=fds[3])
        self.control.setblocking(False)
        self.stdio = fds[:3]
        self.death = death
        self.hears = select.poll()
        self.hears.register(fds[3], select.POLLIN)
        if death is not None:
            self.hears.register(death, select.POLLIN)
        self.leader = 0

    def run(self) -> None:
        """Start the server, be there for its end, and leave nothing."""
        request = self._receive()
        if request is None:
            return
        self.children = Children()
        if not self._start(*request):
            return
        self.hears.register(self.children.fd, select.POLLIN)
        running = True
        while running:
            ready = {fd for fd, _ in self.hears.poll()}
            if self.control.fileno() in ready:
                running = self._obey()
            if self.death in ready:
                running = False
            if self.children.fd in ready:
                self.children.clear()
                reap_all_but(self.leader)
                running = running and not has_exited(self.leader)
        self._sweep()

    def _receive(self) -> "tuple[str, list[bytes], list[bytes], dict[bytes, bytes]] | None":
        """The request, or None when the host is gone, or has given the server up, meanwhile."""
        data = b""
        while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
            self.hears.poll()
            try:
                more = self.control.recv(READ)
            except BlockingIOError:
                return None  # woken by the host's death
            except OSError:
                more = b""
            if not more:
                return None
            data += more
        return _request(data[4:])

    def _given_up(self) -> bool:
        """Whether nobody wants the server any more."""
        try:
            return not self.control.recv(1, _socket.MSG_PEEK)
        except BlockingIOError:
            return bool(self.hears.poll(0))
        except OSError:
            return True

    def _start(self, cwd: str, files: list[bytes], argv: list[bytes], env: dict[bytes, bytes]) -> bool:
        """Execute the server, and say so, or why that is impossible."""
        self._say("starting")
        stage = "chdir"
        try:
            os.chdir(cwd)
            stage = "exec"
            if self._given_up():
                return False  # while the folder was waited for
            self.leader = execute(files, argv, env, self.stdio)
        except OSError as error:
            self._say(f"failed {stage} {error.errno}")
            return False
        finally:
            os.chdir("/")
            for fd in self.stdio:
                os.close(fd)
        self._say(f"started {self.leader}")
        return True

    def _obey(self) -> bool:
        """Do what the host says; False when it says nothing any more."""
        try:
            data = self.control.recv(READ)
        except OSError:
            data = b""
        if b"T" in data:
            signal_group(self.leader, signal.SIGTERM)
        return bool(data)

    def _sweep(self) -> None:
        """Kill the server's group and all that descends from it, until nothing is left."""
        signal_group(self.leader, signal.SIGKILL)
        pause = FIRST_PAUSE
        killed: set[int] = set()
        while True:
            self.children.clear()
            reap_all_but(self.leader)
            if self.leader and has_exited(self.leader):
                signal_group(self.leader, signal.SIGKILL)
                status = os.waitpid(self.leader, 0)[1]
                self.leader = 0
                self._say(f"exited {status}")
            if not self.leader and reap_all_but(0):
                return
            below = descendants()
            signal_below(below)
            if below <= killed:  # else at once again: what keeps forking is to have no time for it
                self.children.wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            killed = below

    def _say(self, line: str) -> None:
        try:
            self.control.send(line.encode() + b"\n")
        except OSError:
            pass


def _request(data: bytes) -> tuple[str, list[bytes], list[bytes], dict[bytes, bytes]]:
    """The folder, the files to try to execute, the arguments with the command, the environment."""
    fields = iter(data.split(b"\0")[:-1])
    cwd = os.fsdecode(next(fields))
    files = [next(fields) for _ in range(int(next(fields)))]
    argv = [next(fields) for _ in range(int(next(fields)))]
    env = {key: value for key, _, value in (each.partition(b"=") for each in fields)}
    return cwd, files, argv, env


def execute(files: list[bytes], argv: list[bytes], env: dict[bytes, bytes], stdio: list[int]) -> int:
    """Run the first of the files that can be run, in a session of its own. Returns its process id; raises `OSError`.

    It waits for the kernel to have the program loaded, which only a file system that hangs makes long.
    """
    refusal = OSError(errno.ENOENT, "")
    for file in files:
        if not os.path.lexists(file):
            continue  # cheaper than to try
        try:
            return os.posix_spawn(
                file,
                argv,
                env,
                file_actions=[(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(stdio)],
                setsid=True,
                setsigdef=DEFAULTS,
            )
        except ValueError:
            raise OSError(errno.EINVAL, "") from None
        except NotImplementedError:  # what posix_spawn raises where the C library cannot start sessions
            raise OSError(errno.ENOSYS, "") from None
        except OSError as error:
            # As a shell: what is there and cannot run matters more than what is not there.
            if refusal.errno == errno.ENOENT and error.errno != errno.ENOTDIR:
                refusal = error
    raise refusal


class Children:
    """Wakes who polls `fd` when a child of this process has ended."""

    def __init__(self) -> None:
        self.fd, write = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def clear(self) -> None:
        """Forget the wake-ups so far; to be called before looking."""
        try:
            os.read(self.fd, READ)
        except BlockingIOError:
            pass

    def wait(self, seconds: float) -> None:
        """Until a child has ended since `clear`, at most so long."""
        select.select([self.fd], [], [], seconds)


def reap_one() -> int:
    """Reap any child that has ended: its id; 0 when none has; -1 when there are no children."""
    try:
        return os.waitpid(-1, os.WNOHANG)[0]
    except ChildProcessError:
        return -1


def reap_all_but(leader: int) -> bool:
    """Reap every child that has ended except the leader. Returns whether there are no children at all."""
    if not leader:
        while (pid := reap_one()) > 0:
            pass
        return pid < 0
    for pid in children_of(os.getpid()):
        if pid != leader:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass
    return False


def has_exited(pid: int) -> bool:
    """Whether a child has ended; it is not reaped."""
    if hasattr(os, "waitid"):
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    # macOS before Python 3.13. By name, as type checkers know only the names of their own system.
    kq = vars(select)
    queue = kq["kqueue"]()
    event = kq["kevent"](pid, kq["KQ_FILTER_PROC"], kq["KQ_EV_ADD"] | kq["KQ_EV_ONESHOT"], kq["KQ_NOTE_EXIT"])
    try:
        return bool(queue.control([event], 1, 0))
    except ProcessLookupError:
        return True
    finally:
        queue.close()


def signal_group(leader: int, number: int) -> None:
    """Signal the group of a leader that is not reaped."""
    # PermissionError: macOS for a group of zombies only, or a server that runs as somebody else.
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        pass


def signal_below(pids: set[int], number: int = signal.SIGKILL) -> None:
    """Signal processes below this one. One that is not there any more is left alone, also when its id has a new owner."""
    mine = set(children_of(os.getpid()))
    for pid in pids:
        try:
            if pid in mine:
                os.kill(pid, number)  # it is not reaped before this process does it
            elif hasattr(os, "pidfd_open"):  # without, it is reached when its parents are dead
                _signal_deeper(pid, number)
        except OSError:
            pass  # it runs as somebody else, or is gone; or the kernel has no pidfds


def _signal_deeper(pid: int, number: int) -> None:
    pidfd = os.pidfd_open(pid)
    try:
        if is_below(pid, os.getpid()):  # after the pidfd was taken: it cannot become a stranger's any more
            signal.pidfd_send_signal(pidfd, number)
    finally:
        os.close(pidfd)


def is_below(pid: int, top: int) -> bool:
    """Whether a process descends from another one."""
    while pid > 1:
        pid = parent_of(pid)
        if pid == top:
            return True
    return False


def parent_of(pid: int) -> int:
    """The parent's process id, or 0 when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def descendants() -> set[int]:
    """All processes below this one."""
    children = children_of if LISTS_CHILDREN else family().get
    found: set[int] = set()
    new = [os.getpid()]
    while new:
        new = [each for pid in new for each in children(pid) or () if each not in found]
        found.update(new)
    return found


def children_of(pid: int) -> list[int]:
    """The children of a process, zombies too; none where that cannot be told (not Linux)."""
    if not LISTS_CHILDREN:
        return family().get(pid, [])
    children: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                children += map(int, file.read().split())
    except OSError:
        pass  # it ended meanwhile
    return children


def family() -> dict[int, list[int]]:
    """The children of every process of the system; for kernels without lists of children."""
    children: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        names = []
    for pid in map(int, filter(str.isdigit, names)):
        children.setdefault(parent_of(pid), []).append(pid)
    return children


def become_subreaper(name: bytes) -> None:
    """Adopt what descends from this process and loses its parent (Linux; nothing elsewhere); and be named so."""
    if LIBC is not None:
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        LIBC.prctl(PR_SET_NAME, name, 0, 0, 0)
        # One that a server has stopped goes on when its parent dies. Whenever else it comes, it does nothing.
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGCONT, 0, 0, 0)


def pidfd_of_parent(host: int) -> int | None:
    """A descriptor that is readable once the host is gone, or None where there are none."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        pidfd = os.pidfd_open(host)
    except OSError:
        return None
    if os.getppid() != host:  # gone before; this may be a stranger
        os.close(pidfd)
        return None
    return pidfd


if __name__ == "__main__":
    main()
