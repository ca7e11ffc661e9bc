"""A small MCP server of the standard library that does one thing wrong, when it is told to. Run: server.py '{"…": […]}'.

The argument maps a moment to the deeds done then, in order; each deed is an object: {"do": its name, …its options}.

moments     start (before a line is read) · listed (after the first tools/list was answered) · eof (stdin has ended) ·
            idle (``idle_seconds`` after the last message) · any method, such as "initialize" (before it is answered)
deeds       the functions below this text, by name

Its tools: ``echo`` (its arguments), ``pid``, ``asked`` (how often tools/list was), ``silence`` (no answer), ``do`` (the deed
given as arguments, then "done"). Every process that it starts is written, as a line "pid starttime", to the file named by the
variable PLAYBILL_TEST_PIDS, and so is the server: a process may hide its environment, but not that.
"""

import json
import os
import signal
import sys
import time

OPTIONS = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
TOOLS = ("echo", "pid", "asked", "silence", "do")
PIDS = os.environ.get("PLAYBILL_TEST_PIDS", os.devnull)
STATE = {"asked": 0, "deaf": False, "id": None, "answered": False}


def write(data, fd=1):
    """All of it, in as many writes as that takes."""
    data = memoryview(data)
    while data:
        data = data[os.write(fd, data) :]


def message(**fields):
    return json.dumps({"jsonrpc": "2.0", **fields}).encode() + b"\n"


def send(**fields):
    if not STATE["deaf"]:
        write(message(**fields))


def text(value):
    return {"content": [{"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}]}


def enrol():
    """Write down this process."""
    with open("/proc/self/stat", "rb") as file:
        start = file.read().rpartition(b")")[2].split()[19].decode()
    line = f"{os.getpid()} {start}\n".encode()
    fd = os.open(PIDS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, line)  # one write: many processes append at once
    os.close(fd)


def linger():
    while True:
        time.sleep(60)


def fork(child):
    """Fork; the child enrols, calls a function, and never comes back. Returns when it has enrolled."""
    read, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            enrol()
            os.write(told, b".")
            os.close(told)
            child()
        finally:
            os._exit(0)
    os.close(told)
    os.read(read, 1)
    os.close(read)
    return pid


# ── deeds ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def say(text):
    write(text.encode() + b"\n", 2)


def leave(code=0, after=0.0):
    time.sleep(after)
    os._exit(code)


def leave_soon(seconds, code=0):
    """Answer on, and exit after so long."""
    signal.signal(signal.SIGALRM, lambda *_: os._exit(code))
    signal.setitimer(signal.ITIMER_REAL, seconds)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def hang():
    """Neither read nor write any more."""
    linger()


def deaf():
    """Read on, and answer nothing any more."""
    STATE["deaf"] = True


def put(text, times=1):
    """Write this on stdout, as it is (each character one byte)."""
    write(text.encode("latin-1") * times)


def answer_with(text):
    """Answer the call with this text as its whole line; ID in it is the call's id (each character one byte)."""
    STATE["answered"] = True
    write(text.replace("ID", json.dumps(STATE["id"])).encode("latin-1"))


def answer_long(size, ends=True):
    """Answer the call with a text of so many bytes, in a line that ends or that never does."""
    STATE["answered"] = True
    head, _, tail = message(id=STATE["id"], result=text("@")).partition(b"@")
    write(head)
    block = b"a" * min(size, 1 << 20)
    for _ in range(size // len(block)):
        write(block)
    if not ends:
        say("written")
        linger()
    write(tail)


def flood(size):
    """So many bytes on stderr, without a line's end."""
    block = b"e" * (1 << 20)
    for _ in range(size >> 20):
        write(block, 2)


def storm(count, seconds):
    """Announce so many list changes, evenly, and answer meanwhile; say so when that is over."""
    import threading

    line = message(method="notifications/tools/list_changed")
    steps = 100

    def run():
        began = time.monotonic()
        for step in range(1, steps + 1):
            write(line * (count // steps))
            time.sleep(max(0.0, began + seconds * step / steps - time.monotonic()))
        say("over")

    threading.Thread(target=run, daemon=True).start()


def ignore(*_, signals=("SIGTERM",)):
    for name in signals:
        signal.signal(getattr(signal, name), signal.SIG_IGN)


def children(count=1, stubborn=True, session=False, group=False, quiet=False, nameless=False):
    """Fork children that stay.

    They hold stdin, stdout and stderr (not if ``quiet``), ignore signals (``stubborn``), are in a session or a group of their
    own, and show no environment (``nameless``).
    """

    def child():
        if session:
            os.setsid()
        if group:
            os.setpgid(0, 0)
        if stubborn:
            ignore(signals=("SIGTERM", "SIGHUP", "SIGINT"))
        if quiet:
            silence = os.open(os.devnull, os.O_RDWR)
            for fd in range(3):
                os.dup2(silence, fd)
        if nameless:
            os.execve("/bin/sleep", ["sleep", "600"], {})
        linger()

    for _ in range(count):
        fork(child)


def chain(depth):
    """Sessions in sessions: each is the child of the one before, which stays."""

    def link():
        os.setsid()
        ignore()
        if depth > 1:
            chain(depth - 1)
        linger()

    fork(link)


def daemons(seconds):
    """For so long, one generation after the other: each leaves its session, forks, and exits."""
    end = time.monotonic() + seconds

    def generation():
        os.setsid()
        while time.monotonic() < end:
            if os.fork():
                os._exit(0)
            os.setsid()
            if int(time.monotonic() * 1000) % 50 == 0:
                enrol()
        enrol()
        linger()

    fork(generation)


def move(how, leader="waits"):
    """Go on as a child in a session or group of its own; the leader waits for it, or leaves."""
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ready)
        if how == "session":
            os.setsid()
        else:
            os.setpgid(0, 0)
        ignore()
        enrol()
        os.write(told, b".")
        os.close(told)
        return
    os.close(told)
    os.read(ready, 1)
    if leader == "waits":
        os.waitpid(pid, 0)
    os._exit(0)


def close_all():
    os.closerange(0, 256)
    linger()


def strike(whom, number):
    """Signal the parent, or its parent."""
    pid = os.getppid()
    if whom == "grandparent":
        with open(f"/proc/{pid}/stat", "rb") as file:
            pid = int(file.read().rpartition(b")")[2].split()[1])
    os.kill(pid, getattr(signal, number))


def touch(path):
    """Say that this was reached."""
    open(path, "w").close()


DEEDS = {name: value for name, value in list(globals().items()) if callable(value) and name.islower()}


def do(deed):
    deed = dict(deed)
    DEEDS[deed.pop("do")](**deed)


def reach(moment):
    for deed in OPTIONS.get(moment, ()):
        do(deed)


# ── the protocol ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def call(name, arguments):
    if name == "echo":
        return text(arguments)
    if name == "pid":
        return text(str(os.getpid()))
    if name == "asked":
        return text(str(STATE["asked"]))
    if name == "do":
        do(arguments)
        return text("done")
    return None


def take(received):
    method, id_, params = received.get("method"), received.get("id"), received.get("params") or {}
    reach(method)
    if method == "initialize":
        capabilities = {"tools": {"listChanged": True}}
        info = {"name": "faulty", "version": "1"}
        send(id=id_, result={"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info})
    elif method == "tools/list":
        STATE["asked"] += 1
        send(id=id_, result={"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]})
        if STATE["asked"] == 1:
            reach("listed")
    elif method == "tools/call":
        STATE["id"], STATE["answered"] = id_, False
        result = call(params["name"], params.get("arguments") or {})
        if result is not None and not STATE["answered"]:
            send(id=id_, result=result)
    elif id_ is not None and method is not None:
        send(id=id_, error={"code": -32601, "message": "Method not found"})


def main():
    enrol()
    reach("start")
    idle = OPTIONS.get("idle_seconds")
    if idle:
        signal.signal(signal.SIGALRM, lambda *_: reach("idle"))
    for line in sys.stdin.buffer:
        if idle:
            signal.setitimer(signal.ITIMER_REAL, idle)
        take(json.loads(line))
    reach("eof")


main()
