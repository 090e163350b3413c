"""Chooses the pairs of GPUs to measure at every size, and those at two sizes."""

from lines import Refusal
from sizes import KIB

SWEPT_BYTES = 16 * KIB**2  # the size to judge a pair's bandwidth: on its plateau, and quick


def between(chosen, count):
    """(pairs at every size, pairs at two sizes), each ordered. chosen: "auto", "first", "all", or pairs as in
    0-1,1-0. auto: every size for the first two GPUs and for the first and the last, which are most likely on two
    sockets; two sizes for all other pairs. Raises Refusal for invalid pairs."""
    every = [(a, b) for a in range(count) for b in range(count) if a != b]
    if chosen == "all":
        return every, []
    if chosen == "first":
        return every[:1], []
    if chosen == "auto":
        priority_pairs = [(0, 1), (1, 0), (0, count - 1)]
        whole = [pair for pair in dict.fromkeys(priority_pairs) if pair in every]
        return whole, [pair for pair in every if pair not in whole]
    return named(chosen, every), []


def named(words, every):
    try:
        pairs = [tuple(int(gpu) for gpu in word.split("-")) for word in words.split(",")]
    except ValueError:
        pairs = []
    if not pairs or not set(pairs) <= set(every):
        raise Refusal(f"{words} are no pairs of these GPUs", "give --pairs 0-1,1-0, auto or all")
    return list(dict.fromkeys(pairs))


def representative(pairs):
    """Each pair once, in either direction."""
    return list({frozenset(pair): pair for pair in reversed(pairs)}.values())[::-1]


def swept_sizes(sizes):
    """The smallest, and the largest that is not above 16 MiB."""
    return sorted({sizes[0], max((s for s in sizes if s <= SWEPT_BYTES), default=sizes[0])})
