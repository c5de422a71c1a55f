"""What waits while the loop that composes steps launches one of them itself.

Such a loop composes a step, launches it, and only then hands on what the step before gave (vLLM with one device a copy:
docs/mathematics.md, "The scheduler"). Where launching a step with prompts takes longer than the device works, who comes meanwhile joins
the next one, and tokens of the step before leave when it is launched.
"""

from solver.engine.kernel.compiled import inner
from solver.engine.kernel.prefixes import resident_tokens
from solver.engine.kernel.records import Queues, Requests, Rules, State, Tables


@inner
def beside_s(rules: Rules, tokens: int, decoding: int) -> float:
    """Seconds by which launching a step with prompts takes longer because others decode in it."""
    return rules.launched_beside_s if decoding and tokens <= rules.captured_prompt_tokens else 0.0


@inner
def outlasting_s(rules: Rules, tables: Tables, tokens: int, decoding: int) -> float:
    """Seconds for which launching a step with prompts lasts longer than the device's work; below 0 where the work does."""
    seconds: float = tables.outlasting_s[min(tokens, len(tables.outlasting_s) - 1)]
    return seconds + beside_s(rules, tokens, decoding)


@inner
def launching_s(rules: Rules, tables: Tables, tokens: int, decoding: int) -> float:
    """Seconds for which launching a step with prompts keeps the loop busy."""
    seconds: float = tables.launched_s[min(tokens, len(tables.launched_s) - 1)]
    return seconds + beside_s(rules, tokens, decoding)


@inner
def launched_longer_s(rules: Rules, tables: Tables, tokens: int, decoding: int) -> float:
    """Seconds that a step with prompts takes longer because others decode in it, and launching outlasts the device's work."""
    if not rules.launches:
        return 0.0
    return max(outlasting_s(rules, tables, tokens, decoding), 0.0) - max(outlasting_s(rules, tables, tokens, 0), 0.0)


@inner
def composed_before_end_s(
    rules: Rules, tables: Tables, tokens: int, decoding: int, duration: float, previous: float
) -> float:
    """Seconds before the end of a step with prompts at which the next one may be composed at most.

    previous: the same of the step before, whose last part launching this one runs beside. Where launching outlasts the device's work that
    is not counted: the device waits about as long for the step after it to be launched.
    """
    if not rules.launches:
        return duration
    launching = launching_s(rules, tables, tokens, decoding)
    if outlasting_s(rules, tables, tokens, decoding) <= 0.0:
        launching = max(launching - rules.lag_fraction * previous, 0.0)
    return max(duration - launching, 0.0)


@inner
def left_to_compute(rules: Rules, requests: Requests, queues: Queues, request: int) -> int:
    """Tokens of a request that waits which are not in the cache."""
    tokens: int = requests.prompts[request] + queues.have[request]
    if rules.sessions:
        tokens -= resident_tokens(rules, queues, request, tokens)
    else:
        tokens -= requests.cached[request]
    return tokens


@inner
def next_tokens(rules: Rules, u: State, requests: Requests, queues: Queues, whole: int, composed: float) -> int:
    """Tokens of the step after one in which ``whole`` prompts became whole, as it is composed at that time, when none of those that end
    has left; 0: it has no prompts. Those in a line (``line``) are not looked at."""
    room, seats = rules.max_batched_tokens, rules.max_sequences - u.running - u.partial - u.loading
    tokens = 0
    for place in range(whole, u.partial):
        tokens += queues.partial_need[place] - queues.partial_done[place]
    if u.blocked:
        seats = 0
    for place in range(u.evicted - 1, -1, -1):
        if seats <= 0 or tokens >= room:
            break
        tokens += left_to_compute(rules, requests, queues, queues.evicted[place])
        seats -= 1
    place = u.admitted
    while seats > 0 and tokens < room and place < u.sent:
        request = queues.order[place]
        if place >= u.queued and requests.ready[request] > composed:
            break
        tokens += left_to_compute(rules, requests, queues, request)
        seats -= 1
        place += 1
    return min(tokens + u.running + whole, room) if tokens else 0


@inner
def handed_on_after_s(
    rules: Rules, u: State, requests: Requests, queues: Queues, tables: Tables, whole: int, previous: float
) -> float:
    """Seconds after its end that a step's tokens are handed on, which wait until the next step is launched.

    previous: seconds before that end at which the next step may have been composed at most.
    """
    if not rules.launches:
        return 0.0
    ahead = rules.lag_fraction * previous
    tokens = next_tokens(rules, u, requests, queues, whole, u.now - ahead)
    return max(launching_s(rules, tables, tokens, u.running + whole) - ahead, 0.0) if tokens else 0.0
