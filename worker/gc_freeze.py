"""Objects loaded before serving are kept out of Python's garbage collector."""

import gc


def freeze_loaded() -> None:
    """Once, when everything is loaded. What is there stays for good, and a full collection that looks
    through it takes 60 to 130 ms of somebody's page; and because one comes only when as much as a quarter of
    all there is has been added, garbage lay about for hours: memory grew by 40 kB a minute (bench/RESULTS.md,
    “Watching a run”). Source: Python's documentation of gc.freeze.

    The quarter is of what the last full collection left, so one more has to come after the freeze: without
    it a worker had none in 600 runs and grew by 2.5 kB a run. It looks through little now, and comes often.
    """
    gc.collect()
    gc.freeze()
    gc.collect()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, 2)


def collect_cycles() -> None:
    """Called after a run, which leaves cycles of the SSH library and the ORM. By then they are old, so that no
    other collection looks at them for many runs (30 to 80 kB each). Takes 3 to 7 ms after `freeze_loaded`."""
    gc.collect()
