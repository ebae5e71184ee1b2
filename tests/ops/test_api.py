"""API: state, chart script and reports, through the routes that the launcher adds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field

import pytest
from starlette.applications import Starlette

from engine.errors import InputError
from ops import runtime
from ops.api import routes
from ops.options import Options


@dataclass
class Answer:
    """Collect what an application sends."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes = b""

    def json(self) -> dict[str, object]:
        found = json.loads(self.content)
        assert isinstance(found, dict)
        return found

    async def send(self, message: MutableMapping[str, object]) -> None:
        if message["type"] == "http.response.start":
            status, headers = message["status"], message["headers"]
            assert isinstance(status, int) and isinstance(headers, list)
            self.status = status
            self.headers = {name.decode(): value.decode() for name, value in headers}
        else:
            body = message.get("body", b"")
            assert isinstance(body, bytes)
            self.content += body


def get(path: str) -> Answer:
    """Ask the routes for a path, as a server would."""
    answer = Answer()

    async def receive() -> MutableMapping[str, object]:
        return {"type": "http.request", "body": b""}

    scope = {
        "type": "http",
        "asgi": {"spec_version": "2.4"},  # without it, files wait for a disconnect as well
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [],
    }
    asyncio.run(Starlette(routes=routes())(scope, receive, answer.send))
    return answer


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Options:
    folder = tmp_path_factory.mktemp("runtime")
    (folder / "tiny_models.py").write_text(
        "from sample_models import MODELS as ALL\n"
        "MODELS = [spec for spec in ALL if spec.name == 'digit_reader']\n"
    )
    return Options(f"sqlite:///{folder}/r.db", "cpu:1x64MiB", (str(folder / "tiny_models.py"),))


@pytest.fixture
def _running(options: Options) -> Iterator[None]:
    runtime.start(options)
    yield
    runtime.stop()


def test_without_a_station_the_state_says_so_and_reports_are_not_there() -> None:
    assert get("/api/status").json()["state"] == "stopped"
    assert get("/reports/x.html").status == 503
    with pytest.raises(InputError, match="the station is stopped"):
        runtime.get()


@pytest.mark.usefixtures("_running")
def test_a_running_station_shows_devices_models_and_load() -> None:
    assert runtime.state().phase == "running"
    found = get("/api/status").json()
    assert found["state"] == "running"
    assert [device["name"] for device in found["devices"]] == ["cpu:0"]
    assert [model["name"] for model in found["models"]] == ["digit_reader"]
    assert found["store_is_ok"] is True
    assert found["load"] is None


@pytest.mark.usefixtures("_running")
def test_reports_are_served_by_name_only_and_in_a_sandbox() -> None:
    folder = runtime.get().runbooks.folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "one-1.html").write_text("<p>hello</p>")
    (folder.parent / "secret.html").write_text("secret")
    answer = get("/reports/one-1.html")
    assert answer.content == b"<p>hello</p>"
    assert answer.headers["content-security-policy"] == "sandbox allow-scripts"
    for name in ("two.html", "../secret.html", ".hidden.html", "one-1.ipynb"):
        assert get(f"/reports/{name}").status == 404


def test_the_chart_script_comes_from_the_package_and_may_be_kept() -> None:
    answer = get("/assets/plotly.min.js")
    assert answer.headers["content-type"].startswith("text/javascript")
    assert "max-age=604800" in answer.headers["cache-control"]
    assert len(answer.content) > 1_000_000


def test_a_start_that_fails_is_a_state_with_one_line(options: Options) -> None:
    bad = Options(options.store, "gpu", options.models)
    with pytest.raises(InputError, match="the station is failed: devices: found 'gpu'"):
        runtime.start(bad)
    assert runtime.state().phase == "failed"
    runtime.stop()
    runtime.start(options)
    assert runtime.state().phase == "running"
    runtime.stop()
    assert runtime.state().phase == "stopped"


def test_a_stop_during_the_start_calls_it_off(options: Options) -> None:
    runtime.start_in_background(options)
    runtime.stop()
    assert runtime.state().phase in ("failed", "stopped")
    with pytest.raises(InputError):
        runtime.get()
