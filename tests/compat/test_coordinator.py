"""`tf.train.Coordinator`: threads that share a session stop together."""

import sys
import threading
from collections.abc import Callable

import pytest

import mirrored.compat.v1 as tf


def started(count: int, work: Callable[[int], None]) -> list[threading.Thread]:
    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for each in threads:
        each.start()
    return threads


def test_workers_count_to_a_number() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(0)
        add = v.assign_add(1)
        session.run(v.initializer)
        coord = tf.train.Coordinator()

        def work(_: int) -> None:
            while not coord.should_stop():
                if session.run(add) >= 50:
                    coord.request_stop()

        coord.join(started(3, work))
        assert (coord.joined, coord.should_stop()) == (True, True)
        assert 50 <= session.run(v) < 54
        coord.clear_stop()
        assert not coord.should_stop()


def test_the_first_error_is_raised() -> None:
    coord = tf.train.Coordinator(clean_stop_exception_types=(StopIteration,))

    def work(i: int) -> None:
        with coord.stop_on_exception():
            if i == 0:
                raise StopIteration
            assert coord.wait_for_stop(5)
            coord.request_stop(ValueError("late"))

    coord.join(started(2, work))
    coord.clear_stop()
    try:
        raise OSError("broken")
    except OSError:
        coord.request_stop(sys.exc_info())
    with pytest.raises(OSError, match="broken"):
        coord.join()


def test_threads_that_go_on() -> None:
    coord, end = tf.train.Coordinator(), threading.Event()
    (thread,) = started(1, lambda _: end.wait(5) and None)
    coord.register_thread(thread)
    coord.request_stop()
    with pytest.raises(RuntimeError, match="Coordinator stopped with threads still running: Thr"):
        coord.join(stop_grace_period_secs=0.0)
    end.set()
    thread.join()
