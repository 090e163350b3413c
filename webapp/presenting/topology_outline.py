"""The topology as nested lists, for where the map has no room: the same words, one tree below the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from webapp.diagnosis.situation.topology import GuestGpu, HostGpu, Topology, short
from webapp.presenting import topology_figure as words


@dataclass(frozen=True, slots=True)
class Node:
    """kind: as that of a box of the map. twin: the same device in the other tree."""

    kind: str
    title: str
    about: str = ""
    twin: str = ""
    below: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Tree:
    title: str
    under: str
    nodes: tuple[Node, ...]


def outline(topology: Topology, processor: str = "") -> tuple[Tree, ...]:
    """The host's tree, then the guest's; each only when it is known. processor: what the host calls it."""
    trees = []
    if topology.host:
        trees.append(Tree(*words.host_words(processor), tuple(_host(topology))))
    if topology.guest:
        trees.append(Tree(*words.guest_words(topology), (_guest(topology),)))
    return tuple(trees)


def _host(topology: Topology) -> Iterable[Node]:
    gpus = topology.host
    twins = {host: topology.guest[guest].name for host, guest in topology.matches}
    for numa_node, members in words.runs(words.in_order(gpus), lambda i: gpus[i].numa_node):
        ports = words.runs(members, lambda i: (gpus[i].root_complex, gpus[i].port))
        below = tuple(_port(gpus, below, twins) for _, below in ports)
        yield Node("node", *words.node_words(numa_node), below=below)


def _port(gpus: Sequence[HostGpu], members: list[int], twins: dict[int, str]) -> Node:
    below: list[Node] = []
    for switch, under in words.runs(members, lambda i: gpus[i].switch):
        real = tuple(Node("real", *words.host_gpu_words(gpus[i]), twin=twins.get(i, "")) for i in under)
        about = words.acs_words([gpus[i] for i in under])
        below += [Node("switch", f"switch {short(switch)}", about, below=real)] if switch else real
    return Node("port", *words.port_words(gpus[members[0]]), below=tuple(below))


def _guest(topology: Topology) -> Node:
    gpus, kind = topology.guest, words.guest_kind(topology)
    twins = {guest: short(topology.host[host].address) for host, guest in topology.matches}
    below: list[Node] = []
    for bridge, members in words.runs(range(len(gpus)), lambda i: gpus[i].bridge):
        leaves = tuple(_leaf(kind, gpus[i], twins.get(i, "")) for i in members)
        below += [Node(kind, bridge, words.SHARED, below=leaves)] if bridge else leaves
    return Node(kind, *words.bus_words(topology), below=tuple(below))


def _leaf(kind: str, gpu: GuestGpu, twin: str) -> Node:
    return Node(kind, *words.guest_gpu_words(gpu), twin=twin)
