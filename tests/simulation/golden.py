"""Ten small simulations whose decision logs are kept.

`python -m tests.simulation.golden` writes them anew. A changed log is a
changed behaviour: look at the difference, and give it a line in the changelog.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from engine.drivers.simulated import simulate
from engine.load.scenario import Scenario, parse_scenario
from tests.simulation.scenarios import device, model, scenario

FOLDER = Path(__file__).parent / "golden"


def _eager() -> Scenario:
    return parse_scenario(scenario([model("a")], rate_hz=400, seconds=0.4))


def _patient() -> Scenario:
    return _eager().configured(["models.a.fill=patient"])


def _timeout() -> Scenario:
    marks = {"low": 4, "high": 8, "timeout_ms": 25}
    return parse_scenario(scenario([model("a", watermarks=marks)], seconds=0.8))


def _eviction() -> Scenario:
    models = [model(f"m{index}", weight_mib=9 + index) for index in range(7)]
    return parse_scenario(scenario(models, rate_hz=60))


def _classes() -> Scenario:
    models = [model("urgent", priority=0), model("lazy", priority=9)]
    return parse_scenario(scenario(models, rate_hz=900, seconds=0.3))


def _aging() -> Scenario:
    return _classes().configured(["admission.aging_ms=5"])


def _refusal() -> Scenario:
    return parse_scenario(
        scenario([model("a")], kind="gamma", cv=3, rate_hz=900, seconds=0.4)
    ).configured(["admission.queue_items=12"])


def _deadline() -> Scenario:
    return parse_scenario(scenario([model("a")], rate_hz=1000, seconds=0.2)).configured(
        ["models.a.deadline_ms=30"]
    )


def _round_robin() -> Scenario:
    devices = [device(f"gpu{index}", pool_mib=32) for index in range(3)]
    models = [model("a"), model("b"), model("c")]
    return parse_scenario(
        scenario(models, devices=devices, kind="gamma", cv=2, rate_hz=250, seconds=0.3)
    ).configured(["placement.policy=round_robin"])


def _memory_aware() -> Scenario:
    return _round_robin().configured(["placement.policy=memory_aware"])


SCENARIOS: dict[str, Callable[[], Scenario]] = {
    "eager": _eager,
    "patient": _patient,
    "timeout": _timeout,
    "eviction": _eviction,
    "classes": _classes,
    "aging": _aging,
    "refusal": _refusal,
    "deadline": _deadline,
    "round_robin": _round_robin,
    "memory_aware": _memory_aware,
}


def decisions(name: str) -> str:
    """Return a scenario's decision log without its first line.

    That one holds the hash of the policy document, which changes whenever
    the document gains a field.
    """
    pieces: list[str] = []
    simulate(SCENARIOS[name](), write=pieces.append)
    return "".join(pieces).partition("\n")[2]


def main() -> None:
    """Write all logs anew."""
    FOLDER.mkdir(exist_ok=True)
    for name in SCENARIOS:
        (FOLDER / f"{name}.txt").write_text(decisions(name), encoding="utf-8")


if __name__ == "__main__":
    main()
