"""Which GPUs copy at once. A pattern is its name and its flows: (source, destination), "cpu" for the host."""


def between(count):
    """The patterns of so many GPUs; with two GPUs many-to-one and one-to-many are one copy alone."""
    every = [(a, b) for a in range(count) for b in range(count) if a != b]
    patterns = [("all_to_all", every)] if count > 1 else []
    if count > 2:
        patterns.append(("many_to_one", [(a, b) for a, b in every if b == 0]))
        patterns.append(("one_to_many", [(a, b) for a, b in every if a == 0]))
    return patterns


def with_host(count):
    """(pattern of one copy alone, pattern of all GPUs)."""
    gpus = range(count)
    return [
        (("from_host", [("cpu", 0)]), ("all_from_host", [("cpu", gpu) for gpu in gpus])),
        (("to_host", [(0, "cpu")]), ("all_to_host", [(gpu, "cpu") for gpu in gpus])),
    ]
