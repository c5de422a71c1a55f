"""Arguments by which a plan or an estimate serves adapters over its model, or looks at images."""

import argparse
import re
from typing import Any

from service.cli.exit_codes import CommandError, ExitCode
from service.cli.numbers import number

MOST_SHARES = 1_000
"""Adapters of which each is stated."""
ADAPTERS_HELP = (
    "low-rank adapters over the model: how many, of which rank (16 unless stated; 8x20+64x12: twenty of rank 8 and twelve of 64, the most "
    "popular first), and how many a device holds (all)"
)

IMAGES_HELP = "images in every prompt: how many (1 unless stated), width and height in pixels"

VIDEO_HELP = (
    "videos in every prompt: how many, seconds, frames sampled a second, width and height in pixels, as 1:60x2x1280x720"
)
TOKEN_IDS_HELP = "share of the items sent as token ids, checked one by one, instead of texts (0; of models that embed)"
AUDIO_HELP = "recordings in every prompt: how many (1 unless stated) and seconds of each"


def add_served_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--adapters", metavar="COUNT[:RANK[:SLOTS]]", help=ADAPTERS_HELP)
    parser.add_argument("--images", metavar="[N:]WIDTHxHEIGHT", help=IMAGES_HELP)
    parser.add_argument("--video", metavar="[N:]SECONDSxFPSxWIDTHxHEIGHT", help=VIDEO_HELP)
    parser.add_argument("--audio", metavar="[N:]SECONDS", help=AUDIO_HELP)
    parser.add_argument("--token-ids", type=number, metavar="SHARE", help=TOKEN_IDS_HELP)
    parser.add_argument(
        "--adapter-zipf",
        type=number,
        metavar="S",
        help="the i-th adapter is named in proportion to i^-S (all alike unless stated)",
    )
    parser.add_argument(
        "--adapter-shares", metavar="SHARE,SHARE,…", help="of requests that name each adapter, instead; together 1"
    )
    parser.add_argument(
        "--adapter-modules", metavar="MODULE,…", help="matrices that adapters are of: q_proj,v_proj, say (all seven unless stated)"
    )  # fmt: skip


def images_of(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """What ``--images`` states; None without. Raises CommandError for what has another form.

    >>> images_of(argparse.Namespace(images="2:1024x768"))
    {'per_request': 2, 'width_px': 1024, 'height_px': 768}
    """
    if arguments.images is None:
        return None
    found = re.fullmatch(r"(?:(\d{1,6}):)?(\d{1,6})x(\d{1,6})", arguments.images)
    if found is None:
        raise CommandError(f"--images {arguments.images!r}: {IMAGES_HELP}", ExitCode.bad_input)
    many, wide, high = found.groups()
    return {"per_request": int(many or 1), "width_px": int(wide), "height_px": int(high)}


def media_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """What ``--images``, ``--video``, ``--audio`` and ``--token-ids`` state, by field. Raises CommandError for what has another form.

    >>> media_of(argparse.Namespace(images=None, video="60x2x1280x720", audio=None, token_ids=None))
    {'video': {'per_request': 1, 'seconds': 60.0, 'frames_per_s': 2.0, 'width_px': 1280, 'height_px': 720}}
    >>> media_of(argparse.Namespace(images=None, video=None, audio="2:30.5", token_ids=None))
    {'audio': {'per_request': 2, 'seconds': 30.5}}
    """
    found: dict[str, Any] = {}
    if (images := images_of(arguments)) is not None:
        found["images"] = images
    number = r"(\d{1,9}(?:\.\d{1,9})?)"
    if arguments.video is not None:
        video = re.fullmatch(rf"(?:(\d{{1,6}}):)?{number}x{number}x(\d{{1,6}})x(\d{{1,6}})", arguments.video)
        if video is None:
            raise CommandError(f"--video {arguments.video!r}: {VIDEO_HELP}", ExitCode.bad_input)
        many, seconds, rate, wide, high = video.groups()
        found["video"] = {
            "per_request": int(many or 1), "seconds": float(seconds), "frames_per_s": float(rate),
            "width_px": int(wide), "height_px": int(high),
        }  # fmt: skip
    if arguments.audio is not None:
        audio = re.fullmatch(rf"(?:(\d{{1,6}}):)?{number}", arguments.audio)
        if audio is None:
            raise CommandError(f"--audio {arguments.audio!r}: {AUDIO_HELP}", ExitCode.bad_input)
        found["audio"] = {"per_request": int(audio[1] or 1), "seconds": float(audio[2])}
    if arguments.token_ids is not None:
        found["token_ids_fraction"] = arguments.token_ids
    return found


def _ranks(text: str) -> int | list[int]:
    """
    >>> _ranks("16"), _ranks("8x2+64x1")
    (16, [8, 8, 64])
    """
    if "x" not in text:
        return int(text)
    found = []
    for part in text.split("+"):
        rank, many = part.split("x")
        if not 1 <= int(many) <= MOST_SHARES:
            raise ValueError(many)
        found += [int(rank)] * int(many)
    return found


def adapters_of(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """What the options state; None without any. Raises CommandError for what is no number."""
    if arguments.adapters is None:
        for option in ("--adapter-zipf", "--adapter-shares", "--adapter-modules"):
            if getattr(arguments, option.removeprefix("--").replace("-", "_")) is not None:
                raise CommandError(f"{option} is of --adapters: state both", ExitCode.bad_input)
        return None
    try:
        count, *others = arguments.adapters.split(":")
        numbers = [int(count), *map(_ranks, others[:1]), *map(int, others[1:])]
    except ValueError:
        raise CommandError(f"--adapters {arguments.adapters!r}: {ADAPTERS_HELP}", ExitCode.bad_input) from None
    if not 1 <= len(numbers) <= 3:
        raise CommandError(f"--adapters {arguments.adapters!r}: {ADAPTERS_HELP}", ExitCode.bad_input)
    found: dict[str, Any] = dict(zip(("count", "rank", "slots"), numbers, strict=False))
    if arguments.adapter_zipf is not None:
        found["zipf_exponent"] = arguments.adapter_zipf
    if arguments.adapter_modules is not None:
        found["target_modules"] = [name.strip() for name in arguments.adapter_modules.split(",")]
    if arguments.adapter_shares is not None:
        try:
            found["shares"] = [number(share) for share in arguments.adapter_shares.split(",")]
        except argparse.ArgumentTypeError as wrong:
            raise CommandError(f"--adapter-shares: {wrong}", ExitCode.bad_input) from None
    return found
