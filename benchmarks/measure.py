"""What all benchmarks share: clients, medians, the machine's name, one JSON object."""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import statistics
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True, slots=True)
class Window:
    """Hold what one window of load gave."""

    per_s: float
    p50_ms: float
    p95_ms: float
    p99_ms: float


def closed_loop(
    submit: Callable[[], Awaitable[object]], clients: int, *, seconds: float
) -> Window:
    """Let asyncio clients in one loop call as fast as they are answered."""
    latencies: list[int] = []

    async def client(end_ns: int) -> None:
        now = time.perf_counter_ns()
        while now < end_ns:
            await submit()
            after = time.perf_counter_ns()
            latencies.append(after - now)
            now = after

    async def crowd() -> int:
        start = time.perf_counter_ns()
        end = start + int(seconds * 1e9)
        await asyncio.gather(*(client(end) for _ in range(clients)))
        return time.perf_counter_ns() - start

    took_ns = asyncio.run(crowd())
    return _window(latencies, took_ns)


def thread_loop(call: Callable[[], object], clients: int, *, seconds: float) -> Window:
    """Let clients with a thread each call as fast as they are answered."""
    latencies: list[int] = []
    start = time.perf_counter_ns()
    end = start + int(seconds * 1e9)

    def client() -> None:
        now = time.perf_counter_ns()
        while now < end:
            call()
            after = time.perf_counter_ns()
            latencies.append(after - now)
            now = after

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return _window(latencies, time.perf_counter_ns() - start)


def _window(latencies_ns: list[int], took_ns: int) -> Window:
    latencies_ns.sort()

    def at(share: float) -> float:
        return latencies_ns[min(len(latencies_ns) - 1, int(len(latencies_ns) * share))] / 1e6

    return Window(len(latencies_ns) / (took_ns / 1e9), at(0.5), at(0.95), at(0.99))


def median(values: list[float]) -> float:
    """Return the median."""
    return statistics.median(values)


def machine() -> dict[str, object]:
    """Name the machine, so that nobody compares figures of two."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = [line for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = lines[0].split(":", 1)[1].strip() if lines else model
    return {
        "cpu": model,
        "cores": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "python": platform.python_version(),
        "load_average": round(psutil.getloadavg()[0], 2),
    }


def arguments(description: str, *, rounds: int, seconds: float) -> argparse.Namespace:
    """Read the options that all benchmarks have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", metavar="FILE", help="write one JSON object; - is stdout")
    parser.add_argument("--rounds", type=int, default=rounds, help="interleaved rounds")
    parser.add_argument("--seconds", type=float, default=seconds, help="per window")
    return parser.parse_args()


def report(result: Mapping[str, object], target: str | None) -> None:
    """Print the result, or write it where `--json` says."""
    text = json.dumps({**result, "machine": machine()}, indent=2)
    if target in (None, "-"):
        print(text)
    else:
        Path(str(target)).write_text(text + "\n")
        print(f"written to {target}", file=sys.stderr)
