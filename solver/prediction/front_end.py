"""How busy the process is that passes an engine's tokens on."""

from solver.deployment.configuration import Configuration, front_end


def front_end_fraction(configuration: Configuration, output_tokens_per_s: float) -> float:
    """Share of the time that passing on so many tokens a second of one replica takes: tokens/s · seconds a token / copies of attention,
    each of which has a front end of its own.

    From 1 on tokens wait for it, whatever the device does.
    """
    engine = configuration.engine
    each_s = front_end(configuration.constants, configuration.shape, engine.api_servers).token_front_end_s
    return output_tokens_per_s * each_s / configuration.layout.data_parallel
