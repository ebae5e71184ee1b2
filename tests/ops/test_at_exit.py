"""At exit: a script that forgets to close its station ends all the same, and keeps its data."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from ops.at_exit import Closer
from ops.machine import ROOT
from storage import Store

PATIENCE_S = 120.0
FORGETFUL = """
import sys
from ops import Station
from ops.models import resolve
catalog = resolve(["sample_models"]).only("digit_reader")
station = Station.open(store=sys.argv[1], devices="cpu:1x64MiB", models=catalog)
spec = station.engine.models["digit_reader"]
station.engine.infer("digit_reader", spec.inputs(0).payload)
"""


class Closed:
    """Count how often it was closed."""

    def __init__(self) -> None:
        self.times = 0

    def close(self) -> None:
        self.times += 1


def test_what_is_open_at_the_end_is_closed_and_what_was_removed_is_not() -> None:
    may_end = threading.Event()
    main = threading.Thread(target=may_end.wait)
    main.start()
    closer, left, removed = Closer(main), Closed(), Closed()
    closer.add(left)
    closer.add(removed)
    closer.remove(removed)
    assert left.times == 0
    may_end.set()
    assert closer._thread is not None
    closer._thread.join()
    assert (left.times, removed.times) == (1, 0)


def test_a_forgetful_script_ends_and_its_second_is_stored(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/left.db"
    done = subprocess.run(
        [sys.executable, "-c", FORGETFUL, url],
        cwd=ROOT,
        timeout=PATIENCE_S,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    with Store.open(url) as store:
        rows = store.model_series(0, 2**52)
    assert sum(row.completed for row in rows) == 1
