"""Records: structured, scrubbed, and harmless."""

from __future__ import annotations

import logging

import pytest
from playbill.actors.telemetry.log import About, Log, about

from .conftest import Watch

LOG = Log("playbill.tested")
WHOM = About("a", lambda text: text.replace("hunter2", "***"))


def test_a_record_has_its_attributes_and_its_place(watch: Watch) -> None:
    LOG.info("server %s has %d tools", "a", 3, event="ready", server="a", tools=3, reason=None)
    (record,) = watch.records
    assert (record.getMessage(), record.levelno, record.name) == (
        "server a has 3 tools",
        logging.INFO,
        LOG._logger.name,
    )
    assert (record.event, record.server, record.tools) == ("ready", "a", 3)  # type: ignore[attr-defined]
    assert not hasattr(record, "reason")
    assert (record.filename, record.funcName) == ("test_log.py", "test_a_record_has_its_attributes_and_its_place")


def test_what_is_said_for_a_server_is_scrubbed_in_all_its_parts(watch: Watch) -> None:
    with about(WHOM):
        try:
            raise ValueError("hunter2")
        except ValueError:
            LOG.exception("a message is dropped: %r", b"hunter2", event="dropped", reason="hunter2")
    LOG.info("100 % of it", event="after")
    record, after = watch.records
    assert record.server == "a"  # type: ignore[attr-defined]
    assert not hasattr(after, "server")
    assert after.getMessage() == "100 % of it"
    assert "ValueError: ***" in watch.texts[0]
    assert "hunter2" not in watch.everything()


def test_nothing_is_made_that_nobody_hears(watch: Watch) -> None:
    logging.getLogger("playbill").setLevel(logging.WARNING)
    LOG.info("%s", object.__new__(object))
    assert watch.records == []


@pytest.mark.parametrize("how", ["info", "exception"])
def test_a_handler_that_raises_hurts_nobody(watch: Watch, how: str) -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise RuntimeError("a defect of the program's")

    broken = Broken()
    logging.getLogger("playbill").addHandler(broken)
    try:
        getattr(LOG, how)("a")
        LOG.info("%d", "no number")
    finally:
        logging.getLogger("playbill").removeHandler(broken)


def test_nothing_is_printed_when_nobody_listens(capsys: pytest.CaptureFixture[str]) -> None:
    LOG.error("a")
    assert capsys.readouterr().err == ""
