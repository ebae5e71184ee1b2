"""Runbook child: executes one notebook in this process's kernel and prints its progress.

    python -m ops.runbook_child notebook.ipynb executed.ipynb report.html parameters.json

One JSON object per line on stdout: `begun` with the number of cells, `cell`
after each, `ended` with the error, if any. The parent reads them; a person can
too. It is a process of its own because a kernel's event loop, memory and
processor time do not belong into a server.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbconvert import HTMLExporter
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook

START_TIMEOUT_S = 60
NICE = 10
_NO_NETWORK = {"mathjax_url": "", "require_js_url": "", "mermaid_js_url": ""}
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Notebook:
    """Hold one notebook on its way: source, parameters, and where its results go."""

    def __init__(self, source: Path, executed: Path, *, report: Path) -> None:
        """Read it."""
        self._source = source
        self._executed = executed
        self._report = report
        # papermill's own reading adds the metadata that setting parameters looks for.
        self._notebook = load_notebook_node(str(source))

    def run(self, parameters: dict[str, object]) -> str:
        """Execute all cells, then write notebook and report, however it ended.

        Returns:
            The error of the cell that failed; "" if none did.
        """
        if parameters:
            self._notebook = parameterize_notebook(self._notebook, parameters)
        cells = self._notebook.cells
        code = [cell for cell in cells if cell.cell_type == "code"]
        say("begun", cells=len(code))
        done = 0

        def ended(execute_reply: Mapping[str, Mapping[str, object]], **_: object) -> None:
            nonlocal done
            done += execute_reply["content"]["status"] == "ok"
            self._write()  # after each cell, so that a failure leaves evidence
            say("cell", done=done)

        client = NotebookClient(
            self._notebook,
            timeout=None,  # the parent has a limit for the whole
            startup_timeout=START_TIMEOUT_S,
            kernel_name="python3",
            resources={"metadata": {"path": str(self._source.parent)}},
        )
        client.on_cell_executed = ended
        try:
            client.execute()
        except (CellExecutionError, DeadKernelError) as error:
            return _short(error)
        finally:
            self._write()
            self._render()
        return ""

    def _write(self) -> None:
        # nbformat and nbconvert have types for some of their functions, not for these.
        nbformat.write(self._notebook, self._executed)  # type: ignore[no-untyped-call]

    def _render(self) -> None:
        """Write the report; nothing in it is fetched from elsewhere when it is opened."""
        exporter = HTMLExporter(  # type: ignore[no-untyped-call]
            template_name="lab", **_NO_NETWORK
        )
        body, _ = exporter.from_notebook_node(self._notebook)
        self._report.write_text(body, encoding="utf-8")


def say(event: str, **fields: object) -> None:
    """Print one line of progress."""
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def _short(error: CellExecutionError | DeadKernelError) -> str:
    """Return what was raised, in one line and without colours."""
    if isinstance(error, CellExecutionError):
        text = f"{error.ename}: {error.evalue}" if error.evalue else error.ename
    else:
        text = str(error)
    return " ".join(_COLOURS.sub("", text).split())


def main(arguments: list[str]) -> int:
    """Execute the notebook that the arguments name."""
    source, executed, report, parameters = map(Path, arguments)
    os.nice(NICE)
    os.environ.setdefault("PLOTLY_RENDERER", "notebook")  # charts that need no network
    notebook = Notebook(source, executed, report=report)
    error = notebook.run(json.loads(parameters.read_text(encoding="utf-8")))
    say("ended", error=error)
    return 1 if error else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
