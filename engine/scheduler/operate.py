"""Operate: policy versions, operator commands, devices, profiles and measured truth."""

from __future__ import annotations

from engine.decisions import Kind, Reason
from engine.events import (
    Command,
    DeviceAdded,
    HostCopyFailed,
    HostCopyFinished,
    OperatorCommand,
    PolicyChanged,
    ProfileUpdated,
    TruthSampled,
)
from engine.memory.device_pool import DevicePool
from engine.scheduler.batches import withdraw
from engine.scheduler.books import DeviceBooks
from engine.scheduler.intake import judge, open_model, refresh
from engine.scheduler.orders import evict
from engine.scheduler.precision import convert_by_hand
from engine.scheduler.room import compact_by_hand, drop_warm, settle_fence, start_load
from engine.scheduler.step import BY_HAND, FULL, Step


def device_added(step: Step, event: DeviceAdded) -> None:
    """Open a device's books."""
    books, spec = step.books, event.spec
    assert spec.name not in books.devices, "a device is added once"
    device = DeviceBooks(spec, len(books.devices), DevicePool(spec))
    books.devices[spec.name] = device
    step.decide(
        Kind.DEVICE,
        Reason.ADDED,
        device=spec.name,
        numbers=(("pool", device.pool.pool_bytes), ("kind", spec.kind)),
    )
    _set_fence(step, device)
    for lane in books.lane_list:
        judge(step, lane)
    step.changed()


def profile_updated(step: Step, event: ProfileUpdated) -> None:
    """Know a model's sizes and latency on a kind of device from now on."""
    profile = event.profile
    key = profile.key
    books = step.books
    model = books.models.get(key.model) or open_model(step, key.model)
    model.sizes[key.precision] = profile.weight_bytes
    if key.precision == FULL:
        model.weight_bytes = profile.weight_bytes
        books.profiles[key.model, key.device_kind, key.shape] = profile
    else:
        reduced = (key.model, key.device_kind, key.shape, key.precision)
        books.reduced[reduced] = profile
    for lane in model.lanes:
        judge(step, lane)
    step.changed()


def host_copy_finished(step: Step, event: HostCopyFinished) -> None:
    """Know that a model's packed weights are in host memory."""
    model = step.books.models.get(event.model) or open_model(step, event.model)
    model.host_bytes = event.size_bytes
    model.is_on_disk = event.is_on_disk


def host_copy_failed(step: Step, event: HostCopyFailed) -> None:
    """Say why a model's weights are not in host memory."""
    step.decide(
        Kind.LOAD, Reason.MODEL_FAILED, model=event.model, numbers=(("error", event.message),)
    )


def truth_sampled(step: Step, event: TruthSampled) -> None:
    """Keep what a device says of itself."""
    step.books.devices[event.device].truth_bytes = event.used_bytes


def policy_changed(step: Step, event: PolicyChanged) -> None:
    """Swap the policy between two steps; nothing that runs or waits is disturbed."""
    books, policy = step.books, event.policy
    before = books.policy.version
    books.policy = policy
    for model in books.models.values():
        model.rules = policy.rules(model.name)
        for lane in model.lanes:
            lane.follow_rules()
            lane.armed_ns = 0
            refresh(step, lane)
    for device in books.devices.values():
        if not policy.memory.preallocate:
            drop_warm(device)
        _set_fence(step, device)
    for lane in books.lane_list:
        lane.is_blocked = False
        judge(step, lane)
    step.decide(
        Kind.POLICY,
        Reason.APPLIED,
        subject=policy.version,
        numbers=(("from", before), ("author", event.author), ("why", event.reason)),
    )
    step.changed()


def _set_fence(step: Step, device: DeviceBooks) -> None:
    name, spec = device.spec.name, device.spec
    policy = step.books.policy
    wanted = policy.pool_bytes.get(name, spec.pool_bytes)
    reserve = policy.reserve_of(name, spec.reserve_bytes)
    device.pool.set_fence(max(0, min(wanted, spec.capacity_bytes - reserve)))
    settle_fence(step, device)


def operator_command(step: Step, event: OperatorCommand) -> None:
    """Do what an operator ordered, as far as nothing in use is disturbed."""
    step.decide(
        Kind.OPERATOR,
        Reason.COMMAND,
        model=event.model,
        device=event.device,
        numbers=(("command", event.command), ("author", event.author)),
    )
    match event.command:
        case Command.LOAD:
            _load_by_hand(step, event)
        case Command.EVICT:
            _evict_by_hand(step, event)
        case Command.COMPACT:
            for device in _targets(step, event):
                compact_by_hand(step, device, size_bytes=event.size_bytes)
        case Command.CONVERT:
            for device in _targets(step, event):
                convert_by_hand(step, device, event=event)
        case Command.DRAIN | Command.UNDRAIN:
            _drain(step, event)
        case Command.PAUSE | Command.RESUME:
            step.books.is_paused = event.command is Command.PAUSE
    step.changed()


def _targets(step: Step, event: OperatorCommand) -> list[DeviceBooks]:
    devices = step.books.devices.values()
    named = [d for d in devices if event.device in ("", d.spec.name) and not d.is_lost]
    return named


def _load_by_hand(step: Step, event: OperatorCommand) -> None:
    devices = [
        d
        for d in _targets(step, event)
        if event.model not in d.pool.residents and not d.is_winning(event.model)
    ]
    if not event.device:
        devices = sorted(devices, key=lambda d: (-d.pool.free_bytes, d.serial))[:1]
    for device in devices:
        if not start_load(step, device, model=event.model, urgency=BY_HAND):
            step.decide(
                Kind.ROOM,
                Reason.NO_ROOM,
                model=event.model,
                device=device.spec.name,
                numbers=(("free", device.pool.free_bytes),),
            )


def _evict_by_hand(step: Step, event: OperatorCommand) -> None:
    for device in _targets(step, event):
        for resident in list(device.pool.residents.values()):
            is_meant = event.model in ("", resident.model)
            if is_meant and resident.is_idle:
                evict(step, device, model=resident.model, reason=Reason.COMMAND)


def _drain(step: Step, event: OperatorCommand) -> None:
    for device in _targets(step, event):
        device.is_draining = event.command is Command.DRAIN
        if device.is_draining and device.prepared is not None:
            withdraw(step, device)
