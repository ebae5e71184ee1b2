"""Bad calls: what a caller can get wrong, the error's kind, and what its one line says."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from engine.errors import EngineError, InputError, PolicyError, StoreError
from engine.load.plan import LoadPlan
from ops.station import Station

DIGIT = np.zeros((1, 1, 8, 8), np.float32)

CALLS: dict[str, tuple[Callable[[Station], object], type[EngineError], str]] = {
    "unknown model": (
        lambda s: s.engine.infer("digit_raeder", DIGIT),
        InputError,
        "digit_raeder: no such model; there are digit_reader",
    ),
    "wrong shape": (
        lambda s: s.engine.infer("digit_reader", np.zeros((1, 8, 8), np.float32)),
        InputError,
        "digit_reader: found float32 (1, 8, 8), wanted float32 (items, 1, 8, 8)",
    ),
    "wrong dtype": (
        lambda s: s.engine.infer("digit_reader", DIGIT.astype(np.float64)),
        InputError,
        "digit_reader: found float64 (1, 1, 8, 8), wanted float32 (items, 1, 8, 8)",
    ),
    "no array": (
        lambda s: s.engine.infer("digit_reader", [[0.0]]),
        InputError,
        "digit_reader: wanted an array or tensor, found list",
    ),
    "no items": (
        lambda s: s.engine.infer("digit_reader", DIGIT[:0]),
        InputError,
        "digit_reader: the input has no items; its first axis is 0",
    ),
    "class out of range": (
        lambda s: s.engine.infer("digit_reader", DIGIT, priority_class=10),
        InputError,
        "priority_class: found 10, wanted 0 to 9",
    ),
    "NaN deadline": (
        lambda s: s.engine.infer("digit_reader", DIGIT, deadline_ms=math.nan),
        InputError,
        "deadline_ms: found nan, wanted more than 0",
    ),
    "NaN watermark": (
        lambda s: s.engine.policy.replace(models={"digit_reader": {"low": math.nan}}),
        PolicyError,
        "models.digit_reader.low: ",
    ),
    "NaN timeout": (
        lambda s: s.engine.policy.replace(models={"digit_reader": {"timeout_ms": math.nan}}),
        PolicyError,
        "models.digit_reader.timeout_ms: ",
    ),
    "low above high": (
        lambda s: s.engine.policy.replace(models={"digit_reader": {"low": 9, "high": 4}}),
        PolicyError,
        "models.digit_reader: low (9) is above high (4); lower low or raise high",
    ),
    "negative rate": (
        lambda s: s.loads.start(LoadPlan("digit_reader", rate_hz=-1), author="ada"),
        InputError,
        "rate_hz: found -1, wanted 0.001 to 1e+06",
    ),
    "NaN rate": (
        lambda s: s.loads.start(LoadPlan("digit_reader", rate_hz=math.nan), author="ada"),
        InputError,
        "rate_hz: found nan, wanted 0.001 to 1e+06",
    ),
    "load on an unknown model": (
        lambda s: s.loads.start(LoadPlan("nobody"), author="ada"),
        InputError,
        "nobody: no such model or pipeline; there are digit_reader",
    ),
    "an edit of an old version": (
        lambda s: s.apply(s.engine.policy, author="ada", reason="late", expected_version=99),
        PolicyError,
        "policy: the edit is based on version 99, version 0 is in force",
    ),
    "a device that is not there": (
        lambda s: s.apply(
            s.engine.policy.replace(devices={"cuda:7": {"pool_mib": 64}}),
            author="ada",
            reason="typo",
            expected_version=s.engine.policy.version,
        ),
        PolicyError,
        "devices.cuda:7: no such device; there are cpu:0",
    ),
    "a pool larger than the arena": (
        lambda s: s.apply(
            s.engine.policy.replace(devices={"cpu:0": {"pool_mib": 1e6}}),
            author="ada",
            reason="greed",
            expected_version=s.engine.policy.version,
        ),
        PolicyError,
        "devices.cpu:0.pool_mib: found 1e+06, the arena was made for 64",
    ),
    "no such run": (
        lambda s: s.export(10_000, "nowhere", format="csv"),
        StoreError,
        "10000",
    ),
    "no such notebook": (
        lambda s: s.runbooks.start("nothing", author="ada"),
        InputError,
        "nothing: no such notebook; there are",
    ),
}
