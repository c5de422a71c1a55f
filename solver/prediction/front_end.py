"""How busy the process is that passes an engine's tokens on, and how busy plans let it be."""

import math

from solver.deployment.configuration import Configuration, front_end
from solver.llm_shape import LlmShape
from solver.step.constants import Constants


def front_end_fraction(configuration: Configuration, output_tokens_per_s: float) -> float:
    """Share of the time that passing on so many tokens a second of one replica takes: tokens/s · seconds a token / copies of attention,
    each of which has a front end of its own.

    From 1 on tokens wait for it, whatever the device does.
    """
    engine = configuration.engine
    each_s = front_end(configuration.constants, configuration.shape, engine.api_servers).token_front_end_s
    return output_tokens_per_s * each_s / configuration.layout.data_parallel


def planned_busy_fraction(constants: Constants) -> float:
    """Share of the time that it may take in a plan; infinite for engines of which that was not measured.

    Past it a server lags though the prediction says that it does not (docs/accuracy.md, "Where one server's limit is").
    """
    return constants.si("front_end_busy_fraction") if "front_end_busy_fraction" in constants.priors else math.inf


def planned_tokens_per_s(constants: Constants, shape: LlmShape, api_servers: int) -> float:
    """Tokens of replies a second that a plan may have one copy of attention pass on, behind so many processes: f·a/t."""
    each_s = front_end(constants, shape, api_servers).token_front_end_s
    return planned_busy_fraction(constants) / each_s if each_s > 0.0 else math.inf
