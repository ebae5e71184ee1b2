"""Runtime: the one station of this process, kept where a reload of modules cannot reach it."""

from __future__ import annotations

import logging
import sys
import threading
import types
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, cast

from engine.errors import EngineError, InputError
from ops.options import Options
from ops.station import Station

_HOLDER = "_millpond_holder"
_LOG = logging.getLogger("millpond.runtime")


class State(NamedTuple):
    """Say how the station of this process stands, with a sentence for pages."""

    phase: Literal["stopped", "starting", "running", "failed"]
    message: str


class Stopped(InputError):
    """Say that a start was called off."""


STOPPED = State("stopped", "the station is not running")


@dataclass(slots=True)
class _Held:
    station: Station | None = None
    state: State = STOPPED
    must_stop: bool = False
    thread: threading.Thread | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    is_decided: threading.Event = field(default_factory=threading.Event)


def start(options: Options) -> Station:
    """Open the station, or return the one that is there.

    Raises:
        InputError: A device or module that is not there.
        StoreError: The store cannot be read, or another process owns it.
    """
    start_in_background(options)
    _held().is_decided.wait()
    return get()


def start_in_background(options: Options) -> None:
    """Begin to open the station and return at once; `state` tells how far it is.

    A server answers while models are built: whoever watches it sees that it lives.
    """
    held = _held()
    with held.lock:
        if held.state.phase in ("starting", "running"):
            return
        held.state = State("starting", "starting")
        held.must_stop = False
        held.is_decided.clear()
        held.thread = threading.Thread(
            target=_open, args=(held, options), name="millpond-start"
        )
        held.thread.start()


def state() -> State:
    """Return how the station stands."""
    return _held().state


def get() -> Station:
    """Return the station.

    Raises:
        InputError: It is not running; says whether it will be.
    """
    held = _held()
    if held.station is not None:
        return held.station
    phase, message = held.state
    hint = "; try again in a moment" if phase == "starting" else ""
    raise InputError(f"the station is {phase}: {message}{hint}")


def stop() -> None:
    """Close the station, or call its start off; idempotent."""
    held = _held()
    held.must_stop = True
    _close(held)
    if held.thread is not None and held.thread is not threading.current_thread():
        held.thread.join()
    _close(held)  # it may have been ready at the very moment
    with held.lock:
        if held.state.phase != "failed":
            held.state = State("stopped", "the station was stopped")


def _open(held: _Held, options: Options) -> None:
    try:
        station = _try_open(held, options)
    finally:
        held.is_decided.set()
    if station is not None:
        _get_ready(station)


def _try_open(held: _Held, options: Options) -> Station | None:
    def progress(line: str) -> None:
        if held.must_stop:
            raise Stopped("the start was called off")
        _LOG.info("%s", line)
        held.state = State("starting", line)

    try:
        station = Station.open(
            store=options.store,
            devices=options.devices,
            models=options.models,
            progress=progress,
        )
    except EngineError as error:
        _LOG.error("millpond cannot start: %s", error)
        held.state = State("failed", str(error))
        return None
    except Exception as error:  # noqa: BLE001  a server must say why it has no station
        _LOG.exception("millpond cannot start")
        held.state = State("failed", f"{type(error).__name__}: {error}")
        return None
    held.station = station
    held.state = State("running", f"started with {len(station.engine.models)} models")
    _LOG.info("running: %s", held.state.message)
    return station


def _get_ready(station: Station) -> None:
    """Measure what the default load may ask for, before somebody waits for it."""
    try:
        plan = station.loads.default_plan()
    except EngineError as error:
        _LOG.info("the default load is not known: %s", error)
        return
    _LOG.info("default load: %s at %g per second", plan.target, plan.rate_hz)


def _close(held: _Held) -> None:
    with held.lock:
        station, held.station = held.station, None
    if station is not None:
        station.close()


def _held() -> _Held:
    """Return the holder; a module without a file is never purged by a reload."""
    module = sys.modules.setdefault(_HOLDER, types.ModuleType(_HOLDER))
    held = module.__dict__.setdefault("held", _Held())
    return cast(_Held, held)  # after a reload its class is the one before, with the same fields
