"""Threads that wait for each other: groups, refusals, and Ctrl-C in the thread that has the lead."""

import os
import signal
import threading
import time

import pytest

from saver.errors import InvalidData, StoreFailed
from saver.journal import writing as turns_of
from saver.journal.writing import Outcome, Turns


def together(count, work):
    """So many threads at once; what each found, or its error."""
    found, ready = [None] * count, threading.Barrier(count)

    def one(i):
        ready.wait()
        try:
            found[i] = work(i)
        except (InvalidData, StoreFailed) as error:
            found[i] = str(error)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
        assert not thread.is_alive()
    return found


def test_who_waits_is_done_together_and_each_gets_its_own():
    sizes = []

    def group(works):
        sizes.append(len(works))
        time.sleep(0.01)  # a commit
        return [Outcome(work(), None) for work in works]

    turns = Turns(group)

    def work(i):
        return [turns.do(lambda k=k: (i, k)) for k in range(10)]

    assert together(8, work) == [[(i, k) for k in range(10)] for i in range(8)]
    assert sum(sizes) == 80
    assert len(sizes) <= 25  # ten rounds of eight; alone they would be 80


def test_as_many_as_before_are_waited_for_and_no_longer(monkeypatch):
    monkeypatch.setattr(turns_of, "GATHER", 30.0)
    sizes, begun, inside = [], threading.Event(), threading.Barrier(3)

    def group(works):
        sizes.append(len(works))
        if len(sizes) == 1:
            begun.set()
            inside.wait(
                10
            )  # two more come meanwhile: the next group has two, and the one after waits for two
            time.sleep(0.05)
        return [Outcome(work(), None) for work in works]

    turns, began = Turns(group), time.monotonic()

    def ask(i):
        if i:
            begun.wait(10)
            inside.wait(10)
        return [turns.do(lambda: i) for _ in range(1 if i == 0 else 3)]

    assert together(3, ask) == [[0], [1] * 3, [2] * 3]
    assert sizes == [1, 2, 2, 2]
    assert time.monotonic() - began < 10.0  # who comes last wakes the one that waits


def test_one_that_is_refused_hurts_no_other():
    def group(works):
        time.sleep(0.005)
        refused = InvalidData("no")
        return [Outcome(None, refused) if work() == 3 else Outcome(work(), None) for work in works]

    turns = Turns(group)
    assert together(6, lambda i: turns.do(lambda: i)) == [0, 1, 2, "no", 4, 5]


def test_a_group_that_fails_tells_all_of_it_and_the_next_goes_on():
    failing = [True]

    def group(works):
        time.sleep(0.005)
        if failing[0]:
            raise StoreFailed("the disk is full")
        return [Outcome(work(), None) for work in works]

    turns = Turns(group)
    assert set(together(5, lambda i: turns.do(lambda: i))) == {"the disk is full"}
    failing[0] = False
    assert together(5, lambda i: turns.do(lambda: i)) == [0, 1, 2, 3, 4]


def test_the_next_group_is_worked_out_while_one_goes_to_the_disk_and_none_is_answered_before():
    at_the_disk, second, on_disk = threading.Event(), threading.Event(), []

    def flush():
        if not at_the_disk.is_set():
            at_the_disk.set()
            assert second.wait(10)  # a leader that keeps the lead would never get there
            assert 1 not in answers
        on_disk.append(threading.current_thread().name)

    turns, answers = Turns(lambda works: [Outcome(work(), None) for work in works], flush), []
    first = threading.Thread(target=lambda: answers.append(turns.do(lambda: 1)), name="first")
    first.start()
    assert at_the_disk.wait(10)
    other = threading.Thread(target=lambda: answers.append(turns.do(second.set)), name="other")
    other.start()
    for thread in (first, other):
        thread.join(timeout=10)
        assert not thread.is_alive()
    assert sorted(on_disk) == ["first", "other"]
    assert len(answers) == 2


def test_a_group_that_does_not_get_to_the_disk_is_told_so_and_the_next_goes_on():
    failing = [True]

    def flush():
        time.sleep(0.005)
        if failing[0]:
            raise StoreFailed("the disk is broken")

    turns = Turns(lambda works: [Outcome(work(), None) for work in works], flush)
    assert set(together(5, lambda i: turns.do(lambda: i))) == {"the disk is broken"}
    failing[0] = False
    assert together(5, lambda i: turns.do(lambda: i)) == [0, 1, 2, 3, 4]


def test_after_closing_everyone_is_told():
    turns = Turns(lambda works: [Outcome(work(), None) for work in works])
    turns.close()
    with pytest.raises(StoreFailed, match="the leader was closed"):
        turns.do(lambda: 1)


@pytest.mark.skipif(
    signal.getsignal(signal.SIGINT) is not signal.default_int_handler, reason="Ctrl-C is ignored here"
)
def test_ctrl_c_in_the_thread_that_leads_comes_after_its_group_and_nobody_hangs():
    pressed = threading.Event()

    def group(works):
        if not pressed.is_set() and threading.current_thread() is threading.main_thread():
            os.kill(os.getpid(), signal.SIGINT)
            pressed.set()
            time.sleep(0.02)
        return [Outcome(work(), None) for work in works]

    turns, others = Turns(group), []
    thread = threading.Thread(target=lambda: others.extend(turns.do(lambda k=k: k) for k in range(50)))
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        [turns.do(lambda: None) for _ in range(2000)]
    thread.join(timeout=10)
    assert not thread.is_alive()
    assert others == list(range(50))
    assert turns.do(lambda: "on") == "on"


@pytest.mark.skipif(
    signal.getsignal(signal.SIGINT) is not signal.default_int_handler, reason="Ctrl-C is ignored here"
)
def test_ctrl_c_while_waiting_takes_the_request_back():
    done, busy = [], threading.Event()

    def group(works):
        busy.set()
        time.sleep(0.3)
        return [Outcome(work(), None) for work in works]

    turns = Turns(group)
    thread = threading.Thread(target=lambda: turns.do(lambda: done.append("first")))
    thread.start()
    busy.wait()
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        turns.do(lambda: done.append("second"))
    thread.join(timeout=10)
    assert turns.do(lambda: "on") == "on"
    assert done == ["first"]
