"""The whole core as a state machine: no byte is lost or held twice, no request is forgotten."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from engine.effects import ConvertWeights, EvictWeights, LoadWeights, MoveWeights, RunBatch
from engine.events import (
    CancelRequested,
    Command,
    ConvertFailed,
    ConvertFinished,
    DeviceLost,
    EvictFinished,
    FailureKind,
    LoadFailed,
    LoadFinished,
    MoveFailed,
    MoveFinished,
    OperatorCommand,
    TimePassed,
)
from engine.policy import Policy
from engine.rules import RUNGS
from engine.units import MIB
from tests.engine.scheduler.table import Table
from tests.properties.places import check_places, check_ranges, ranges

MODELS = ("a", "b", "c", "d")
MEMORY = st.fixed_dictionaries(
    {
        "eviction": st.sampled_from(["lru", "cost_aware", "priority_lru"]),
        "ladder": st.permutations(["smaller_batch", "evict", "convert", "compact"]).flatmap(
            lambda ways: st.integers(0, 4).map(lambda n: (*ways[n:], "wait"))
        ),
        "protect_idle_ms": st.sampled_from([0.0, 5.0]),
        "min_residence_ms": st.sampled_from([0.0, 5.0]),
        "compaction_mib_per_s": st.sampled_from([0.0, 50.0, 4096.0]),
        "preallocate": st.booleans(),
        "restore_share": st.sampled_from([0.0, 0.3]),
    }
)
FAILURES = st.sampled_from([FailureKind.ERROR, FailureKind.OUT_OF_MEMORY])


class CoreMachine(RuleBasedStateMachine):
    """Play callers, devices and an operator against a core, in any order."""

    @initialize(
        placement=st.sampled_from(["round_robin", "least_loaded", "memory_aware"]),
        fill=st.sampled_from(["eager", "patient"]),
        pool_mib=st.integers(20, 60),
        devices=st.integers(1, 3),
        memory=MEMORY,
    )
    def open(
        self, placement: str, fill: str, pool_mib: int, devices: int, memory: dict[str, object]
    ) -> None:
        policy = Policy().replace(
            default={
                "low": 2,
                "high": 4,
                "timeout_ms": 5,
                "fill": fill,
                "precisions": ("fp32", "bf16", "int8"),
            },
            models={"d": {"quota_mib": 19.0, "precisions": ("fp32",)}},
            placement={"policy": placement},
            admission={"queue_items": 12},
            memory=memory,
        )
        self.table = Table(policy, devices=devices, pool_mib=pool_mib)
        self.lanes = [
            self.table.model(name, weight_mib=6 + 3 * index)
            for index, name in enumerate(MODELS)
        ]
        for index, name in enumerate(MODELS):
            self.table.reduced(name, weight_mib=6 + 3 * index)
        self.changes: list[MoveWeights | ConvertWeights] = []
        self.places: dict[tuple[str, str], tuple[int, int]] = {}
        self.running: list[RunBatch] = []
        self.loads: list[LoadWeights] = []
        self.evictions: list[EvictWeights] = []
        self.lost: set[str] = set()
        self.ended: dict[int, str] = {}

    def look(self) -> None:
        """Collect what the core ordered."""
        table = self.table
        self.running += table.batches()
        self.loads += table.take(LoadWeights)
        self.evictions += table.take(EvictWeights)
        self.changes += [*table.take(MoveWeights), *table.take(ConvertWeights)]
        for request_id in table.resolved():
            assert request_id not in self.ended, "a request ends once"
            self.ended[request_id] = "completed"
        for request_id, outcome, _ in table.rejected():
            assert request_id not in self.ended, "a request ends once"
            self.ended[request_id] = outcome
        table.log.clear()

    @rule(
        model=st.integers(0, 3),
        items=st.integers(1, 6),
        priority_class=st.integers(0, 9),
        deadline_ms=st.none() | st.integers(1, 30),
    )
    def submit(
        self, model: int, items: int, priority_class: int, deadline_ms: int | None
    ) -> None:
        table = self.table
        now_ms = table.now_ns / 1e6
        table.submit(
            self.lanes[model],
            items=items,
            priority_class=priority_class,
            deadline_ms=None if deadline_ms is None else now_ms + deadline_ms,
        )
        self.look()

    @rule(ms=st.integers(1, 8))
    def let_time_pass(self, ms: int) -> None:
        self.table.at(self.table.now_ns / 1e6 + ms).tell(TimePassed())
        self.look()

    @precondition(lambda self: self.running)
    @rule(data=st.data(), is_good=st.booleans(), failure=FAILURES)
    def end_a_batch(self, data: st.DataObject, is_good: bool, failure: FailureKind) -> None:
        batch = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        if is_good:
            self.table.finish(batch)
        else:
            self.table.fail(batch, failure)
        self.look()

    @precondition(lambda self: self.loads)
    @rule(data=st.data(), is_good=st.booleans())
    def end_a_load(self, data: st.DataObject, is_good: bool) -> None:
        load = self.loads.pop(data.draw(st.integers(0, len(self.loads) - 1)))
        if is_good:
            self.places[load.device, load.model] = (load.offset, load.size_bytes)
            self.table.tell(LoadFinished(load.load_id, 1, load.size_bytes))
        else:
            self.table.tell(LoadFailed(load.load_id, 1, FailureKind.ERROR, "OSError: gone"))
        self.look()

    @precondition(lambda self: self.evictions)
    @rule(data=st.data())
    def end_an_eviction(self, data: st.DataObject) -> None:
        eviction = self.evictions.pop(data.draw(st.integers(0, len(self.evictions) - 1)))
        del self.places[eviction.device, eviction.model]
        self.table.tell(EvictFinished(eviction.eviction_id, 1, eviction.size_bytes))
        self.look()

    @precondition(lambda self: self.changes)
    @rule(data=st.data(), is_good=st.booleans())
    def end_a_change(self, data: st.DataObject, is_good: bool) -> None:
        change = self.changes.pop(data.draw(st.integers(0, len(self.changes) - 1)))
        self.end_change(change, is_good)
        self.look()

    def end_change(self, change: MoveWeights | ConvertWeights, is_good: bool) -> None:
        error, table = FailureKind.ERROR, self.table
        where = (change.device, change.model)
        if isinstance(change, MoveWeights):
            if is_good:
                self.places[where] = (change.new_offset, change.size_bytes)
                table.tell(MoveFinished(change.move_id, 1, change.size_bytes))
            else:
                table.tell(MoveFailed(change.move_id, 1, error, "OSError: stuck"))
        elif is_good:
            self.places[where] = (change.new_offset, change.new_size_bytes)
            table.tell(ConvertFinished(change.convert_id, 1, change.new_size_bytes))
        else:
            table.tell(ConvertFailed(change.convert_id, 1, error, "ValueError: odd"))

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        if self.table.requests:
            self.table.tell(CancelRequested(data.draw(st.sampled_from([*self.table.requests]))))
            self.look()

    @rule(
        command=st.sampled_from(
            [Command.LOAD, Command.EVICT, Command.DRAIN, Command.UNDRAIN, Command.COMPACT]
        ),
        model=st.sampled_from(MODELS),
    )
    def order(self, command: Command, model: str) -> None:
        device = "sim:0" if command in (Command.DRAIN, Command.UNDRAIN) else ""
        self.table.tell(OperatorCommand(command, "ada", model, device))
        self.look()

    @rule(model=st.sampled_from(MODELS), precision=st.sampled_from(["fp32", "bf16", "int8"]))
    def order_a_conversion(self, model: str, precision: str) -> None:
        order = OperatorCommand(Command.CONVERT, "ada", model, "", precision=precision)
        self.table.tell(order)
        self.look()

    @rule(pool_mib=st.integers(12, 60))
    def move_the_fence(self, pool_mib: int) -> None:
        policy = self.table.policy.replace(devices={"sim:0": {"pool_mib": pool_mib}})
        self.table.apply(policy)
        self.look()

    @precondition(lambda self: len(self.table.snapshot().memory.devices) > 1)
    @rule()
    def lose_a_device(self) -> None:
        self.table.tell(DeviceLost("sim:1", "xid 79"))
        self.places = {k: v for k, v in self.places.items() if k[0] != "sim:1"}
        self.look()
        for orders in (self.running, self.loads, self.evictions, self.changes):
            orders[:] = [order for order in orders if order.device != "sim:1"]

    @invariant()
    def books_balance(self) -> None:
        if not hasattr(self, "table"):
            return
        snapshot = self.table.snapshot()
        for device in snapshot.memory.devices:
            blocks = [block for block in device.blocks if block.kind != "guard"]
            ends = [(block.offset, block.offset + block.size_bytes) for block in blocks]
            for (_, end), (start, _) in pairwise(ends):
                assert end <= start, "blocks and holes do not overlap"
            held = sum(b.size_bytes for b in blocks if b.kind != "hole")
            assert held + device.free_bytes == device.pool_bytes
            assert device.free_bytes == sum(device.holes)
            assert device.resident_bytes % 512 == 0
            assert device.capacity_bytes >= device.pool_bytes + 2 * MIB
            orders = [*self.loads, *self.changes, *self.running]
            check_ranges(ranges(device.name, self.places, orders=orders))
            check_places(device, self.places)
        waiting = sum(lane.queued_items for lane in snapshot.lanes)
        assert waiting >= 0
        assert sum(m.queued_items for m in snapshot.models) == waiting
        for model in snapshot.models:
            counted = model.counters
            ended = (
                counted.completed
                + counted.failed
                + counted.refused
                + counted.expired
                + counted.cancelled
            )
            open_requests = [
                r
                for r in self.table.requests.values()
                if r.lane.model == model.name and r.id not in self.ended
            ]
            assert counted.submitted == ended + len(open_requests)

    def teardown(self) -> None:
        """Let everything end: then nothing waits, nothing is leased."""
        if not hasattr(self, "table"):
            return
        table = self.table
        table.tell(OperatorCommand(Command.UNDRAIN, "ada", "", "sim:0"))
        memory = {"preallocate": False, "ladder": RUNGS}
        table.apply(table.policy.replace(devices={"sim:0": {"pool_mib": 60}}, memory=memory))
        for _ in range(100):
            self.look()
            table.at(table.now_ns / 1e6 + 10).tell(TimePassed())
            self.look()
            for eviction in self.evictions:
                table.tell(EvictFinished(eviction.eviction_id, 1, eviction.size_bytes))
            for load in self.loads:
                table.tell(LoadFinished(load.load_id, 1, load.size_bytes))
            for batch in self.running:
                table.finish(batch)
            for change in self.changes:
                self.end_change(change, is_good=True)
            self.running, self.loads, self.evictions, self.changes = [], [], [], []
        self.look()
        assert not [r for r in table.requests if r not in self.ended], "nobody waits for ever"
        assert all(d.lease_bytes == 0 for d in table.snapshot().memory.devices)


CoreMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestCoreMachine = CoreMachine.TestCase
