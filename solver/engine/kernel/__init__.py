"""The scheduling loop of one engine replica on flat columns of numbers: compiled by numba, or run as it stands.

All of it is written once, in the subset of Python that numba compiles: no objects but records and columns. Compiled,
columns are arrays and the two records live in arrays of one element; uncompiled, columns are lists and the records are
the dataclasses below (reading an array element by element is slower in Python than reading a list). docs/mathematics.md
("The scheduler") states what is replayed.

    records         what the functions work on: constants of a run, its state, columns
    completions     the heap of sequences that decode, by the step at which they end
    turns           when turns of sessions are sent
    prefixes        the cache of prefixes: least recently used blocks, as chains
    tiers           host memory and a disk under it: the same chains in lists of their own
    line            the waiting line over tiers: who is asked for, read and loaded for, passed over, admitted
    admission       who is sent, queued, admitted, evicted and finished
    timing          seconds, bytes and FLOPs of steps
    prefill         prompts cut into chunks
    stepping        one scheduling event after the other; what Python calls
    columns         records and columns made from step tables, a schedule and requests
    selection       order statistics of what a run says
    compiled        the one place that knows numba

    symbol          meaning                                                                 unit
    rules           what does not change in a run: Schedule and the scalars of StepTables
    u               where the run is: the clock, counters, and how full the queues are
    now, front      when the device, and when the front end, finishes what it has            s
    ready           when a request's prompt has been taken in and may be scheduled           s
    context         summed context of decoding sequences                                     tokens
    beside          what several requests share, each once                                  tokens
    shared          what decoding sequences share with others, for each of them              tokens
    reserved        cache of prompts in prefill, plus the shared prefix once                 tokens
    promised        the same for engines that never evict: whole requests, output included   tokens
    base            a sequence's context at step 0 had it run since                          tokens
    have            output tokens that an evicted request already has                        tokens
    heat            0 for a rested board, 1 for one at its sustained clock
    prefilling      share of the recent past in which this batch had prompts of its own (without what it waited, where it shares stages)
    owed            what replies have yet to wait for prompts of copies and batches beside this one          s
    waited          what they wait in one step                                                               s
    gain, width     tokens that a decode step yields, and works on, per sequence

Requests come to the queue in order of sending, so the queues of those sent and of those waiting are ranges of places in that order:

    0 … admitted … queued … sent … count        running or done | waiting | not yet taken in | not yet sent

Over tiers, those evicted wait in one line with those who came, behind those that have been passed over:

    line_first … line_passed … line_end         passed over, oldest first | evicted, the latest first, then who came
"""
