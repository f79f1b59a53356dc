"""Counting capacity: on a fork, in chunks, with a limit, and told on the way."""

from __future__ import annotations

from builders import a_node, a_pod, apart_from
from wukong.api.objects import Objects
from wukong.engine import Scheduler, Snapshot
from wukong.engine.capacity import count_capacity, count_upper_bound


def a_scheduler(nodes: int, cpu: str = "40", pods: str = "1000") -> Scheduler:
    return Scheduler(Snapshot.of(Objects(nodes=[a_node(f"node-{n}", cpu=cpu, pods=pods) for n in range(nodes)])))


def test_the_snapshot_asked_about_stays_as_it_was() -> None:
    scheduler = a_scheduler(3)
    before = scheduler.snapshot.load.copy()
    count_capacity(scheduler, a_pod(cpu="1"))
    assert (scheduler.snapshot.load == before).all()
    assert scheduler.snapshot.pods == {}


def test_asking_again_gives_the_same_answer() -> None:
    scheduler = a_scheduler(3)
    assert count_capacity(scheduler, a_pod(cpu="1")) == count_capacity(scheduler, a_pod(cpu="1"))


def test_chunks_leave_no_seam() -> None:
    """One by one the same nodes get as many."""
    scheduler, pod = a_scheduler(7), a_pod(cpu="300m", memory="1Mi")
    fork = Scheduler(scheduler.snapshot.fork())
    placed = 0
    while fork.place(pod, key=f"default/one-{placed}"):
        placed += 1
    capacity = count_capacity(scheduler, pod)
    assert capacity.fits == placed == 7 * 133
    assert capacity.per_node == {f"node-{number}": 133 for number in range(7)}


def test_a_limit_within_a_later_chunk_is_kept() -> None:
    capacity = count_capacity(a_scheduler(3), a_pod(cpu="100m", memory="1Mi"), limit=500)
    assert (capacity.fits, capacity.is_limited, sum(capacity.per_node.values())) == (500, True, 500)


def test_progress_only_grows_and_ends_at_what_was_placed() -> None:
    told: list[tuple[int, int]] = []
    capacity = count_capacity(
        a_scheduler(3), a_pod(cpu="100m", memory="1Mi"), report_progress=lambda done, total: told.append((done, total))
    )
    assert told == sorted(told)
    assert told[-1] == (capacity.fits, capacity.fits)
    assert len(told) > 2


def test_the_bound_is_met_by_plain_pods_and_never_passed_by_others() -> None:
    scheduler = a_scheduler(4, cpu="2", pods="5")
    assert count_upper_bound(scheduler, a_pod(cpu="500m")) == count_capacity(scheduler, a_pod(cpu="500m")).fits == 16
    choosy = a_pod(cpu="500m", affinity=apart_from("web"))
    assert count_capacity(scheduler, choosy).fits == 4 <= count_upper_bound(scheduler, choosy)
    assert count_upper_bound(scheduler, a_pod(cpu="3")) == count_capacity(scheduler, a_pod(cpu="3")).fits == 0
