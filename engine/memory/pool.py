"""Pool: the books of one device's memory - residents, leases and what is being won."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.memory.arena import Arena
from engine.memory.eviction import Candidate, Window, lru, plan_budget, plan_window
from engine.spec import DeviceSpec
from engine.units import align_up

ALIGNMENT = 512


@dataclass(slots=True)
class Resident:
    """Hold the books of one model's weights on a device.

    Attributes:
        is_ready: The load has ended; before that nothing can run on it.
        is_leaving: Its eviction is under way; its bytes are still held.
        users: Batches that run or are prepared on it.
    """

    model: str
    offset: int
    size_bytes: int
    serial: int
    loaded_ns: int = 0
    last_used_ns: int = 0
    precision: str = "fp32"
    is_ready: bool = False
    is_leaving: bool = False
    users: int = 0


@dataclass(frozen=True, slots=True)
class Lease:
    """Show the workspace of one batch; without an offset it is a budget."""

    size_bytes: int
    offset: int | None


@dataclass(frozen=True, slots=True)
class Plan:
    """Say how a wanted number of bytes can be had.

    Attributes:
        victims: Models to evict first, in that order; none: it fits as it is.
        window: Start and end of the range that the victims open, if an address is wanted.
    """

    victims: tuple[str, ...] = ()
    window: tuple[int, int] | None = None


@dataclass(slots=True)
class Claim:
    """Hold bytes that are being won until the last victim is gone.

    The window is one held block from the decision on, so that nobody else
    can take a part of it; bytes without an address are counted as `won_bytes`
    and grow as the victims leave.
    """

    size_bytes: int
    window: tuple[int, int] | None
    waiting_for: set[str]
    won_bytes: int = 0


@dataclass(slots=True)
class Pool:
    """Keep one device's books: held + free = pool, after every step.

    Weights have addresses in the arena. Leases have addresses too where the
    device wants it; elsewhere they are a budget of the same pool, or of the
    part of it that is set aside for them.
    """

    spec: DeviceSpec
    arena: Arena = field(init=False)
    residents: dict[str, Resident] = field(default_factory=dict)
    lease_bytes: int = 0
    won_bytes: int = 0
    loads: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Lay out the arena: all of the pool, less what is set aside for leases."""
        self.arena = Arena(self.spec.pool_bytes - self.set_aside_bytes, ALIGNMENT)

    @property
    def pool_bytes(self) -> int:
        """Return the bytes that residents and leases share now.

        More than the target while blocks still lie beyond a fence that came down.
        """
        return self.arena.free_bytes + self.arena.held_bytes + self.set_aside_bytes

    @property
    def target_bytes(self) -> int:
        """Return the bytes that residents and leases may share: where the fence stands."""
        return self.arena.fence_bytes - self.arena.guard_bytes + self.set_aside_bytes

    @property
    def set_aside_bytes(self) -> int:
        """Return the part of the pool that only budgeted leases may use."""
        return self.spec.workspace_bytes or 0

    @property
    def over_bytes(self) -> int:
        """Return the bytes that must go for the fence to hold."""
        return max(0, self.pool_bytes - self.target_bytes, -self.free_bytes)

    def set_fence(self, pool_bytes: int | None) -> None:
        """Move the fence; None: as far as the arena goes.

        What lies beyond stays until somebody evicts it.
        """
        arena = self.arena
        if pool_bytes is None:
            arena.set_fence(arena.size_bytes)
            return
        fence = arena.guard_bytes + pool_bytes - self.set_aside_bytes
        arena.set_fence(min(arena.size_bytes, max(arena.guard_bytes, fence)))

    def is_beyond_fence(self, offset: int, size_bytes: int) -> bool:
        """Return whether a block reaches beyond the fence."""
        return offset + size_bytes > self.arena.fence_bytes

    def leaving_bytes(self) -> int:
        """Return the bytes of residents whose eviction is under way."""
        return sum(r.size_bytes for r in self.residents.values() if r.is_leaving)

    def reset(self) -> None:
        """Forget everything: the device is lost with all that was on it."""
        fence = self.target_bytes
        self.residents.clear()
        self.lease_bytes = self.won_bytes = 0
        self.__post_init__()
        self.set_fence(fence)

    @property
    def free_bytes(self) -> int:
        """Return the bytes of the pool that nobody holds; negative while a fence comes down."""
        budgeted = 0 if self.spec.addressed else self.lease_bytes
        return self.arena.free_bytes + self.set_aside_bytes - budgeted - self.won_bytes

    @property
    def lease_room_bytes(self) -> int:
        """Return the bytes that a new lease could have without evicting anything."""
        if self.spec.addressed:
            return self.arena.largest_hole_bytes
        if self.spec.workspace_bytes is not None:
            return self.spec.workspace_bytes - self.lease_bytes
        return self.free_bytes

    @property
    def weight_room_bytes(self) -> int:
        """Return the free bytes that weights could use, wherever they lie."""
        if self.spec.addressed or self.spec.workspace_bytes is not None:
            return self.arena.free_bytes
        return self.free_bytes

    def max_lease_bytes(self, weight_bytes: int) -> int:
        """Return the largest lease beside these weights alone; negative if they do not fit."""
        left = self.arena.fence_bytes - self.arena.guard_bytes
        left -= align_up(weight_bytes, ALIGNMENT)
        if self.spec.workspace_bytes is None:
            return left
        return self.spec.workspace_bytes if left >= 0 else -1

    def has_room(self, size_bytes: int) -> bool:
        """Return whether weights of that size fit as it is."""
        return size_bytes <= self.weight_room_bytes and self.arena.can_fit(size_bytes)

    def plan_weights(self, size_bytes: int, candidates: list[Candidate]) -> Plan | None:
        """Return the cheapest way to a hole for weights; None if there is none.

        Args:
            candidates: Residents that may be evicted for it.
        """
        size_bytes = align_up(size_bytes, ALIGNMENT)
        if self.has_room(size_bytes):
            return Plan()
        order = lru(candidates)
        short = size_bytes - self.weight_room_bytes
        if (window := self._plan_window(order, size_bytes)) is None:
            return None
        victims = window.victims
        # A hole is not enough where leases are a budget of the same bytes.
        won = sum(c.size_bytes for c in candidates if c.model in victims)
        rest = [c for c in order if c.model not in victims]
        if (more := plan_budget(rest, short - won) if short > won else ()) is None:
            return None
        return Plan((*victims, *more), (window.start, window.end))

    def plan_lease(self, size_bytes: int, candidates: list[Candidate]) -> Plan | None:
        """Return the cheapest way to the bytes of a lease; None if there is none."""
        if size_bytes <= self.lease_room_bytes:
            return Plan()
        if self.spec.workspace_bytes is not None:
            return None
        order = lru(candidates)
        if self.spec.addressed:
            size_bytes = align_up(size_bytes, ALIGNMENT)
            window = self._plan_window(order, size_bytes)
            return None if window is None else Plan(window.victims, (window.start, window.end))
        victims = plan_budget(order, size_bytes - self.lease_room_bytes)
        return None if victims is None else Plan(victims)

    def _plan_window(self, order: list[Candidate], size_bytes: int) -> Window | None:
        arena = self.arena
        return plan_window(
            arena.holes(), order, size_bytes=size_bytes, fence_bytes=arena.fence_bytes
        )

    def claim(self, size_bytes: int, plan: Plan) -> Claim:
        """Start winning bytes: the victims are leaving, what is free already is taken.

        Returns:
            The claim; its bytes count as held from now on.
        """
        assert plan.victims, "without victims the bytes can be had at once"
        for model in plan.victims:
            self.residents[model].is_leaving = True
        if plan.window is None:
            won = sum(self.residents[model].size_bytes for model in plan.victims)
            free_now = max(0, size_bytes - won)
            self.won_bytes += free_now
            return Claim(size_bytes, None, set(plan.victims), free_now)
        start, end = plan.window
        for model in plan.victims:
            resident = self.residents[model]
            if start <= resident.offset < end:
                self.arena.free(resident.offset)
        self.arena.allocate_at(start, end - start)
        return Claim(size_bytes, plan.window, set(plan.victims))

    def victim_gone(self, claim: Claim, model: str) -> bool:
        """Take note that a victim's weights are gone; return whether it was the last."""
        resident = self.residents.pop(model)
        claim.waiting_for.discard(model)
        window = claim.window
        if window is None:
            self.arena.free(resident.offset)
            self.won_bytes += resident.size_bytes
            claim.won_bytes += resident.size_bytes
        elif not window[0] <= resident.offset < window[1]:
            self.arena.free(resident.offset)
        return not claim.waiting_for

    def give_up(self, claim: Claim) -> None:
        """Let go of what a claim without victims left to wait for has won."""
        assert not claim.waiting_for, "victims on their way out are still held"
        if claim.window is None:
            self.won_bytes -= claim.won_bytes
            claim.won_bytes = 0
        else:
            self.arena.free(claim.window[0])

    def start_load(self, model: str, size_bytes: int, *, serial: int) -> Resident:
        """Give a model's weights a block; they are on their way."""
        assert model not in self.residents, "a model is resident once per device"
        offset = self.arena.allocate(size_bytes)
        resident = Resident(model, offset, align_up(size_bytes, ALIGNMENT), serial)
        self.residents[model] = resident
        return resident

    def remove(self, model: str) -> None:
        """Free a resident's block."""
        self.arena.free(self.residents.pop(model).offset)

    def start_lease(self, size_bytes: int) -> Lease:
        """Take the bytes of a lease that fits now."""
        assert size_bytes <= self.lease_room_bytes, "a lease is planned before it is taken"
        if not self.spec.addressed:
            self.lease_bytes += size_bytes
            return Lease(size_bytes, None)
        size_bytes = align_up(size_bytes, ALIGNMENT)
        self.lease_bytes += size_bytes
        return Lease(size_bytes, self.arena.allocate(size_bytes, end="high"))

    def shrink_lease(self, lease: Lease, size_bytes: int) -> Lease:
        """Give back the part of a lease that its batch does not need."""
        if lease.offset is not None:
            size_bytes = align_up(size_bytes, ALIGNMENT)
        if size_bytes >= lease.size_bytes:
            return lease
        if lease.offset is not None:
            self.arena.shrink(lease.offset, size_bytes)
        self.lease_bytes -= lease.size_bytes - size_bytes
        return Lease(size_bytes, lease.offset)

    def end_lease(self, lease: Lease) -> None:
        """Give a lease back."""
        self.lease_bytes -= lease.size_bytes
        if lease.offset is not None:
            self.arena.free(lease.offset)
