"""List the sample models and the pipeline that reads pages: real networks, real input."""

from __future__ import annotations

from engine.spec import Bucket, ModelSpec, PipelineSpec, StageSpec
from sample_models import ocr, samples, tokens
from sample_models.cache import CONVERTED, missing, weights_path
from sample_models.crops import CANVAS, DIRECTION_WIDTH, LINE_HEIGHT, WIDTHS

__all__ = ["MODELS", "PIPELINES"]

OCR_SOURCE = "PaddleOCR weights (Apache-2.0) from the RapidOCR packages, converted by fetch"


def _build_detector() -> object:
    from sample_models.detector_net import DetectorNet  # torch is slow to import
    from sample_models.loading import build_network

    return build_network(DetectorNet, weights_path("text_detector"))


def _build_direction() -> object:
    from sample_models.direction_net import DirectionNet  # torch is slow to import
    from sample_models.loading import build_network

    return build_network(DirectionNet, weights_path("line_direction"))


def _build_recognizer() -> object:
    from sample_models.loading import build_network  # torch is slow to import
    from sample_models.recognizer_net import RecognizerNet

    return build_network(RecognizerNet, weights_path("text_recognizer"))


def _build_digits() -> object:
    from sample_models.digits import WEIGHTS, DigitNet  # torch is slow to import
    from sample_models.loading import build_network

    return build_network(DigitNet, WEIGHTS)


def _build_ranker() -> object:
    from sample_models.ranker import build_ranker  # torch is slow to import

    return build_ranker()


def _build_embedder() -> object:
    from sample_models.embedder import build_embedder  # torch is slow to import

    folder = tokens.model_folder()
    assert folder is not None, "only listed where its package is installed"
    return build_embedder(folder)


MODELS: list[ModelSpec] = [
    ModelSpec(
        name="text_detector",
        build=_build_detector,
        buckets=(Bucket((3, CANVAS, CANVAS)),),
        inputs=samples.detector_sample,
        score=samples.detector_score,
        missing=missing("text_detector"),
        source=f"PP-OCRv4 mobile detection; {OCR_SOURCE}",
    ),
    ModelSpec(
        name="line_direction",
        build=_build_direction,
        buckets=(Bucket((3, LINE_HEIGHT, DIRECTION_WIDTH)),),
        inputs=samples.direction_sample,
        score=samples.class_score,
        missing=missing("line_direction"),
        source=f"PP-OCR mobile 2.0 angle classifier; {OCR_SOURCE}",
    ),
    ModelSpec(
        name="text_recognizer",
        build=_build_recognizer,
        buckets=tuple(Bucket((3, LINE_HEIGHT, width)) for width in WIDTHS),
        inputs=samples.recognizer_sample,
        score=samples.recognizer_score,
        missing=missing("text_recognizer"),
        source=f"PP-OCRv6 small recognition, cut to 543 Latin classes; {OCR_SOURCE}",
    ),
    ModelSpec(
        name="digit_reader",
        build=_build_digits,
        buckets=(Bucket((1, 8, 8)),),
        inputs=samples.digit_sample,
        score=samples.class_score,
        source="trained by sample_models/train_digits.py on scikit-learn's digits",
    ),
    ModelSpec(
        name="ranker",
        build=_build_ranker,
        buckets=(Bucket((samples.RANKER_WIDTH,)),),
        inputs=samples.ranker_sample,
        source="seeded random weights: three linear layers of 2048 x 2048",
    ),
]

if tokens.model_folder() is not None:
    MODELS.append(
        ModelSpec(
            name="text_embedder",
            build=_build_embedder,
            buckets=tuple(Bucket((length,), "int64") for length in tokens.LENGTHS),
            inputs=samples.embedder_sample,
            source=f"all-MiniLM-L6-v2 (Apache-2.0) from the installed package {tokens.PACKAGE}",
        )
    )

PIPELINES: list[PipelineSpec] = [
    PipelineSpec(
        name="ocr",
        start=ocr.open_page,
        stages=(
            StageSpec("detect", "text_detector", ocr.prepare_detection, ocr.combine_detection),
            StageSpec("turn", "line_direction", ocr.prepare_direction, ocr.combine_direction),
            StageSpec(
                "read", "text_recognizer", ocr.prepare_recognition, ocr.combine_recognition
            ),
        ),
        finish=ocr.close_page,
        inputs=samples.page_sample,
        score=samples.page_score,
        missing=missing(*CONVERTED),
        source=OCR_SOURCE,
    ),
]
