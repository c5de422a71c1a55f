"""Images, videos and recordings as asked for → tokens of a prompt and work of an encoder, and what they take → wire."""

from dataclasses import replace

import numpy as np

from service.wire.estimates import ImagesOut
from service.wire.traffic import TrafficShape, VideoIn
from solver.deployment.configuration import Configuration, host_image_s
from solver.errors import FigureMissingError
from solver.llm_shape import LlmShape
from solver.step.vision_terms import image_encoding_s
from solver.vision import Images, VisionEncoder
from solver.workload import Traffic

MEGA = 1e6


def image_tokens(asked: TrafficShape, shape: LlmShape) -> int:
    """Tokens that the images, videos or recordings of one request add to its prompt. Raises as ``images_of`` does."""
    found = images_of(asked, shape)
    return 0 if found is None else found.per_request * found.tokens


def encoder_of(shape: LlmShape) -> VisionEncoder:
    """Raises FigureMissingError for a model that takes no images, or whose encoder is not known."""
    if shape.vision is None:
        raise FigureMissingError(
            shape.id, "a vision encoder (layers, widths, patches); models that read text alone have none"
        )
    return shape.vision


def images_of(asked: TrafficShape, shape: LlmShape) -> Images | None:
    """What a request carries, as the model sees or hears it; None for text alone.

    Raises FigureMissingError for a model whose encoder is not known, or not known to take it, InvalidInputError for what it does not take.
    """
    if asked.images is not None:
        encoder, one = encoder_of(shape), asked.images
        return Images(
            per_request=one.per_request,
            patches=encoder.image_patches(one.width_px, one.height_px),
            tokens=encoder.image_tokens(one.width_px, one.height_px),
            megapixels=one.width_px * one.height_px / MEGA,
            prompt_tokens=1.0,
            tiles=encoder.image_tiles(one.width_px, one.height_px),
        )
    if asked.video is not None:
        return _video(asked.video, encoder_of(shape), shape)
    if asked.audio is not None:
        if shape.audio is None:
            raise FigureMissingError(
                shape.id, "an audio encoder (layers, widths, chunks); models that do not listen have none"
            )
        listened = asked.audio
        return Images(
            per_request=listened.per_request,
            patches=shape.audio.positions(listened.seconds),
            tokens=shape.audio.tokens(listened.seconds),
            megapixels=0.0,
            prompt_tokens=1.0,
            tiles=shape.audio.chunks(listened.seconds),
            heard=True,
        )
    return None


def _video(one: VideoIn, encoder: VisionEncoder, shape: LlmShape) -> Images:
    if not encoder.clip_frames:
        raise FigureMissingError(shape.id, "how its encoder takes video (frames of a patch, pixels of a clip)")
    frames = encoder.clip_frames_of(one.seconds, one.frames_per_s)
    tokens = encoder.clip_tokens(frames, one.width_px, one.height_px)
    return Images(
        per_request=one.per_request,
        patches=tokens * encoder.merge * encoder.merge,
        tokens=tokens,
        megapixels=frames * one.width_px * one.height_px / MEGA,
        prompt_tokens=1.0,
        tiles=encoder.clip_slices(frames),
    )


def images_from_wire(asked: TrafficShape, traffic: Traffic, shape: LlmShape) -> Images | None:
    """traffic: with the images' tokens among its prompts'. Raises as ``images_of`` does."""
    found = images_of(asked, shape)
    own = traffic.prompt.mean * (1.0 - traffic.shared_prefix_fraction)
    return None if found is None else replace(found, prompt_tokens=max(1.0, own))


def with_images(shape: LlmShape, images: Images | None) -> LlmShape:
    """The model as one workload uses it."""
    return shape if images is None else replace(shape, images=images)


def present_images(configuration: Configuration) -> ImagesOut | None:
    """None for text alone."""
    images = configuration.shape.images
    if images is None:
        return None
    seconds = image_encoding_s(configuration.shape, configuration.rates())
    host_s = host_image_s(images, configuration.constants)
    return ImagesOut(
        tokens_each=images.tokens,
        patches_each=images.patches,
        encoding_ms=round(float(np.asarray(seconds)) * 1e3, 4),
        host_ms=round(host_s * 1e3, 4),
    )
