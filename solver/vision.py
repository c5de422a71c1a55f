"""Vision encoders in front of a language model: what an image becomes, in patches and in tokens."""

import math
from dataclasses import dataclass

from solver.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class VisionEncoder:
    """A transformer over patches of ``patch_px`` pixels a side, ``merge``² of which become one token of the language model.

    image_px: side to which every image is resized; 0 where it keeps its own, within least_px and most_px pixels in all.
    tokens: of every image, where their number is fixed; 0: by its patches. extra_projectors: further ones like the last (deepstack).
    window_patches, full_layers: all but so many layers look no further than a window of so many patches; 0: all look at all.
    weights: parameters of encoder and projectors together. most_tiles: into so many tiles of image_px a side an image is cut at most, each
    of which looks at itself alone, a small copy of the whole being one more; 0: never. projector: width of the first projectors; 0: that of
    the patches that become a token.
    """

    layers: int
    hidden: int
    heads: int
    intermediate: int
    gated: bool
    patch_px: int
    merge: int
    image_px: int = 0
    least_px: int = 0
    most_px: int = 0
    tokens: int = 0
    extra_projectors: int = 0
    window_patches: int = 0
    full_layers: int = 0
    weights: float = 0.0
    most_tiles: int = 0
    projector: int = 0

    @property
    def unit_px(self) -> int:
        """Side of what one token stands for."""
        return self.patch_px * self.merge

    def resized(self, width_px: int, height_px: int) -> tuple[int, int]:
        """Sides in units, of an image as the model sees it: whole ones, as near as possible to its own shape, within the limits;
        where these are one, as many as fit.

        Source: resizing of the published processors (Qwen2-VL: rounded to whole units, shrunk or enlarged by one factor).

        >>> VisionEncoder(27, 1152, 16, 4304, False, 16, 2, least_px=65_536, most_px=16_777_216).resized(1024, 768)
        (32, 24)
        """
        if min(width_px, height_px) < 1 or max(width_px, height_px) > 200 * min(width_px, height_px):
            raise InvalidInputError(f"an image of {width_px} × {height_px} pixels is not one that encoders take")
        unit = self.unit_px
        if self.most_tiles:
            across, down = self._canvas(width_px, height_px)
            return across * (self.image_px // unit), down * (self.image_px // unit)
        if self.image_px:
            return self.image_px // unit, self.image_px // unit
        wide, high = max(1, round(width_px / unit)), max(1, round(height_px / unit))
        pixels = width_px * height_px
        if self.most_px and (wide * high * unit * unit > self.most_px or self.least_px == self.most_px):
            scale = math.sqrt(pixels / self.most_px)
            return max(1, math.floor(width_px / scale / unit)), max(1, math.floor(height_px / scale / unit))
        if wide * high * unit * unit < self.least_px:
            scale = math.sqrt(self.least_px / pixels)
            return math.ceil(width_px * scale / unit), math.ceil(height_px * scale / unit)
        return wide, high

    def _canvas(self, width_px: int, height_px: int) -> tuple[int, int]:
        """Tiles across and down, of the canvas that an image is laid on: the smallest enlargement that fits one of up to ``most_tiles``,
        the largest where only shrunk images fit, and of canvases that scale alike the smallest.

        Source: Llama4ImageProcessorFast (get_best_fit, resize_to_max_canvas off) in huggingface/transformers, read 2026-11-24. A canvas of
        a × d tiles of s pixels scales by s·min(a·H, d·W) / (W·H).
        """
        shapes = [
            (across, down)
            for across in range(1, self.most_tiles + 1)
            for down in range(1, self.most_tiles // across + 1)
        ]
        scale = {(a, d): min(a * height_px, d * width_px) for a, d in shapes}
        enlarged = [one for one in scale.values() if one * self.image_px >= width_px * height_px]
        chosen = min(enlarged) if enlarged else max(scale.values())
        return min((one for one in shapes if scale[one] == chosen), key=lambda one: one[0] * one[1])

    def image_tiles(self, width_px: int, height_px: int) -> int:
        """Parts of an image that the encoder looks at each by itself: tiles, and the whole once more where there are several.

        >>> VisionEncoder(34, 1408, 16, 5632, False, 14, 2, image_px=336, most_tiles=16).image_tiles(1024, 768)
        13
        """
        wide, high = self.resized(width_px, height_px)
        if not self.most_tiles:
            return 1
        tiles = wide * high // (self.image_px // self.unit_px) ** 2
        return tiles + 1 if tiles > 1 else 1

    def image_tokens(self, width_px: int, height_px: int) -> int:
        """Tokens of one image in the prompt, without those that mark where it begins and ends; with one after each tile.

        >>> VisionEncoder(27, 1152, 16, 4304, False, 14, 4, image_px=896, tokens=256).image_tokens(3000, 2000)
        256
        >>> VisionEncoder(34, 1408, 16, 5632, False, 14, 2, image_px=336, most_tiles=16).image_tokens(336, 336)
        145
        """
        wide, high = self.resized(width_px, height_px)
        if self.most_tiles:
            return self.image_tiles(width_px, height_px) * ((self.image_px // self.unit_px) ** 2 + 1)
        return self.tokens or wide * high

    def image_patches(self, width_px: int, height_px: int) -> int:
        wide, high = self.resized(width_px, height_px)
        if self.most_tiles:
            return self.image_tiles(width_px, height_px) * (self.image_px // self.patch_px) ** 2
        return wide * high * self.merge * self.merge

    @property
    def most_patches(self) -> int:
        """Of the largest image that it takes."""
        side = self.image_px
        parts = self.most_tiles + 1 if self.most_tiles > 1 else 1
        return parts * (side * side or self.most_px) // (self.patch_px * self.patch_px)


@dataclass(frozen=True, slots=True)
class Images:
    """What requests of a workload carry: ``per_request`` images of so many patches and tokens each, over prompts of so many tokens on
    average, images among them. megapixels: of one as it is sent. tiles: parts of one that are looked at each by itself."""

    per_request: int
    patches: int
    tokens: int
    megapixels: float
    prompt_tokens: float
    tiles: int = 1
