"""Events wait aside: whoever has something to tell goes on at once, and what is too much is dropped and counted."""

from __future__ import annotations

import asyncio

from runtime.virtual import play
from wukong.actions import Note
from wukong.api.kinds import PODS
from wukong.api.resources import Key
from wukong.runtime.event_queue import MOST_WAITING, WRITERS, EventQueue


def a_note(number: int) -> Note:
    return Note(PODS, Key("default", f"pod-{number}"), "Scheduled", "there")


class Writer:
    """Writes as long as it is allowed to."""

    def __init__(self) -> None:
        self.begun: list[Note] = []
        self.written: list[Note] = []
        self.dropped: list[Note] = []
        self.may_write = asyncio.Event()

    async def write(self, note: Note) -> None:
        self.begun.append(note)
        await self.may_write.wait()
        self.written.append(note)


async def run_queue(writer: Writer, *notes: Note, seconds: float) -> EventQueue:
    queue = EventQueue(writer.write, writer.dropped.append)
    running = asyncio.create_task(queue.run())
    for note in notes:
        queue.put(note)
    await queue.drain(seconds)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return queue


def test_all_are_written_in_the_order_in_which_they_came() -> None:
    notes = [a_note(number) for number in range(20)]

    async def story() -> Writer:
        writer = Writer()
        writer.may_write.set()
        queue = await run_queue(writer, *notes, seconds=60)
        assert len(queue) == 0
        return writer

    writer = play(story())
    assert writer.written == notes
    assert writer.dropped == []


def test_a_few_are_under_way_at_a_time_and_nobody_waits_for_ever() -> None:
    async def story() -> tuple[Writer, int]:
        writer = Writer()
        queue = await run_queue(writer, *(a_note(number) for number in range(20)), seconds=5)
        return writer, len(queue)

    writer, waiting = play(story())
    assert (len(writer.begun), len(writer.written), waiting) == (WRITERS, 0, 20 - WRITERS)


def test_the_oldest_is_dropped_when_too_many_wait() -> None:
    async def story() -> Writer:
        writer = Writer()
        await run_queue(writer, *(a_note(number) for number in range(MOST_WAITING + 2)), seconds=0)
        return writer

    assert play(story()).dropped == [a_note(0), a_note(1)]


def test_one_that_comes_after_all_were_written_is_written_too() -> None:
    async def story() -> Writer:
        writer = Writer()
        writer.may_write.set()
        queue = EventQueue(writer.write, writer.dropped.append)
        running = asyncio.create_task(queue.run())
        for number in range(2):
            queue.put(a_note(number))
            await queue.drain(60)
            assert len(writer.written) == number + 1
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return writer

    assert play(story()).written == [a_note(0), a_note(1)]


def test_whoever_drains_it_waits_until_the_last_is_written_and_no_longer() -> None:
    async def story() -> tuple[float, int]:
        writer, clock = Writer(), asyncio.get_running_loop()
        asyncio.get_running_loop().call_later(7.0, writer.may_write.set)
        begin = clock.time()
        await run_queue(writer, a_note(0), a_note(1), seconds=60)
        return clock.time() - begin, len(writer.written)

    seconds, written = play(story())
    assert written == 2
    assert 7.0 <= seconds < 8.0
