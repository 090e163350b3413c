"""Every ordered pair of GPUs with the path between them and the driver's verdict, row by row."""

import re
from dataclasses import dataclass

from agents.facts.bench import DELIVERY
from agents.facts.p2p import P2P_READ, P2P_WRITE, TOPOLOGY, P2pCode
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.situation.own_machine import own_readings

_WAYS = {"PIX": "near", "PXB": "near", "PHB": "bridge", "NODE": "far", "SYS": "far"}


@dataclass(frozen=True, slots=True)
class PairCell:
    """link: what `topo -m` calls the path. read, write: what `topo -p2p` answers. "" where not read.

    delivered: whether bytes sent this way were checked at their destination; None: not checked.
    """

    source: str
    destination: str
    link: str
    read: str
    write: str
    delivered: bool | None = None

    @property
    def way(self) -> str:
        """nvlink, near (a shared bridge), bridge (a host bridge), far, or unknown."""
        return "nvlink" if re.match(r"NV\d+$", self.link) else _WAYS.get(self.link, "unknown")

    @property
    def verdict(self) -> str:
        """no: refused either way, or the bytes were wrong. yes: allowed both ways. else unknown."""
        answers = {self.read, self.write} - {"", P2pCode.UNKNOWN}
        if self.delivered is False or answers - {P2pCode.OK}:
            return "no"
        return "yes" if self.read == self.write == P2pCode.OK else "unknown"

    @property
    def code(self) -> str:
        """One code when reads and writes agree or only one was read, else both."""
        codes = [code for code in (self.read, self.write) if code]
        return "/".join(dict.fromkeys(codes)) or "?"

    @property
    def title(self) -> str:
        checked = {None: "", True: ", bytes checked", False: ", bytes wrong"}[self.delivered]
        read, write = self.read or "not read", self.write or "not read"
        return (
            f"{self.source} to {self.destination}: path {self.link or 'not read'}, read {read}, write {write}{checked}"
        )


@dataclass(frozen=True, slots=True)
class PairMap:
    """rows: for each GPU its cells in order; None on the diagonal."""

    gpus: tuple[str, ...]
    rows: tuple[tuple[str, tuple[PairCell | None, ...]], ...]


def pair_map(facts: Facts) -> PairMap | None:
    """None when neither the paths nor the driver's answers were read."""
    topology, read, write = facts.value(TOPOLOGY), facts.value(P2P_READ), facts.value(P2P_WRITE)
    names = max((m.gpus for m in (topology, read, write) if m), key=len, default=())
    if len(names) < 2:
        return None
    links = topology.gpu_links() if topology else {}
    reads, writes = (matrix.pairs() if matrix else {} for matrix in (read, write))
    delivery = own_readings(facts).value(DELIVERY)
    arrived = delivery.pairs if delivery else {}
    checked = {tuple(re.findall(r"\d+", key)): right for key, right in arrived.items()}

    def cell(a: str, b: str) -> PairCell | None:
        if a == b:
            return None
        link, read_code, write_code = (str(codes_of.get((a, b), "")) for codes_of in (links, reads, writes))
        bytes_right = checked.get((a.removeprefix("GPU"), b.removeprefix("GPU")))
        return PairCell(a, b, link, read_code, write_code, bytes_right)

    return PairMap(names, tuple((a, tuple(cell(a, b) for b in names)) for a in names))
