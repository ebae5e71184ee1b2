"""Pool: misuse is refused with a sentence, and what was held stays held."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.errors import InputError
from engine.memory.pool import Pool


def test_only_a_lease_can_be_ended_and_only_once() -> None:
    pool = Pool(4096)
    offset = pool.request("a", 1024)
    with pytest.raises(InputError, match="found no lease"):
        pool.end(offset)
    lease = pool.lease("batch", 512)
    pool.end(lease)
    with pytest.raises(InputError, match="found no lease"):
        pool.end(lease)
    assert pool.blocks() == [(offset, 1024, "a")]


@pytest.mark.parametrize("size", [0, -1, 1.5, float("nan")])
def test_a_size_is_a_whole_number_of_bytes(size: int) -> None:
    pool = Pool(4096)
    for call in (pool.request, pool.lease):
        with pytest.raises(InputError, match="whole number of bytes"):
            call("a", size)
    assert pool.available() == 4096


@pytest.mark.parametrize(
    "change",
    [
        lambda pool: pool.request("z", 512),
        lambda pool: pool.lease("z", 512),
        lambda pool: pool.release("b"),
        lambda pool: pool.use("b"),
    ],
)
def test_a_pool_is_not_changed_from_inside_its_callbacks(
    change: Callable[[Pool], object],
) -> None:
    pool = Pool(4096)
    pool.on_evict = lambda _: change(pool)
    pool.request("a", 2048)
    pool.request("b", 2048)
    before = pool.blocks()
    with pytest.raises(InputError, match="inside on_evict"):
        pool.request("c", 4096)
    assert pool.blocks() == before
    pool.on_evict = None
    pool.request("c", 4096)
    assert pool.holds("c")


def test_owners_that_nobody_asks_for_any_more_are_forgotten() -> None:
    pool = Pool(4096, window=10)
    for n in range(10_000):
        pool.request(f"o{n}", 4096)
    assert len(pool._demand) < 5000
    with pytest.raises(InputError):
        pool.request("large", 0)
    assert "large" not in pool._demand
