"""Fetch the OCR weights and the page photograph: `python -m sample_models.fetch`."""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sample_models import cache

if TYPE_CHECKING:  # torch is slow to import
    from torch import nn

CONVERTER = "2"  # raised when the converter's result changes, so that caches are renewed
DOWNLOAD_TIMEOUT_S = 600

# A data file is the same in every build of a package, so one build is asked
# for by name: the pinned hash then holds on any machine and Python.
DOWNLOAD = (
    "download",
    "--quiet",
    "--disable-pip-version-check",
    "--no-input",
    "--no-deps",
    "--only-binary=:all:",
    "--python-version=3.11",
    "--implementation=cp",
    "--abi=cp311",
    "--platform=manylinux_2_28_x86_64",
)


class FetchError(Exception):
    """Say in one line why the set-up of the weights failed and what to do."""


@dataclass(frozen=True, slots=True)
class Source:
    """Name a file inside a pinned package and where it is kept."""

    package: str
    member: str
    sha256: str
    target: Callable[[], Path]


SOURCES = (
    Source(
        "rapidocr-onnxruntime==1.4.4",
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
        "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9",
        lambda: cache.graph_path("text_detector"),
    ),
    Source(
        "rapidocr==3.10.0",
        "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx",
        "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
        lambda: cache.graph_path("line_direction"),
    ),
    Source(
        "rapidocr==3.10.0",
        "rapidocr/models/PP-OCRv6_rec_small.onnx",
        "6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884",
        lambda: cache.graph_path("text_recognizer"),
    ),
    Source(
        "scikit-image==0.26.0",
        "skimage/data/page.png",
        "341a6f0a61557662b02734a9b6e56ec33a915b2c41886b97509dedf2a43b47a3",
        cache.photograph_path,
    ),
)


def fetch(say: Callable[[str], None]) -> None:
    """Bring the cache up to date; what is there and right is left alone.

    Args:
        say: Takes one line per step.

    Raises:
        FetchError: A download or a check failed; finished files stay.
    """
    wanted = [source for source in SOURCES if not _is_right(source)]
    for package in dict.fromkeys(source.package for source in wanted):
        say(f"downloading {package}")
        members = [source for source in wanted if source.package == package]
        with tempfile.TemporaryDirectory() as folder:
            _extract(_download(package, Path(folder)), members)
    for name in cache.CONVERTED:
        say(f"{name}: {'converted' if _convert(name) else 'ready'}")
    say(f"page photograph: ready\nfetched files are in {cache.cache_folder()}")


def _is_right(source: Source) -> bool:
    path = source.target()
    return path.is_file() and _sha256(path.read_bytes()) == source.sha256


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _download(package: str, folder: Path) -> Path:
    """Return the package's archive, downloaded into `folder` and not installed."""
    command = [sys.executable, "-m", "pip", *DOWNLOAD, "--dest", str(folder), package]
    try:
        subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=DOWNLOAD_TIMEOUT_S
        )
    except (subprocess.SubprocessError, OSError) as error:
        said = str(getattr(error, "stderr", None) or error).strip().splitlines()
        raise FetchError(
            f"could not download {package} ({said[-1] if said else error}): "
            f"check the network, then run `{cache.FETCH}` again"
        ) from error
    return next(folder.glob("*.whl"))


def _extract(archive: Path, sources: Sequence[Source]) -> None:
    """Copy the wanted files out of an archive, each checked before it is kept."""
    with zipfile.ZipFile(archive) as package:
        for source in sources:
            content = package.read(source.member)
            found = _sha256(content)
            if found != source.sha256:
                raise FetchError(
                    f"{source.member} of {source.package} has sha256 {found[:12]}..., wanted "
                    f"{source.sha256[:12]}...: the package is not the pinned one, do not use it"
                )
            _write(source.target(), content)


def _write(path: Path, content: bytes) -> None:
    """Write a file in one step, so that a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_bytes(content)
    unfinished.replace(path)


def _convert(name: str) -> bool:
    """Convert one graph; return False if the converted weights were up to date."""
    graph, weights = cache.graph_path(name), cache.weights_path(name)
    made_from = {"sha256": _sha256(graph.read_bytes()), "converter": CONVERTER}
    if _metadata(weights) == made_from and not cache.missing(name):
        return False
    try:
        from sample_models import convert  # onnx is a set-up extra
        from sample_models.loading import save_weights  # torch is slow to import

        units = convert.read_units(graph)
        if name == "text_recognizer":
            characters = convert.read_characters(graph)
            classes = convert.latin_classes(characters)
            convert.cut_classes(units, classes)
            kept = json.dumps([characters[index] for index in classes], ensure_ascii=False)
            _write(cache.charset_path(), kept.encode())
        state = convert.pair_weights(_networks()[name](), units)
    except ImportError as error:
        raise FetchError(
            f"cannot convert {name} ({error}): run `{sys.executable} -m pip install onnx`, "
            f"then `{cache.FETCH}` again"
        ) from error
    save_weights(state, weights, metadata=made_from)
    return True


def _networks() -> dict[str, Callable[[], nn.Module]]:
    from sample_models.detector_net import DetectorNet  # torch is slow to import
    from sample_models.direction_net import DirectionNet
    from sample_models.recognizer_net import RecognizerNet

    return {
        "text_detector": DetectorNet,
        "line_direction": DirectionNet,
        "text_recognizer": RecognizerNet,
    }


def _metadata(path: Path) -> dict[str, str]:
    """Return what converted weights were made from; nothing if they are missing or broken."""
    from safetensors import SafetensorError, safe_open  # only needed here

    try:
        with safe_open(path, framework="numpy") as weights:
            return dict(weights.metadata() or {})
    except (OSError, SafetensorError):
        return {}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the set-up from the command line and return its exit status."""
    parser = argparse.ArgumentParser(prog=cache.FETCH, description=__doc__)
    parser.add_argument(
        "--optional", action="store_true", help="exit with 0 even when the set-up fails"
    )
    options = parser.parse_args(arguments)
    try:
        fetch(lambda line: print(line, flush=True))
    except FetchError as error:
        print(f"weights not fetched: {error}", file=sys.stderr)
        return 0 if options.optional else 1
    except OSError as error:
        print(
            f"weights not fetched: cannot write {cache.cache_folder()} ({error}): make it "
            "writable or set MILLPOND_CACHE to another folder",
            file=sys.stderr,
        )
        return 0 if options.optional else 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
