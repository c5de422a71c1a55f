"""Arguments of the command deploy."""

import argparse


def add_deploy_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recommendation", metavar="RECOMMENDATION")
    parser.add_argument("--target", required=True, help="vllm, compose, kubernetes, …; an unknown one lists them all")
    parser.add_argument(
        "--out", default="deployment", help="folder for the files, made if needed (default: %(default)s)"
    )
    parser.add_argument("--engine-version", help="write for this release; without it the planned or measured one")
