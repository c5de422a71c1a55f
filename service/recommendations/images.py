"""Images as asked for → tokens of a prompt and work of an encoder, and what they take → wire."""

from dataclasses import replace

import numpy as np

from service.wire.estimates import ImagesOut
from service.wire.traffic import ImagesIn, TrafficShape
from solver.deployment.configuration import Configuration
from solver.errors import FigureMissingError
from solver.llm_shape import LlmShape
from solver.step.vision_terms import image_encoding
from solver.vision import Images, VisionEncoder
from solver.workload import Traffic

MEGA = 1e6


def image_tokens(asked: TrafficShape, shape: LlmShape) -> int:
    """Tokens that the images of one request add to its prompt. Raises what ``encoder_of`` and the encoder raise."""
    if asked.images is None:
        return 0
    one = encoder_of(shape).image_tokens(asked.images.width_px, asked.images.height_px)
    return asked.images.per_request * one


def encoder_of(shape: LlmShape) -> VisionEncoder:
    """Raises FigureMissingError for a model that takes no images, or whose encoder is not known."""
    if shape.vision is None:
        raise FigureMissingError(
            shape.id, "a vision encoder (layers, widths, patches); models that read text alone have none"
        )
    return shape.vision


def images_from_wire(asked: ImagesIn | None, traffic: Traffic, shape: LlmShape) -> Images | None:
    """traffic: with the images' tokens among its prompts'. Raises as ``image_tokens`` does."""
    if asked is None:
        return None
    encoder = encoder_of(shape)
    return Images(
        per_request=asked.per_request,
        patches=encoder.image_patches(asked.width_px, asked.height_px),
        tokens=encoder.image_tokens(asked.width_px, asked.height_px),
        megapixels=asked.width_px * asked.height_px / MEGA,
        prompt_tokens=max(1.0, traffic.prompt.mean * (1.0 - traffic.shared_prefix_fraction)),
        tiles=encoder.image_tiles(asked.width_px, asked.height_px),
    )


def with_images(shape: LlmShape, images: Images | None) -> LlmShape:
    """The model as one workload uses it."""
    return shape if images is None else replace(shape, images=images)


def present_images(configuration: Configuration) -> ImagesOut | None:
    """None for text alone."""
    images = configuration.shape.images
    if images is None:
        return None
    seconds, _ = image_encoding(configuration.shape, configuration.rates())
    host_s = images.per_request * images.megapixels * configuration.constants.si("image_megapixel_ms")
    return ImagesOut(
        tokens_each=images.tokens,
        patches_each=images.patches,
        encoding_ms=round(float(np.asarray(seconds)) * 1e3, 4),
        host_ms=round(host_s * 1e3, 4),
    )
