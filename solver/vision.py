"""Vision encoders in front of a language model: what an image becomes, in patches and in tokens."""

import math
from dataclasses import dataclass

from solver.errors import InvalidInputError

MOST_FRAMES = 1_000_000


@dataclass(frozen=True, slots=True)
class VisionEncoder:
    """A transformer over patches of ``patch_px`` pixels a side, ``merge``² of which become one token of the language model.

    image_px: side to which every image is resized; 0 where it keeps its own, within least_px and most_px pixels in all.
    tokens: of every image, where their number is fixed; 0: by its patches. extra_projectors: further ones like the last (deepstack).
    window_patches, full_layers: all but so many layers look no further than a window of so many patches; 0: all look at all.
    weights: parameters of encoder and projectors together. most_tiles: into so many tiles of image_px a side an image is cut at most, each
    of which looks at itself alone, a small copy of the whole being one more; 0: never. projector: width of the first projectors; 0: that of
    the patches that become a token. clip_frames: frames of a video that a patch reaches over, each such slice looking at itself alone;
    0: it takes no video. least_clip_px, most_clip_px: pixels of all frames together; 0: each frame is resized as an image is. least_frames,
    most_frames: that its processor samples.
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
    clip_frames: int = 0
    least_clip_px: int = 0
    most_clip_px: int = 0
    least_frames: int = 0
    most_frames: int = 0

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

    def clip_frames_of(self, seconds: float, frames_per_s: float) -> int:
        """Frames that the processor takes of a video, at the rate at which it is sampled.

        >>> VisionEncoder(2, 64, 2, 128, False, 16, 2, clip_frames=2, least_frames=4, most_frames=768).clip_frames_of(60.5, 2.0)
        121
        """
        return min(max(int(seconds * frames_per_s), self.least_frames, 1), self.most_frames or MOST_FRAMES)

    def clip_slices(self, frames: int) -> int:
        """Slices of a video, its last frame repeated until they are full. Raises InvalidInputError for a model that takes none."""
        if not self.clip_frames:
            raise InvalidInputError("this model's encoder is not known to take video")
        return -(-frames // self.clip_frames)

    def clip_resized(self, frames: int, width_px: int, height_px: int) -> tuple[int, int]:
        """Sides in units of each frame of a video.

        Sources: Qwen2VLVideoProcessor (each frame like an image) and Qwen3VLVideoProcessor (smart_resize: pixels of all frames
        together) of huggingface/transformers, read 2026-11-25.

        >>> three = VisionEncoder(27, 1152, 16, 4304, False, 16, 2, clip_frames=2, least_clip_px=4096, most_clip_px=25_165_824)
        >>> three.clip_resized(120, 1280, 720), three.clip_resized(16, 1280, 720)
        ((19, 10), (40, 22))
        """
        if not self.most_clip_px:
            return self.resized(width_px, height_px)
        if min(width_px, height_px) < 1 or max(width_px, height_px) > 200 * min(width_px, height_px):
            raise InvalidInputError(f"a frame of {width_px} × {height_px} pixels is not one that encoders take")
        unit = self.unit_px
        wide, high = max(1, round(width_px / unit)), max(1, round(height_px / unit))
        whole = max(1, round(frames / self.clip_frames)) * self.clip_frames * wide * high * unit * unit
        pixels = frames * width_px * height_px
        if whole > self.most_clip_px:
            scale = math.sqrt(pixels / self.most_clip_px)
            return max(1, math.floor(width_px / scale / unit)), max(1, math.floor(height_px / scale / unit))
        if whole < self.least_clip_px:
            scale = math.sqrt(self.least_clip_px / pixels)
            return math.ceil(width_px * scale / unit), math.ceil(height_px * scale / unit)
        return wide, high

    def clip_tokens(self, frames: int, width_px: int, height_px: int) -> int:
        """Tokens of one video in the prompt, without those that mark its begin, its end and the times between.

        >>> VisionEncoder(32, 1280, 16, 3420, True, 14, 2, least_px=3136, most_px=12_845_056, clip_frames=2).clip_tokens(16, 448, 280)
        1280
        """
        wide, high = self.clip_resized(frames, width_px, height_px)
        return self.clip_slices(frames) * wide * high

    def projector_columns(self, hidden: int) -> tuple[tuple[float, float], ...]:
        """(rows, columns) of the products that make tokens, each once a token: (m²·h) × (m²·h) and (m²·h) × hidden, once for each
        projector, as one of their sum; or three where they have a width of their own, (m²·h) × p, p × p and p × hidden."""
        if self.projector:
            merged, own = float(self.hidden * self.merge * self.merge), float(self.projector)
            return ((own, merged + own + hidden),)
        width = float(self.hidden) if self.tokens else float(self.hidden * self.merge * self.merge)
        return ((width, (width + hidden) * (1 + self.extra_projectors)),)

    @property
    def most_patches(self) -> int:
        """Of the largest image that it takes."""
        side = self.image_px
        parts = self.most_tiles + 1 if self.most_tiles > 1 else 1
        return parts * (side * side or self.most_px) // (self.patch_px * self.patch_px)


@dataclass(frozen=True, slots=True)
class Images:
    """What requests of a workload carry: ``per_request`` images of so many patches and tokens each, over prompts of so many tokens on
    average, images among them. megapixels: of one as it is sent. tiles: parts of one that are looked at each by itself.

    A video is one whose parts are slices of its frames; of a recording (``heard``) patches are positions, and parts chunks.
    """

    per_request: int
    patches: int
    tokens: int
    megapixels: float
    prompt_tokens: float
    tiles: int = 1
    heard: bool = False
