"""Fit rotated rectangles around points and put them in reading order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Rectangle:
    """Hold a rotated rectangle by its centre and its two half sides as vectors."""

    centre: Points
    along: Points
    across: Points

    @property
    def sides(self) -> tuple[float, float]:
        """Return the lengths of its sides."""
        return 2 * float(np.hypot(*self.along)), 2 * float(np.hypot(*self.across))

    def grown(self, distance: float) -> Rectangle:
        """Return it with every side moved outwards by `distance`."""
        along, across = (
            vector * (1 + distance / max(float(np.hypot(*vector)), 1e-9))
            for vector in (self.along, self.across)
        )
        return Rectangle(self.centre, along, across)

    def corners(self) -> Points:
        """Return its corners `(4, 2)`: top left, top right, bottom right, bottom left."""
        c, u, v = self.centre, self.along, self.across
        corners = np.stack((c - u - v, c + u - v, c + u + v, c - u + v))
        left_to_right = corners[np.argsort(corners[:, 0], kind="stable")]
        left, right = left_to_right[:2], left_to_right[2:]
        top_left, bottom_left = left[np.argsort(left[:, 1], kind="stable")]
        top_right, bottom_right = right[np.argsort(right[:, 1], kind="stable")]
        return np.stack((top_left, top_right, bottom_right, bottom_left))


def convex_hull(points: Points) -> Points:
    """Return the corners of the convex hull of `points` `(n, 2)`, in order.

    Source: A. M. Andrew's monotone chain, 1979.
    """
    ordered = sorted({(float(x), float(y)) for x, y in points})
    if len(ordered) < 3:
        return np.array(ordered)
    return np.array(_chain(ordered)[:-1] + _chain(ordered[::-1])[:-1])


def _chain(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return one half of the hull, its last point included."""
    chain: list[tuple[float, float]] = []
    for x, y in points:
        while len(chain) > 1:
            (ax, ay), (bx, by) = chain[-2:]
            if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0:
                break
            chain.pop()
        chain.append((x, y))
    return chain


def smallest_rectangle(points: Points) -> Rectangle:
    """Return the rectangle of least area around `points` `(n, 2)`, n at least 1.

    One of its sides lies on an edge of the hull, so every edge is tried.
    """
    hull = convex_hull(points)
    edges = np.roll(hull, -1, 0) - hull
    length = np.hypot(edges[:, 0], edges[:, 1])
    edges = edges[length > 0] / length[length > 0, None] if length.any() else np.eye(2)[:1]
    normals = np.stack((-edges[:, 1], edges[:, 0]), 1)
    along, across = hull @ edges.T, hull @ normals.T
    best = int(np.argmin(np.ptp(along, 0) * np.ptp(across, 0)))
    u, v = edges[best], normals[best]
    low = np.array((along[:, best].min(), across[:, best].min()))
    high = np.array((along[:, best].max(), across[:, best].max()))
    middle, half = (low + high) / 2, (high - low) / 2
    return Rectangle(middle[0] * u + middle[1] * v, half[0] * u, half[1] * v)


def reading_order(boxes: Sequence[Points]) -> list[int]:
    """Return the indices of `boxes` (each `(4, 2)` corners) row by row, left to right.

    The page's own slope is taken out first, so that a tilted page reads like
    a straight one; boxes share a row while they start within half a height.
    """
    if not boxes:
        return []
    corners = np.stack(boxes)
    top = corners[:, 1] - corners[:, 0]
    height = np.median(np.hypot(*(corners[:, 3] - corners[:, 0]).T))
    slope = float(np.median(np.arctan2(top[:, 1], top[:, 0])))
    x, y = corners.mean(1).T
    along = x * np.cos(slope) + y * np.sin(slope)
    down = y * np.cos(slope) - x * np.sin(slope)
    rows: list[list[int]] = []
    for index in np.argsort(down, kind="stable").tolist():
        if rows and down[index] - down[rows[-1][0]] < height / 2:
            rows[-1].append(index)
        else:
            rows.append([index])
    return [index for row in rows for index in sorted(row, key=lambda i: float(along[i]))]
