"""Make pages whose text is known: rendered invoices, and a photograph where it was fetched."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from sample_models.cache import photograph_path

PHOTOGRAPH_TEXT = """\
Region-based segmentation
Let us first determine markers of the coins and the
background. These markers are pixels that we can label
unambiguously as either object or background. Here,
the markers are found at the two extreme parts of the
histogram of grey values:
>>> markers = np.zeros_like(coins)"""

PAPER = (250, 248, 242)
INK = (32, 32, 40)
MARGIN = 28
LARGEST_TURN_DEGREES = 9.0
LARGEST_NOISE = 12.0
UPSIDE_DOWN_SHARE = 0.125

SELLERS = ("Northwind Tools", "Harbour Paper Works", "Meadow Seed Company", "Brass and Bolt")
STREETS = ("14 Mill Lane", "203 Station Road", "7 Old Harbour Street", "58 Garden Avenue")
TOWNS = ("Ashford", "Brighton", "Carlisle", "Durham", "Exeter")
GOODS = (
    "copper valve", "steel bracket", "garden hose", "paper roll", "oak panel", "seed tray",
    "hinge set", "paint brush", "work lamp", "rubber seal", "glass jar", "drill bit",
)  # fmt: skip
NOTES = (
    "Please pay within 30 days.",
    "Goods remain ours until paid in full.",
    "Thank you for your order.",
    "Questions? Call us before noon.",
)


@dataclass(frozen=True, slots=True, eq=False)
class KnownPage:
    """Hold a page image, uint8 (height, width, 3) RGB, and its text."""

    image: NDArray[np.uint8]
    text: str


@dataclass(frozen=True, slots=True)
class Look:
    """Say how an invoice is drawn.

    Attributes:
        font_px: Height of the font, 12 to 40.
        turn_degrees: Counter-clockwise.
        noise: Standard deviation of the grey values' noise.
        is_upside_down: Turned by half a circle at last.
    """

    font_px: int = 22
    turn_degrees: float = 0.0
    noise: float = 0.0
    is_upside_down: bool = False


def photograph() -> KnownPage | None:
    """Return the photograph of a printed page, None where it was not fetched."""
    path = photograph_path()
    if not path.is_file():
        return None
    with Image.open(path) as picture:
        return KnownPage(np.asarray(picture.convert("RGB")), PHOTOGRAPH_TEXT)


def sample_page(seed: int) -> KnownPage:
    """Return a page by seed: even ones the photograph where it is, the others invoices."""
    page = photograph() if seed % 2 == 0 else None
    return page or invoice(seed)


def invoice(seed: int, look: Look | None = None) -> KnownPage:
    """Return an invoice with text and look by seed; the same seed draws the same page.

    Args:
        seed: Any whole number.
        look: Overrides the look that the seed gives.
    """
    chance = random.Random(seed)
    lines = invoice_lines(chance)
    seeded = Look(
        chance.randint(16, 28),
        chance.uniform(-LARGEST_TURN_DEGREES, LARGEST_TURN_DEGREES),
        chance.uniform(0.0, LARGEST_NOISE),
        chance.random() < UPSIDE_DOWN_SHARE,
    )
    noise_seed = chance.getrandbits(32)
    return KnownPage(draw_page(lines, look or seeded, noise_seed=noise_seed), "\n".join(lines))


def invoice_lines(chance: random.Random) -> list[str]:
    """Return 6 to 12 lines of an invoice."""
    prices = [chance.randint(120, 9900) for _ in range(chance.randint(1, 6))]
    counts = [chance.randint(1, 20) for _ in prices]
    goods = chance.sample(GOODS, len(prices))
    total = sum(count * price for count, price in zip(counts, prices, strict=True))
    items = [
        f"{count} x {good} at {price / 100:.2f} EUR"
        for count, good, price in zip(counts, goods, prices, strict=True)
    ]
    return [
        f"{chance.choice(SELLERS)}, {chance.choice(STREETS)}, {chance.choice(TOWNS)}",
        f"Invoice {chance.randint(1000, 9999)} of {chance.randint(1, 28)} March 2026",
        f"Customer number {chance.randint(10_000, 99_999)}",
        *items,
        f"Total amount due: {total / 100:.2f} EUR",
        chance.choice(NOTES),
        *([f"Account {chance.randint(10**7, 10**8 - 1)}"] if chance.random() < 0.5 else []),
    ]


def draw_page(lines: list[str], look: Look, *, noise_seed: int) -> NDArray[np.uint8]:
    """Return the lines as they look on paper, uint8 (height, width, 3)."""
    font = ImageFont.load_default(look.font_px)
    pitch = round(look.font_px * 1.7)
    width = round(max((font.getbbox(line)[2] for line in lines), default=0)) + 2 * MARGIN
    page = Image.new("RGB", (width, pitch * len(lines) + 2 * MARGIN), PAPER)
    pen = ImageDraw.Draw(page)
    for index, line in enumerate(lines):
        pen.text((MARGIN, MARGIN + index * pitch), line, INK, font)
    page = page.rotate(
        look.turn_degrees, Image.Resampling.BICUBIC, expand=True, fillcolor=PAPER
    )
    if look.is_upside_down:
        page = page.transpose(Image.Transpose.ROTATE_180)
    pixels = np.asarray(page).astype(np.float32)
    noise = np.random.default_rng(noise_seed).normal(0.0, look.noise, pixels.shape[:2])
    return (pixels + noise[:, :, None]).clip(0, 255).astype(np.uint8)
