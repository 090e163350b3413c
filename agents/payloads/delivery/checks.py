"""The check: poison the destination, load a pattern at the source, write, and read as the owner.

The sender never decides whether its write arrived: a GPU that reads a peer back may get a mirror of its own write,
while the peer's memory never changed.
"""

import functools
import hashlib

BLOCK = 4096
POISON = 0xA5
POISONED = bytes([POISON]) * BLOCK


@functools.lru_cache(maxsize=2)
def pattern(seed, size):
    """Bytes that only this seed gives. Every block of 4 KiB has its own number, so that a block at another place is
    wrong there."""
    noise = hashlib.shake_256(seed.encode()).digest(2 * BLOCK)
    blocks = (
        number.to_bytes(8, "little") + noise[number * 8 % BLOCK :][: BLOCK - 8] for number in range(-(-size // BLOCK))
    )
    return b"".join(blocks)[:size]


class Owner:
    """Memory of the receiving GPU, read by that GPU alone."""

    def __init__(self, gpu, size):
        self.gpu, self.buffer = gpu, gpu.allocate(size)

    def handle(self):
        return self.gpu.handle(self.buffer)

    def poison(self, size):
        """Poisons the memory. Returns whether it keeps its owner's write."""
        self.gpu.fill(self.buffer, POISON, size)
        return self.gpu.read(self.buffer, size) == bytes([POISON]) * size

    def differences(self, seed, size):
        """The blocks that differ from the pattern; {} when all of it arrived."""
        content, expected = self.gpu.read(self.buffer, size), pattern(seed, size)
        if content == expected:
            return {}
        starts = range(0, size, BLOCK)
        wrong = [at for at in starts if content[at : at + BLOCK] != expected[at : at + BLOCK]]
        untouched = sum(POISONED.startswith(bytes(content[at : at + BLOCK])) for at in wrong)
        counts = {"blocks": len(starts), "wrong_blocks": len(wrong), "untouched_blocks": untouched}
        return {**counts, "first_wrong_byte": wrong[0]}


class Writer:
    """The sending GPU: its own copy of the pattern, and the mapping of the peer's memory.

    fault: a simulated one, to show that the check finds it. "mirror": a write stays on this side, where it also reads
    back right. "torn": the last block is left out. announce: called with method and size before each write, and
    without arguments after it.
    """

    def __init__(self, gpu, target, size, fault="", announce=lambda *what: None):
        self.gpu, self.target, self.fault, self.announce = gpu, target, fault, announce
        self.buffer, self.back = gpu.allocate(size), gpu.allocate(size)
        if fault == "mirror":
            self.target = gpu.allocate(size)

    def load(self, data):
        """Loads the pattern. Returns whether the sender's own memory keeps it."""
        self.gpu.upload(self.buffer, data)
        return self.gpu.read(self.buffer, len(data)) == data

    def write(self, method, size):
        self.announce(method, size)
        self.gpu.write(method, self.target, self.buffer, size - BLOCK * (self.fault == "torn"))
        self.announce()

    def sees(self, data):
        """Whether the sender reads its own bytes back over the same mapping."""
        try:
            self.gpu.fill(self.back, 0, len(data))
            self.gpu.fetch(self.back, self.target, len(data))
            return self.gpu.read(self.back, len(data)) == data
        except OSError:
            return False


def checked(writer, owner, method, seed, size):
    """{"verdict": right, wrong, failed or inconclusive, …} of one write."""
    if not owner.poison(size):
        return inconclusive("the receiver's memory does not keep what the receiver itself writes")
    if not writer.load(pattern(seed, size)):
        return inconclusive("the sender's memory does not keep the pattern")
    try:
        writer.write(method, size)
        differences = owner.differences(seed, size)
    except OSError as error:
        return {"verdict": "failed", "why": str(error)}
    if not differences:
        return {"verdict": "right"}
    differences["sender_reads_it_back"] = writer.sees(pattern(seed, size))
    return {"verdict": "wrong", "why": words(differences), **differences}


def inconclusive(why):
    return {"verdict": "inconclusive", "why": why}


def words(differences):
    why = "{wrong_blocks} of {blocks} blocks of 4 KiB are not what was sent".format(**differences)
    if differences["untouched_blocks"]:
        why += ", {untouched_blocks} of them still hold what was there before".format(**differences)
    if differences["sender_reads_it_back"]:
        why += "; the sender reads its own bytes back, so a check on its side would have passed"
    return why
