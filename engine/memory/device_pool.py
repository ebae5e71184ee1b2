"""Device pool: the books of one device's memory - residents, leases, bytes being won."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.memory.arena import Arena
from engine.memory.holdings import ALIGNMENT, Claim, Conversion, Lease, Move, Plan, Resident
from engine.spec import DeviceSpec
from engine.units import align_up


@dataclass(slots=True)
class DevicePool:
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

    def claim(self, size_bytes: int, plan: Plan) -> Claim:
        """Start winning bytes: victims are leaving, movers wait, what is free is taken.

        Returns:
            The claim; its bytes count as held from now on.
        """
        assert not plan.is_free, "such bytes can be had at once"
        claim = Claim(size_bytes, plan.window, set(plan.victims), moves=list(plan.moves))
        for model in plan.victims:
            self.residents[model].is_leaving = True
        for conversion in plan.conversions:
            self._start_in_place(claim, conversion)
        if plan.window is None:
            won = sum(self.residents[model].size_bytes for model in plan.victims)
            won += sum(c.size_bytes - c.new_size_bytes for c in plan.conversions)
            claim.won_bytes = max(0, size_bytes - won)
            self.won_bytes += claim.won_bytes
            return claim
        self._open_window(claim, plan)
        return claim

    def _open_window(self, claim: Claim, plan: Plan) -> None:
        assert plan.window is not None, "bytes without an address have no window"
        start, end = plan.window
        for model in plan.victims:
            resident = self.residents[model]
            if claim.holds_inside(resident.offset):
                self.arena.free(resident.offset)
        for resident in self.residents.values():
            is_victim = resident.model in plan.victims
            if not is_victim and claim.holds_inside(resident.offset):
                resident.is_changing = True
                claim.movers.append(resident.model)
                self.arena.free(resident.offset)
        self.arena.allocate_at(start, end - start)

    def _start_in_place(self, claim: Claim, conversion: Conversion) -> None:
        """Hold what a resident will give up as a block of its own until it has."""
        resident = self.residents[conversion.model]
        resident.is_changing = True
        kept = conversion.new_size_bytes
        tail = resident.offset + kept
        parts = ((resident.offset, kept), (tail, conversion.size_bytes - kept))
        self.arena.split(resident.offset, parts)
        claim.tails.append(tail)
        claim.converting[conversion.model] = conversion

    def victim_gone(self, claim: Claim, model: str) -> None:
        """Take note that a victim's weights are gone."""
        resident = self.residents.pop(model)
        claim.waiting_for.discard(model)
        if claim.window is None:
            self.arena.free(resident.offset)
            self.won_bytes += resident.size_bytes
            claim.won_bytes += resident.size_bytes
        elif not claim.holds_inside(resident.offset):
            self.arena.free(resident.offset)

    def moved(self, claim: Claim, move: Move) -> None:
        """Take note that the next of a claim's moves is done."""
        assert claim.moves and claim.moves[0] is move, "moves are done in order"
        claim.moves.pop(0)
        self.residents[move.model].offset = move.new_offset

    def converted(self, claim: Claim, conversion: Conversion) -> None:
        """Take note that a resident has become smaller."""
        del claim.converting[conversion.model]
        resident = self.residents[conversion.model]
        resident.size_bytes = conversion.new_size_bytes
        resident.precision = conversion.precision
        resident.is_changing = False

    def not_converted(self, claim: Claim, conversion: Conversion) -> None:
        """Give a resident its whole block back: it kept its precision."""
        del claim.converting[conversion.model]
        resident = self.residents[conversion.model]
        claim.tails.remove(resident.offset + conversion.new_size_bytes)
        self.arena.join(resident.offset)
        resident.is_changing = False

    def give_up(self, claim: Claim) -> None:
        """Let go of what a claim with nothing left to wait for has won."""
        assert not (claim.waiting_for or claim.converting), "bytes on their way out are held"
        self.won_bytes -= claim.won_bytes
        claim.won_bytes = 0
        for tail in claim.tails:
            self.arena.free(tail)
        claim.tails.clear()
        if claim.window is None:
            return
        movers = [self.residents[model] for model in claim.movers]
        for resident in movers:
            resident.is_changing = False
        self.arena.split(claim.window[0], sorted((r.offset, r.size_bytes) for r in movers))

    def start_growth(self, model: str, precision: str, *, size_bytes: int) -> Conversion:
        """Take a second block in which a resident gets a higher precision."""
        resident = self.residents[model]
        resident.is_changing = True
        size_bytes = align_up(size_bytes, ALIGNMENT)
        offset = self.arena.allocate(size_bytes)
        return Conversion(
            model, precision, resident.offset, offset, resident.size_bytes, size_bytes
        )

    def end_growth(self, conversion: Conversion, *, is_done: bool) -> None:
        """Free the block that a resident does not lie in after its precision was raised."""
        resident = self.residents[conversion.model]
        resident.is_changing = False
        if not is_done:
            self.arena.free(conversion.new_offset)
            return
        self.arena.free(conversion.offset)
        resident.offset, resident.size_bytes = conversion.new_offset, conversion.new_size_bytes
        resident.precision = conversion.precision

    def start_load(self, model: str, size_bytes: int, *, serial: int) -> Resident:
        """Give a model's weights a block; they are on their way."""
        assert model not in self.residents, "a model is resident once per device"
        size_bytes = align_up(size_bytes, ALIGNMENT)
        offset = self.arena.allocate(size_bytes)
        resident = Resident(model, offset, size_bytes, serial, full_bytes=size_bytes)
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
