"""The heap of sequences that decode, by the step at which they end and then by request."""

from solver.engine.kernel.compiled import inner
from solver.engine.kernel.records import MOST_KERNEL_REQUESTS, NOT_RUNNING, REQUEST_BITS, Column, Queues, State


@inner
def push(heap: Column, size: int, key: int) -> None:
    """Into a binary heap of ``size`` keys, smallest first."""
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if heap[parent] <= key:
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = key


@inner
def pop(heap: Column, size: int) -> None:
    """Take the smallest out of a binary heap of ``size`` keys."""
    last = size - 1
    key = heap[last]
    at = 0
    child = 1
    while child < last:
        # Without a branch, which no processor could guess. The last key, still at its old place, ends the way down where it is taken.
        child += int(heap[child + 1] < heap[child])
        if heap[child] >= key:
            break
        heap[at] = heap[child]
        at = child
        child = 2 * at + 1
    heap[at] = key


@inner
def forget_evicted(u: State, queues: Queues) -> None:
    """Make the heap of completions anew from those running, and leave only these in the order of admission."""
    u.heaped = 0
    for place in range(u.stacked):
        request = queues.stack[place]
        if queues.ends[request] != NOT_RUNNING:
            queues.stack[u.heaped] = request
            push(queues.heap, u.heaped, (queues.ends[request] << REQUEST_BITS) + request)
            u.heaped += 1
    u.stacked = u.heaped


@inner
def next_end(u: State, queues: Queues) -> int:
    """The step at which the next sequence completes."""
    while True:
        key = queues.heap[0]
        ends: int = key >> REQUEST_BITS
        if queues.ends[key & (MOST_KERNEL_REQUESTS - 1)] == ends:
            return ends
        pop(queues.heap, u.heaped)
        u.heaped -= 1
