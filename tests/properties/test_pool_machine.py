"""A machine that does anything to a pool over real bytes, compared with a plain dict."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from engine.errors import InputError, OutOfMemoryError
from engine.memory.eviction import EVICTIONS
from engine.memory.owners import Reload
from engine.memory.pool import ALIGNMENT, Pool

UNITS = 40
SIZE = UNITS * ALIGNMENT
OWNERS = [f"o{n}" for n in range(9)]
owners, units = st.sampled_from(OWNERS), st.integers(1, 18)


class PoolMachine(RuleBasedStateMachine):
    """Hold what each owner was given in a dict; every unit of the range says whose it is."""

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[str, tuple[int, int]] = {}
        self.leases: dict[int, int] = {}
        self.classes: dict[str, int] = {}
        self.users: dict[str, int] = {}
        self.memory: list[str] = [""] * UNITS
        self.asks_with = 9
        self.moved = self.evicted = 0

    @initialize(
        eviction=st.sampled_from(sorted(EVICTIONS)),
        moves=st.booleans(),
        move_ns=st.sampled_from([0.0, 1e3]),
    )
    def make(self, eviction: str, moves: bool, move_ns: float) -> None:
        self.pool = Pool(
            SIZE + 13,
            eviction=eviction,
            on_evict=self.evict,
            on_move=self.move if moves else None,
            reload=Reload(move_ns_per_byte=move_ns),
        )

    def evict(self, owner: str) -> None:
        assert not self.users.get(owner)
        assert self.classes[owner] >= self.asks_with
        self.wipe(owner)
        self.evicted += 1

    def move(self, owner: str, offset: int, new_offset: int) -> None:
        assert not self.users.get(owner)
        at, size = self.held[owner]
        assert at == offset
        self.wipe(owner)
        self.write(owner, new_offset, size)
        self.moved += size

    def write(self, owner: str, offset: int, size: int) -> None:
        first, last = offset // ALIGNMENT, (offset + size) // ALIGNMENT
        assert self.memory[first:last] == [""] * (last - first), "nobody else's bytes"
        self.memory[first:last] = [owner] * (last - first)
        self.held[owner] = offset, size

    def wipe(self, owner: str) -> None:
        offset, size = self.held.pop(owner)
        first, last = offset // ALIGNMENT, (offset + size) // ALIGNMENT
        self.memory[first:last] = [""] * (last - first)

    def reachable(self, owner: str, least_class: int) -> int:
        """Return the bytes that are free or held by those who may go."""
        return self.pool.available() + sum(
            size
            for name, (_, size) in self.held.items()
            if name != owner and not self.users.get(name) and self.classes[name] >= least_class
        )

    @rule(owner=owners, size=units, priority_class=st.integers(0, 9))
    def request(self, owner: str, size: int, priority_class: int) -> None:
        self.asks_with = priority_class
        wanted, before = size * ALIGNMENT, (dict(self.held), list(self.memory))
        reachable = self.reachable(owner, priority_class)
        if owner in self.held and wanted > self.held[owner][1]:
            with pytest.raises(InputError, match="release it first"):
                self.pool.request(owner, wanted, priority_class=priority_class)
            return
        try:
            offset = self.pool.request(owner, wanted - 7, priority_class=priority_class)
        except OutOfMemoryError:
            assert (self.held, self.memory) == before
            assert owner not in self.held
            return
        assert owner in before[0] or wanted <= reachable
        if owner in before[0]:
            assert self.held[owner][0] == offset
        else:
            self.write(owner, offset, wanted)
        self.classes[owner] = priority_class

    @rule(size=st.integers(1, 6))
    def lease(self, size: int) -> None:
        self.asks_with = 0
        before = (dict(self.held), list(self.memory))
        try:
            offset = self.pool.lease("batch", size * ALIGNMENT)
        except OutOfMemoryError:
            assert (self.held, self.memory) == before
            return
        first = offset // ALIGNMENT
        assert self.memory[first : first + size] == [""] * size
        self.memory[first : first + size] = ["batch"] * size
        self.leases[offset] = size

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        offset = data.draw(st.sampled_from(sorted(self.leases)))
        size, first = self.leases.pop(offset), offset // ALIGNMENT
        self.memory[first : first + size] = [""] * size
        self.pool.end(offset)

    @rule(owner=owners)
    def use(self, owner: str) -> None:
        if owner in self.held:
            self.pool.use(owner)
            self.users[owner] = self.users.get(owner, 0) + 1
        else:
            with pytest.raises(InputError, match="holds nothing"):
                self.pool.use(owner)

    @rule(owner=owners)
    def done(self, owner: str) -> None:
        if owner in self.held and self.users.get(owner):
            self.pool.done(owner)
            self.users[owner] -= 1
        else:
            with pytest.raises(InputError):
                self.pool.done(owner)

    @rule(owner=owners)
    def release(self, owner: str) -> None:
        if owner in self.held:
            self.wipe(owner)
            self.users.pop(owner, None)
        self.pool.release(owner)

    @invariant()
    def the_pool_holds_what_the_dict_holds(self) -> None:
        if not hasattr(self, "pool"):
            return
        blocks = self.pool.blocks()
        mine = [(offset, size, name) for name, (offset, size) in self.held.items()]
        lent = [(offset, size * ALIGNMENT, "batch") for offset, size in self.leases.items()]
        assert blocks == sorted(mine + lent)
        assert self.pool.available() == SIZE - sum(size for _, size, _ in blocks)
        assert self.pool.available() == self.memory.count("") * ALIGNMENT
        assert all(self.pool.offset(name) == at for name, (at, _) in self.held.items())
        assert [self.pool.holds(name) for name in OWNERS] == [n in self.held for n in OWNERS]
        counts = self.pool.counts
        assert (counts.evictions, counts.moved_bytes) == (self.evicted, self.moved)


PoolMachine.TestCase.settings = settings(stateful_step_count=60)
TestPoolMachine = PoolMachine.TestCase
