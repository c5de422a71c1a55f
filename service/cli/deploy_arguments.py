"""Arguments of the command deploy."""

import argparse

from service.cli.numbers import number
from service.deployments.targets import DEPLOYMENT_TARGETS


def add_deploy_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recommendation", metavar="RECOMMENDATION")
    parser.add_argument("--target", required=True, help=f"what the files are for: {', '.join(DEPLOYMENT_TARGETS)}")
    parser.add_argument(
        "--out", default="deployment", help="folder for the files, made if needed (default: %(default)s)"
    )
    parser.add_argument("--engine-version", help="write for this release; without it the planned or measured one")
    parser.add_argument(
        "--ramp",
        type=number,
        metavar="N",
        help="demand may rise by so many requests a second each minute: how many replicas stand by",
    )
