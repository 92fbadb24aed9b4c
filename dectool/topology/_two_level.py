"""Schedules for nodes of several devices: at every step one device of each node talks outside."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dectool.errors import ArgumentError
from dectool.topology._edges import Ints, count
from dectool.topology._schedule import Schedule
from dectool.topology._steps import half
from dectool.topology._topology import Topology


def inner_outer_ring(nodes: int, devices: int) -> Schedule:
    r"""Return the inner-outer ring: at step t, device t mod ``devices`` of a node speaks outside.

    It sends to the same device of the next node; the other devices form a ring inside their node
    that leaves it out. :math:`W = \frac12 I + \frac12 \Pi` for a permutation Π. Rank
    node * devices + device is the device of the node.

    Args:
        nodes: Number of nodes, at least 2.
        devices: Devices of a node, at least 3.

    Raises:
        ArgumentError: There are fewer nodes or devices.

    Example:
        >>> s = inner_outer_ring(nodes=3, devices=4)
        >>> s.period, [s.at(0).out_neighbors(rank) for rank in range(4)]
        (4, [(4,), (2,), (3,), (1,)])

    References:
        B. Ying, K. Yuan, H. Hu, Y. Chen, W. Yin, BlueFog: make decentralized algorithms practical
        for optimization and deep learning, 2021 (``GetInnerOuterRingDynamicSendRecvRanks``).
    """
    nodes, devices = _sizes(nodes, devices)
    name = f"inner-outer ring of {nodes} x {devices}"
    make = _InnerOuter(nodes, devices, 1, 1, name)
    return Schedule(make, size=nodes * devices, period=devices, name=name)


def inner_outer_exponential(nodes: int, devices: int) -> Schedule:
    r"""Return the inner-outer exponential graph: at step t, device t mod ``devices`` goes outside.

    It sends to the same device of the node :math:`2^{t \bmod \tau_o}` further,
    :math:`\tau_o = 1 + \lfloor\log_2(\text{nodes} - 1)\rfloor`; the other devices send
    :math:`2^{t \bmod \tau_i}` further inside their node, not counting the one that is out,
    :math:`\tau_i = 1 + \lfloor\log_2(\text{devices} - 2)\rfloor`. :math:`W = \frac12 I + \frac12
    \Pi`. Where ``devices`` and :math:`\tau_o` have a common divisor, a device uses some of the
    distances only.

    Args:
        nodes: Number of nodes, at least 2.
        devices: Devices of a node, at least 3; rank node * devices + device.

    Raises:
        ArgumentError: There are fewer nodes or devices.

    Example:
        >>> s = inner_outer_exponential(nodes=4, devices=8)
        >>> s.size, s.period, s.at(1).out_neighbors(1), s.at(1).out_neighbors(0)
        (32, 24, (17,), (3,))

    References:
        B. Ying et al., BlueFog, 2021 (``GetInnerOuterExpo2DynamicSendRecvRanks``).
    """
    nodes, devices = _sizes(nodes, devices)
    outer, inner = (nodes - 1).bit_length(), (devices - 2).bit_length()
    name = f"inner-outer exponential graph of {nodes} x {devices}"
    make = _InnerOuter(nodes, devices, outer, inner, name)
    period = math.lcm(devices, outer, inner)
    return Schedule(make, size=nodes * devices, period=period, name=name)


def _sizes(nodes: int, devices: int) -> tuple[int, int]:
    nodes, devices = count("nodes", nodes, 1), count("devices", devices, 1)
    if nodes < 2 or devices < 3:
        raise ArgumentError(
            f"needs 2 nodes or more, of 3 devices or more, got {nodes} x {devices}: one device of "
            "each node talks outside while the others talk to each other; use "
            f"one_peer_exponential({nodes * devices}) or base_k({nodes * devices})"
        )
    return nodes, devices


@dataclass(frozen=True)
class _InnerOuter:
    nodes: int
    devices: int
    outer: int
    inner: int
    name: str

    def __call__(self, k: int) -> Topology:
        out = k % self.devices
        ranks = np.arange(self.nodes * self.devices)
        node, device = np.divmod(ranks, self.devices)
        source_node = np.where(device == out, (node - (1 << k % self.outer)) % self.nodes, node)
        inside = self._inside(device, out, 1 << k % self.inner)
        sources = source_node * self.devices + np.where(device == out, device, inside)
        return half(sources, f"{self.name}, step {k}")

    def _inside(self, device: Ints, out: int, hop: int) -> Ints:
        """Return the device ``hop`` before each, not counting the one that is out."""
        place = (device - out - 1) % self.devices
        return np.asarray((out + 1 + (place - hop) % (self.devices - 1)) % self.devices)
