"""Latency and bandwidth of a copy curve: t = α + S ÷ B, the model behind every estimate of a collective.

Source: Hockney, The communication challenge for MPP (1994); n½ = α·B is there, too. Fitted so that the
squares of the *relative* deviations are smallest: microseconds of the largest copies would decide alone
otherwise.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agents.facts.bench import CopyPath, CopyRow, Timing

FEWEST_SIZES = 3
# Two points make a line through anything; sizes that lie close together do too.
LEAST_SPAN = 8.0
# Copies over caches, over two paths or in chunks do not follow a line; then its two figures mislead.
ROUGH = 0.25


@dataclass(frozen=True, slots=True)
class CopyFit:
    """residuals: (bytes, measured ÷ fitted − 1), sizes rising."""

    latency_us: float
    bandwidth_gb_per_s: float
    residuals: tuple[tuple[int, float], ...]

    @property
    def knee_bytes(self) -> float:
        """The size at which the wire takes as long as the start: below it latency decides."""
        return self.latency_us * self.bandwidth_gb_per_s * 1e3

    @property
    def largest_residual(self) -> float:
        return max(abs(residual) for _, residual in self.residuals)

    @property
    def rough(self) -> bool:
        """Whether some size is off by more than a quarter: read the curve then, not these figures."""
        return self.largest_residual > ROUGH

    def time_us(self, size_bytes: float) -> float:
        return self.latency_us + size_bytes / (self.bandwidth_gb_per_s * 1e3)

    @property
    def text(self) -> str:
        """ "latency 3.1 µs, bandwidth 366 GB/s, knee at 1110 KiB"."""
        knee = f"knee at {self.knee_bytes / 1024:.0f} KiB"
        figures = f"latency {self.latency_us:.3g} µs, bandwidth {self.bandwidth_gb_per_s:.3g} GB/s"
        off = f"; a rough description, up to {self.largest_residual * 100:.0f} % off" if self.rough else ""
        return f"{figures}, {knee}{off}"


@dataclass(frozen=True, slots=True)
class WayFit:
    """way: "GPU 0 to 1, peer access off". left_out: sizes whose samples were unstable (DECISIONS.md, record
    8: a copy with two modes has no median to compare)."""

    way: str
    fit: CopyFit
    left_out: int

    @property
    def knee_kib(self) -> int:
        return round(self.fit.knee_bytes / 1024)

    @property
    def note(self) -> str:
        """What limits it: "rough: up to 31 % off; 1 unstable size left out"."""
        rough = f"rough: up to {self.fit.largest_residual * 100:.0f} % off" if self.fit.rough else ""
        sizes = "size" if self.left_out == 1 else "sizes"
        unstable = f"{self.left_out} unstable {sizes} left out" if self.left_out else ""
        return "; ".join(filter(None, (rough, unstable)))


def way_fits(rows: Iterable[CopyRow]) -> tuple[WayFit, ...]:
    """Of every way between two ends that was timed by the device at enough sizes, in the order measured.

    Not of copies inside a GPU: those follow its caches and no line.
    """
    ways: dict[str, list[CopyRow]] = defaultdict(list)
    for row in rows:
        if row.timing is Timing.DEVICE and row.path in _WAYS and row.time_us > 0 < row.size_bytes:
            ways[_way(row)].append(row)
    fits = []
    for way, every in ways.items():
        steady = [row for row in every if row.unstable is not True]
        fit = copy_fit([(row.size_bytes, row.time_us) for row in steady])
        if fit:
            fits.append(WayFit(way, fit, len(every) - len(steady)))
    return tuple(fits)


_WAYS = {
    CopyPath.HOST_TO_DEVICE: "Host to GPU {row.destination}",
    CopyPath.DEVICE_TO_HOST: "GPU {row.source} to host",
    CopyPath.STAGED: "GPU {row.source} to {row.destination}, by hand over the host",
    CopyPath.PEER: "GPU {row.source} to {row.destination}",
    CopyPath.PEER_BOTH_WAYS: "GPU {row.source} and {row.destination}, each of two at once",
}


def _way(row: CopyRow) -> str:
    access = {True: ", peer access on", False: ", peer access off", None: ""}[row.peer_access]
    return _WAYS[row.path].format(row=row) + access


def copy_fit(points: Sequence[tuple[int, float]]) -> CopyFit | None:
    """points: (bytes, µs), both above 0. None with too few sizes, or where time does not grow with size."""
    sizes = [size for size, _ in points]
    if len(set(sizes)) < FEWEST_SIZES or max(sizes) < LEAST_SPAN * min(sizes):
        return None
    latency_us, us_per_byte = _line(points)
    if us_per_byte <= 0:
        return None
    fitted = CopyFit(latency_us, 1e-3 / us_per_byte, ())
    residuals = tuple((size, us / fitted.time_us(size) - 1) for size, us in sorted(points))
    return CopyFit(fitted.latency_us, fitted.bandwidth_gb_per_s, residuals)


def _line(points: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """(µs, µs a byte), the first at least 0: a negative latency is no latency."""
    largest = max(size for size, _ in points)
    starts = [1 / us for _, us in points]
    wires = [size / largest / us for size, us in points]
    ss = sum(s * s for s in starts)
    sw = sum(s * w for s, w in zip(starts, wires, strict=True))
    ww = sum(w * w for w in wires)
    determinant = ss * ww - sw * sw
    if determinant > 0:
        latency = (sum(starts) * ww - sum(wires) * sw) / determinant
        slope = (sum(wires) * ss - sum(starts) * sw) / determinant
        if latency >= 0:
            return latency, slope / largest
    return 0.0, sum(wires) / ww / largest
