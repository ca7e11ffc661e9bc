"""The mailbox: bounded without waiting, with a control lane that nothing blocks."""

from __future__ import annotations

import math

import pytest
import trio
import trio.testing
from playbill.supervision import Mailbox, MailboxFull, MailboxStatistics


async def test_a_full_mailbox_is_an_error_and_not_a_wait() -> None:
    box = Mailbox(2, "ada")
    box.put_nowait(1)
    box.put_nowait(2)
    with pytest.raises(MailboxFull, match="'ada' is full \\(2 items\\)") as caught:
        box.put_nowait(3)
    assert (caught.value.name, caught.value.capacity) == ("ada", 2)
    assert await box.receive_batch() == [1, 2]


async def test_a_capacity_may_be_a_float_and_may_be_infinite() -> None:
    small, endless = Mailbox(1.0), Mailbox(math.inf)
    small.put_nowait(1)
    with pytest.raises(MailboxFull):
        small.put_nowait(2)
    for number in range(10_000):
        endless.put_nowait(number)
    assert len(await endless.receive_batch()) == 10_000


async def test_control_passes_a_full_mailbox_and_is_delivered_first() -> None:
    box = Mailbox(1)
    box.put_nowait("mail")
    for number in range(100):
        box.control_nowait(number)
    assert [await box.receive() for _ in range(101)] == [*range(100), "mail"]


async def test_a_batch_takes_all_there_is_control_first() -> None:
    box = Mailbox(8)
    box.put_nowait("a")
    box.control_nowait("c")
    box.put_nowait("b")
    assert await box.receive_batch() == ["c", "a", "b"]


async def test_receiving_is_a_checkpoint_even_when_there_is_mail() -> None:
    box = Mailbox(2)
    box.put_nowait(1)
    box.put_nowait(2)
    with trio.testing.assert_checkpoints():
        await box.receive()
    with trio.testing.assert_checkpoints():
        await box.receive_batch()


async def test_a_receiver_waits_for_either_lane() -> None:
    box, got = Mailbox(2), []

    async def take() -> None:
        for _ in range(2):
            got.append(await box.receive())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take)
        await trio.testing.wait_all_tasks_blocked()
        box.control_nowait("control")
        await trio.testing.wait_all_tasks_blocked()
        assert got == ["control"]
        box.put_nowait("mail")
    assert got == ["control", "mail"]


async def test_a_cancelled_receiver_has_taken_nothing() -> None:
    box = Mailbox(2)
    box.put_nowait(1)
    with trio.CancelScope() as scope:
        scope.cancel()
        await box.receive()
    assert await box.receive() == 1


async def test_several_receivers_lose_nothing() -> None:
    box, got = Mailbox(math.inf), []

    async def take(count: int) -> None:
        for _ in range(count):
            got.append(await box.receive())

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(take, 25)
        await trio.testing.wait_all_tasks_blocked()
        for number in range(100):
            box.put_nowait(number)
            if number % 7 == 0:
                await trio.lowlevel.checkpoint()
    assert sorted(got) == list(range(100))


async def test_closing_wakes_the_receiver_and_refuses_new_mail() -> None:
    box = Mailbox(2)

    async def receiver() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await box.receive()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receiver)
        await trio.testing.wait_all_tasks_blocked()
        box.close()
    with pytest.raises(trio.ClosedResourceError):
        box.put_nowait(1)
    with pytest.raises(trio.ClosedResourceError):
        box.control_nowait(1)


async def test_statistics_count_what_waits_was_taken_and_was_refused() -> None:
    box = Mailbox(1)
    box.put_nowait(1)
    with pytest.raises(MailboxFull):
        box.put_nowait(2)
    box.control_nowait(3)
    assert box.statistics() == MailboxStatistics(capacity=1, waiting=1, control=1, taken=0, refused=1)
    await box.receive_batch()
    assert box.statistics() == MailboxStatistics(capacity=1, waiting=0, control=0, taken=2, refused=1)
    box.close()
    assert box.statistics().taken == 2


def test_a_mailbox_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="1 item or more"):
        Mailbox(0)
