"""Each rank's contribution and the right sum: whole numbers that bfloat16 holds."""

EXACT = 256  # the largest whole number up to which bfloat16 holds every one


class Values:
    """Every element has its own mixture, so that a piece at another place is wrong there."""

    def __init__(self, torch, count, ranks, device):
        self.torch, self.ranks, self.modulus = torch, ranks, max(2, EXACT // ranks)
        index = torch.arange(count, dtype=torch.int32, device=device)
        mixed = index ^ (index >> 7) ^ (index >> 14) ^ (index >> 21)
        self.base = (mixed % self.modulus).to(torch.uint8)

    def of(self, rank, count):
        base = self.base[:count].to(self.torch.int32)
        return (base * (rank + 1) + rank) % self.modulus

    def fill(self, buffer, rank):
        buffer.copy_(self.of(rank, buffer.numel()))

    def wrong(self, buffer, times=1):
        """The number of elements that differ from the sum, after so many successive all-reduces in place."""
        total = sum(self.of(rank, buffer.numel()) for rank in range(self.ranks))
        expected = total.to(buffer.dtype) * float(self.ranks) ** (times - 1)
        return int((buffer != expected).sum())

    def exact(self, times):
        """Whether so many all-reduces can be checked: a power of two only moves the exponent."""
        return self.ranks & (self.ranks - 1) == 0 and self.ranks ** (times - 1) * EXACT < 2**127
