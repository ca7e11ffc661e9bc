"""Which line of a dead program's stderr tells why: real endings of Python, Node, npm, Rust, Go, Java and others."""

from __future__ import annotations

import time

import pytest
from playbill.actors.model.telling import telling_line

PYTHON = """Starting server
Traceback (most recent call last):
  File "/srv/server.py", line 3, in <module>
    import fastmcp
ModuleNotFoundError: No module named 'fastmcp'
"""

CHAINED = """Traceback (most recent call last):
  File "/srv/a.py", line 2, in <module>
    int("x")
ValueError: invalid literal for int() with base 10: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/a.py", line 4, in <module>
    raise app.errors.SetupFailed.SetupError("no port")
app.errors.SetupError: no port
sys:1: RuntimeWarning: coroutine 'main' was never awaited
"""

GROUP = """  + Exception Group Traceback (most recent call last):
  |   File "/srv/a.py", line 1, in <module>
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/srv/a.py", line 9, in work
    | ConnectionRefusedError: [Errno 111] Connection refused
    +------------------------------------
"""

PYDANTIC = """pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings
api_key
  Field required [type=missing, input_value={}, input_type=dict]
    For further information visit https://errors.pydantic.dev/2.7/v/missing
"""

NODE = """node:internal/modules/cjs/loader:1228
  throw err;
  ^

Error: Cannot find module '/srv/dist/index.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1225:15)
    at new NodeError (node:internal/errors:405:5)
    at node:internal/main/run_main_module:36:49 {
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v22.1.0

"""

NODE_CODED = """/srv/index.js:1
TypeError [ERR_INVALID_ARG_TYPE]: The "path" argument must be of type string. Received undefined
    at Object.<anonymous> (/srv/index.js:1:4)

Node.js v20.11.1
"""

NPM = """npm warn exec The following package was not found
npm error code E404
npm error 404 Not Found - GET https://registry.npmjs.org/no-such-server - Not found
npm error 404
npm error 404  'no-such-server@*' is not in this registry.
npm error 404
npm error 404 Note that you can also install from a
npm error 404 tarball, folder, http url, or git folder.
npm error A complete log of this run can be found in: /home/u/.npm/_logs/2026-01-01T00_00_00_000Z-debug-0.log
"""

NPM_OLD = """npm ERR! code ENOENT
npm ERR! syscall open
npm ERR! path /srv/package.json
npm ERR! errno -2
npm ERR! enoent ENOENT: no such file or directory, open '/srv/package.json'
npm ERR! enoent This is related to npm not being able to find a file.
npm ERR! enoent

npm ERR! A complete log of this run can be found in:
npm ERR!     /home/u/.npm/_logs/2022-01-01T00_00_00_000Z-debug-0.log
"""

RUST = """listening
thread 'main' panicked at src/main.rs:4:10:
called `Result::unwrap()` on an `Err` value: Os { code: 2, kind: NotFound, message: "No such file or directory" }
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
"""

RUST_BACKTRACE = """thread 'main' panicked at 'no token', src/main.rs:2:5
stack backtrace:
   0: rust_begin_unwind
             at /rustc/90c541/library/std/src/panicking.rs:578:5
   1: core::panicking::panic_fmt
   2: core::result::Result<T,core::fmt::Error>
note: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.
"""

GO = (
    """2026/01/01 10:00:00 serving
panic: runtime error: index out of range [5] with length 3

goroutine 1 [running]:
main.main()
	/srv/main.go:8 +0x1d
"""
    + "\n".join(
        f"\ngoroutine {n} [select]:\nnet/http.(*persistConn).writeLoop(0xc0001)\n\t/go/t.go:24 +0xa" for n in range(30)
    )
    + "\nexit status 2\n"
)

JAVA = """Exception in thread "main" java.lang.IllegalStateException: no database
	at app.Main.main(Main.java:5)
Caused by: java.net.ConnectException: Connection refused
	at java.base/sun.nio.ch.Net.pollConnect(Native Method)
	... 4 more
"""

ARGPARSE = """usage: server.py [-h] path
server.py: error: the following arguments are required: path
try --help
"""

ENDINGS = {
    "python": (PYTHON, "ModuleNotFoundError: No module named 'fastmcp'"),
    "chained": (CHAINED, "app.errors.SetupError: no port"),
    "group": (GROUP, "ConnectionRefusedError: [Errno 111] Connection refused"),
    "pydantic": (
        PYDANTIC,
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings",
    ),
    "node": (NODE, "Error: Cannot find module '/srv/dist/index.js'"),
    "node with a code": (
        NODE_CODED,
        'TypeError [ERR_INVALID_ARG_TYPE]: The "path" argument must be of type string. Received undefined',
    ),
    "npm": (NPM, "npm error 404 Not Found - GET https://registry.npmjs.org/no-such-server - Not found"),
    "npm of old": (NPM_OLD, "npm ERR! enoent ENOENT: no such file or directory, open '/srv/package.json'"),
    "rust": (
        RUST,
        "thread 'main' panicked at src/main.rs:4:10: called `Result::unwrap()` on an `Err` value: "
        'Os { code: 2, kind: NotFound, message: "No such file or directory" }',
    ),
    "rust's backtrace": (RUST_BACKTRACE, "thread 'main' panicked at 'no token', src/main.rs:2:5"),
    "go": (GO, "panic: runtime error: index out of range [5] with length 3"),
    "java": (JAVA, "Caused by: java.net.ConnectException: Connection refused"),
    "argparse": (ARGPARSE, "server.py: error: the following arguments are required: path"),
    "git": ("fatal: not a git repository\n\n", "fatal: not a git repository"),
    "a log": (
        "2026-01-01 12:00:00 ERROR no port left\n2026-01-01 12:00:00 INFO bye\n",
        "2026-01-01 12:00:00 ERROR no port left",
    ),
    "logfmt": ('level=error msg="no token"\nlevel=info msg=bye\n', 'level=error msg="no token"'),
    "a bare class": ("AssertionError\n", "AssertionError"),
    "any case": ("Error: bad\nFATAL: worse\nbye\n", "FATAL: worse"),
}


@pytest.mark.parametrize(("text", "line"), ENDINGS.values(), ids=ENDINGS.keys())
def test_the_line_that_tells_why_is_found(text: str, line: str) -> None:
    assert telling_line(text) == line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        ("\n \n\t\n", ""),
        ("a\nb\n\n", "b"),
        ("0 errors found\nerrors are fine\nno terror: here\nbye", "bye"),
        ("Need to install: thing. Ok to proceed? (y)", "Need to install: thing. Ok to proceed? (y)"),
        ("ERROR long ago, and mended\n" + "INFO all is well\n" * 60 + "Killed\n", "Killed"),
    ],
)
def test_else_it_is_the_last_that_is_not_blank(text: str, line: str) -> None:
    assert telling_line(text) == line


@pytest.mark.parametrize(
    "unit", ["a", ".", "$", " ", "thread '", "error", "npm ERR! code ", "| ", "\n", "Error\n", "[("]
)
def test_no_text_takes_long(unit: str) -> None:
    text = unit * (64 * 1024 // len(unit))
    begun = time.process_time()
    telling_line(text)
    assert time.process_time() - begun < 1  # a quadratic look takes a minute
