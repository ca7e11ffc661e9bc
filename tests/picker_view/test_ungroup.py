"""Errors leave the picker as themselves, whatever nurseries are around it, and however they came about."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from playbill.actors.picker.ungroup import ungrouped


class Gone(Exception):
    """A terminal that is gone."""


async def fail(*errors: BaseException) -> None:
    """Raise them in nurseries within nurseries."""
    async with trio.open_nursery() as nursery:
        for each in errors:
            nursery.start_soon(_raise, each)


async def _raise(error: BaseException) -> None:
    async with trio.open_nursery():
        raise error


async def test_an_error_alone_is_itself() -> None:
    error = ValueError("planted")
    with pytest.raises(ValueError, match="planted") as caught, ungrouped(Gone):
        await fail(error, Gone())
    assert caught.value is error


async def test_several_are_one_flat_group() -> None:
    with pytest.raises(ExceptionGroup) as caught, ungrouped():
        await fail(ValueError(), TypeError())
    assert {type(each) for each in caught.value.exceptions} == {ValueError, TypeError}


async def test_an_interruption_wins() -> None:
    with pytest.raises(KeyboardInterrupt), ungrouped():
        await fail(ValueError(), KeyboardInterrupt())


async def test_what_is_ignored_ends_nothing() -> None:
    with ungrouped(Gone):
        await fail(Gone(), Gone())


async def test_a_cancellation_goes_on_whatever_is_ignored_came_with_it() -> None:
    async def gone() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise Gone

    with trio.CancelScope() as scope:
        with ungrouped(Gone):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(gone)
                nursery.start_soon(trio.sleep_forever)
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()
                await trio.sleep_forever()
        pytest.fail("the cancellation was swallowed")
    assert scope.cancelled_caught


async def test_an_error_wins_over_the_cancellation_it_came_with() -> None:
    async def break_() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("planted")

    with pytest.raises(ValueError, match="planted"), trio.CancelScope() as scope, ungrouped(Gone):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(break_)
            nursery.start_soon(trio.sleep_forever)
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
            await trio.sleep_forever()
