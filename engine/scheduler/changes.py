"""Changes: moves and conversions end, well or badly."""

from __future__ import annotations

from engine.decisions import Kind, Reason
from engine.events import ConvertFailed, ConvertFinished, FailureKind, MoveFailed, MoveFinished
from engine.scheduler.books import Change
from engine.scheduler.claims import advance
from engine.scheduler.outcomes import lose_device
from engine.scheduler.step import Step


def move_finished(step: Step, event: MoveFinished) -> None:
    """Take note of a resident's new place and go on with the claim it moved for."""
    change = step.books.changes.pop(event.move_id, None)
    if change is None:
        return
    reservation, move = change.reservation, change.move
    assert reservation is not None and move is not None, "a move is for somebody"
    device = step.books.devices[change.device]
    device.pool.moved(reservation.claim, move)
    device.moves += 1
    device.moved_bytes += move.size_bytes
    reservation.change_id = 0
    advance(step, device, reservation=reservation)
    step.changed()


def move_failed(step: Step, event: MoveFailed) -> None:
    """Leave a resident where it is and never try again; its claim ends with what it has."""
    change = step.books.changes.pop(event.move_id, None)
    if change is None:
        return
    reservation, move = change.reservation, change.move
    assert reservation is not None and move is not None, "a move is for somebody"
    device = step.books.devices[change.device]
    if event.failure is FailureKind.DEVICE_LOST:
        lose_device(step, device, message=event.message)
        return
    device.pool.residents[move.model].is_movable = False
    _say(step, change, kind=Kind.MOVE, message=event.message)
    reservation.change_id = 0
    reservation.claim.moves.clear()
    advance(step, device, reservation=reservation)
    step.changed()


def convert_finished(step: Step, event: ConvertFinished) -> None:
    """Take note of a resident's new precision and go on."""
    _converted(step, event.convert_id, message=None)


def convert_failed(step: Step, event: ConvertFailed) -> None:
    """Leave a resident's precision as it is and never try that one again."""
    change = step.books.changes.get(event.convert_id)
    if change is not None and event.failure is FailureKind.DEVICE_LOST:
        lose_device(step, step.books.devices[change.device], message=event.message)
        return
    _converted(step, event.convert_id, message=event.message)


def _converted(step: Step, convert_id: int, *, message: str | None) -> None:
    change = step.books.changes.pop(convert_id, None)
    if change is None:
        return
    conversion, device = change.conversion, step.books.devices[change.device]
    assert conversion is not None, "a conversion says what to"
    if change.scratch is not None:
        device.pool.end_lease(change.scratch)
    if message is None:
        device.conversions += 1
    else:
        model = step.books.models[conversion.model]
        model.unconvertible.add(conversion.precision)
        _say(step, change, kind=Kind.CONVERT, message=message)
    reservation = change.reservation
    if reservation is None:
        device.pool.end_growth(conversion, is_done=message is None)
    elif message is None:
        device.pool.converted(reservation.claim, conversion)
        advance(step, device, reservation=reservation)
    else:
        device.pool.not_converted(reservation.claim, conversion)
        advance(step, device, reservation=reservation)
    step.changed()


def _say(step: Step, change: Change, *, kind: Kind, message: str) -> None:
    subject = change.move or change.conversion
    assert subject is not None, "a change is one or the other"
    step.decide(
        kind,
        Reason.ERROR,
        model=subject.model,
        device=change.device,
        subject=change.id,
        numbers=(("error", " ".join(message.split())[:200]),),
    )
