"""The check: poison at the destination, a pattern at the source, a write, and the owner's own look.

Whoever wrote is never asked whether it arrived: a GPU that reads a peer back may be served from a mirror
of what it wrote, while the peer's memory never changed.
"""

import functools
import hashlib

BLOCK = 4096
POISON = 0xA5
POISONED = bytes([POISON]) * BLOCK


@functools.lru_cache(maxsize=2)
def pattern(seed, size):
    """Bytes that no other seed gives, every block of 4 KiB with its own number, so that one that
    arrives at another place is wrong there."""
    noise = hashlib.shake_256(seed.encode()).digest(2 * BLOCK)
    blocks = (
        number.to_bytes(8, "little") + noise[number * 8 % BLOCK :][: BLOCK - 8] for number in range(-(-size // BLOCK))
    )
    return b"".join(blocks)[:size]


class Owner:
    """Memory of the GPU that receives, looked at by that GPU alone."""

    def __init__(self, gpu, size):
        self.gpu, self.buffer = gpu, gpu.allocate(size)

    def handle(self):
        return self.gpu.handle(self.buffer)

    def poison(self, size):
        """Whether this memory keeps what its owner writes."""
        self.gpu.fill(self.buffer, POISON, size)
        return self.gpu.read(self.buffer, size) == bytes([POISON]) * size

    def differences(self, seed, size):
        """Blocks that are not the pattern; none when all of it arrived."""
        content, wanted = self.gpu.read(self.buffer, size), pattern(seed, size)
        if content == wanted:
            return {}
        starts = range(0, size, BLOCK)
        wrong = [at for at in starts if content[at : at + BLOCK] != wanted[at : at + BLOCK]]
        untouched = sum(POISONED.startswith(bytes(content[at : at + BLOCK])) for at in wrong)
        counts = {"blocks": len(starts), "wrong_blocks": len(wrong), "untouched_blocks": untouched}
        return {**counts, "first_wrong_byte": wrong[0]}


class Writer:
    """The GPU that sends: its own copy of the pattern, and the peer's memory as it is mapped here.

    fault: what is simulated, to show that the check finds it. "mirror": what is written stays on this
    side, where it also reads back right. "torn": the last block is left out. announce: told method
    and size before each write, and nothing after it.
    """

    def __init__(self, gpu, target, size, fault="", announce=lambda *what: None):
        self.gpu, self.target, self.fault, self.announce = gpu, target, fault, announce
        self.buffer, self.back = gpu.allocate(size), gpu.allocate(size)
        if fault == "mirror":
            self.target = gpu.allocate(size)

    def load(self, data):
        """Whether the sender's own memory keeps the pattern."""
        self.gpu.upload(self.buffer, data)
        return self.gpu.read(self.buffer, len(data)) == data

    def write(self, method, size):
        self.announce(method, size)
        self.gpu.write(method, self.target, self.buffer, size - BLOCK * (self.fault == "torn"))
        self.announce()

    def sees(self, data):
        """Whether it reads its own bytes back over the same mapping."""
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
