"""ImageLocality: nodes that already hold the pod's images score higher, less so the fewer nodes hold them."""

from __future__ import annotations

import numpy as np

from wukong.engine.arrays import Ints, Rows
from wukong.engine.plugin import MAX_SCORE, Load, Plugin, ScorePart
from wukong.engine.snapshot import Snapshot
from wukong.engine.view import View

_LEAST = 23 * 1024**2
_MOST_PER_IMAGE = 1000 * 1024**2


class ImageLocality(Plugin):
    name = "ImageLocality"

    def score(self, view: View) -> ScorePart:
        version, template = view.profile.version, view.template
        images = list(template.images)
        counted = len(images)
        if version.image_volumes_score:
            images += template.image_volumes
        if version.image_volumes_divide:
            counted = len(images)
        return ImageLocalityScore(_compute_scores(view.snapshot, images, counted))


class ImageLocalityScore(ScorePart):
    def __init__(self, scores: Ints) -> None:
        self.scores = scores

    def raw(self, rows: Rows, load: Load) -> Ints:
        return self.scores[rows]


def _compute_scores(snapshot: Snapshot, images: list[str], counted: int) -> Ints:
    images_held = snapshot.index_images()
    total = np.zeros(len(snapshot.rows), dtype=np.int64)
    for image in images:
        size, rows = images_held.get(_add_default_tag(image), (0, []))
        total[rows] += int(size * (len(rows) / len(snapshot.rows))) if rows else 0
    most = _MOST_PER_IMAGE * counted
    scores: Ints = MAX_SCORE * (np.clip(total, _LEAST, most) - _LEAST) // (most - _LEAST)
    return scores


def _add_default_tag(image: str) -> str:
    """An image without a tag means the tag "latest"."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
