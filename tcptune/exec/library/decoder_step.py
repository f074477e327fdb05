"""A decoder step of Qwen3-0.6B as workloads: sizes, contractions, the example's placements, and what they cost (XFMR-001 to XFMR-016).

Sizes are those of the published example. A placement keeps the weight in the TRF and streams the activation, as the example does.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tcptune.ir.mappings.axes import Axes
from tcptune.ir.mappings.mapping import Mapping
from tcptune.ir.types import dtype
from tcptune.model.hardware import RNGD, Hardware
from tcptune.model.timing.overlap import fits_trf_half, register_store_cycles

MODEL = "Qwen3-0.6B"
TIED_EMBEDDING = True
"""The model shares the embedding with the LM head; the example takes a weight of its own and claims no sharing (XFMR-001, XFMR-011)."""

LAYERS, QUERY_HEADS, VOCABULARY, ROPE_THETA = 28, 16, 151_936, 1_000_000
TILE_ROWS = 8_192
"""Rows of the LM head that one tile of the example holds."""

AXES = {
    "H": 1024,
    "Q": 2048,
    "P": 1024,
    "N": 8,
    "G": 2,
    "D": 128,
    "L": 3072,
    "T": 512,
    "E": 32_768,
    "W": VOCABULARY,
    "Wp": -(-VOCABULARY // TILE_ROWS) * TILE_ROWS,
    "C": 64,
}
"""Axis sizes of the example (XFMR-003)."""

ELEMENT = dtype("bf16")


@dataclass(frozen=True)
class Contraction:
    """One contraction of the step.

    Attributes:
        activation, weight: axes of the operands; the last one of the activation is summed.
        kernel: the boundary kernel that runs it (XFMR-004); those of a chunk run in both attention kernels.
        slice, lane, element: the example's placement of the weight in the TRF.
        clusters: clusters it uses.
        tiles: launches of the pass a token.
        per_chunk: once for every KV chunk and layer.
        launches: launches a token (a layer each, or one).
    """

    name: str
    activation: tuple[str, ...]
    weight: tuple[str, ...]
    slice: str
    lane: str
    element: str
    kernel: str = "decoder"
    launches: int = LAYERS
    clusters: int = 1
    tiles: int = 1
    per_chunk: bool = False

    @property
    def axes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.activation, *self.weight)))

    @property
    def result(self) -> tuple[str, ...]:
        """Axes of the result: those of the activation that stay, then what the weight brings."""
        return tuple(a for a in self.axes if a != self.activation[-1])

    @property
    def macs(self) -> int:
        return prod(AXES[a] for a in self.axes)

    @property
    def weight_bytes(self) -> int:
        return ELEMENT.bytes_of(prod(AXES[a] for a in self.weight))

    def mapping(self, text: str) -> Mapping:
        return Axes({a: AXES[a] for a in AXES}).mapping(text)

    @property
    def slices(self) -> int:
        return self.mapping(self.slice).live_size

    @property
    def lanes(self) -> int:
        return self.mapping(self.lane).size

    @property
    def bytes_per_lane(self) -> int:
        return ELEMENT.bytes_of(self.mapping(self.element).size)

    @property
    def bytes_per_slice(self) -> int:
        return self.lanes * self.bytes_per_lane

    def streamed_elements(self) -> int:
        """Elements of the activation that pass one slice: what its slice mapping does not split."""
        split = self.mapping(self.slice)
        shared = [t for t in split.terms() if set(t.axes) & set(self.activation)]
        return prod(AXES[a] for a in self.activation) // prod(t.live_size for t in shared)

    def pack_size(self, hw: Hardware = RNGD) -> int:
        """Flits of a packet: both halves of the multiplier if the innermost run of the reduced axis fills them."""
        innermost = self.mapping(self.element).terms()[-1]
        return min(max(hw.contraction_packet_bytes), ELEMENT.bytes_of(innermost.size)) // hw.flit_bytes

    def stream_flits(self, hw: Hardware = RNGD) -> int:
        return -(-ELEMENT.bytes_of(self.streamed_elements()) // hw.flit_bytes)

    def outer_packets(self, hw: Hardware = RNGD) -> int:
        """Packets that the multipliers take: multiplications of a slice over those of a cycle."""
        per_packet = self.pack_size(hw) * hw.flit_bytes * 8 // ELEMENT.bits
        macs = self.macs // (self.slices * self.clusters * self.tiles)
        return macs // (self.lanes * per_packet)

    def contraction_cycles(self, hw: Hardware = RNGD) -> int:
        return max(self.stream_flits(hw), self.outer_packets(hw))

    def store_cycles(self, hw: Hardware = RNGD) -> int:
        return register_store_cycles(self.bytes_per_slice, hw)

    def fits_half(self) -> bool:
        return fits_trf_half(self.bytes_per_slice)


CONTRACTIONS = (
    Contraction("q_proj", ("H",), ("Q", "H"), "Q / 32, 1 # 4", "Q / 4 % 8", "Q % 4, H", "projection"),
    Contraction("k_proj", ("H",), ("P", "H"), "P / 32, 1 # 8", "P % 8", "P / 8 % 4, H", "projection"),
    Contraction("v_proj", ("H",), ("P", "H"), "P / 32, 1 # 8", "P % 8", "P / 8 % 4, H", "projection"),
    Contraction("qk", ("N", "G", "D"), ("T", "N", "D"), "T / 8, 1 # 4", "T % 8", "N, D", "attention_forward", per_chunk=True),
    Contraction("pv", ("N", "G", "T"), ("T", "N", "D"), "N, T / 16", "D % 8", "D / 8, T % 16", "attention_forward", per_chunk=True),
    Contraction("o_proj", ("Q",), ("H", "Q"), "H / 16, 1 # 4", "H / 4 % 4", "H % 4, Q"),
    Contraction("up_proj", ("H",), ("L", "H"), "L / 24, 1 # 2", "L % 8", "L / 8 % 3, H"),
    Contraction("gate_proj", ("H",), ("L", "H"), "L / 24, 1 # 2", "L % 8", "L / 8 % 3, H"),
    Contraction("down_proj", ("L",), ("H", "L"), "H / 8, 1 # 2", "H % 8", "L"),
    Contraction("lm_head", ("H",), ("Wp", "H"), "Wp / 16 % 256", "Wp % 8", "Wp / 8 % 2, H", "final_layer", 1, 2, AXES["Wp"] // TILE_ROWS),
)
"""The ten contractions of a step (XFMR-012)."""


def attention_parameters() -> int:
    """Weights of the four projections of a layer (XFMR-002)."""
    return sum(prod(AXES[a] for a in c.weight) for c in CONTRACTIONS if c.name in ("q_proj", "k_proj", "v_proj", "o_proj"))


def mlp_parameters() -> int:
    return sum(prod(AXES[a] for a in c.weight) for c in CONTRACTIONS if c.name in ("up_proj", "gate_proj", "down_proj"))


def total_parameters() -> int:
    """All parameters, embedding and LM head shared, norm vectors included."""
    norms = LAYERS * (2 * AXES["H"] + 2 * AXES["D"]) + AXES["H"]
    return LAYERS * (attention_parameters() + mlp_parameters()) + VOCABULARY * AXES["H"] + norms


def per_token(value: dict[str, int], chunks: int = 1) -> int:
    """Sum of a quantity of every contraction over one token: launches, tiles and chunks counted."""
    return sum(value[c.name] * c.launches * (chunks if c.per_chunk else 1) for c in CONTRACTIONS)


BOUNDARY_KERNELS = {
    "embedding": 1,
    "projection": LAYERS,
    "attention_forward_first": LAYERS,
    "attention_forward": LAYERS,
    "decoder": LAYERS,
    "final_layer": 1,
}
"""Kernels of a step in their order, and launches of each a token (further chunks apart) (XFMR-004 to XFMR-011)."""

CHAINED = (
    ("projection", "q_out", "attention_forward_first", "q"),
    ("projection", "k_cache", "attention_forward_first", "k"),
    ("projection", "v_cache", "attention_forward_first", "v"),
    ("attention_forward_first", "max", "attention_forward", "max"),
    ("attention_forward_first", "sum", "attention_forward", "sum"),
    ("attention_forward_first", "out", "attention_forward", "out"),
    ("attention_forward", "sum", "decoder", "sum"),
    ("attention_forward", "out", "decoder", "x"),
    ("decoder", "rx", "final_layer", "input"),
)
"""Tensors that one kernel writes and a later one reads (XFMR-004)."""

EPSILON = 6.25e-8
"""Added to a mean square, and to the sum of a softmax (XFMR-009)."""

LOGIT_DIVISOR = 11.313708
"""Root of the head dimension, by which logits are divided (XFMR-009)."""

MNIST_AXES = {"X": 800, "H": 256, "C": 16}
MNIST_LAYERS = (("fc1", "X, HX -> H", ("X", "H")), ("fc2", "H, CH -> C", ("H", "C")))
"""The two-layer perceptron of the scheduling chapter (SCHED-019)."""

TOLERANCES = {
    "projection": (0.08, 0.08),
    "attention, two chunks": (0.12, 0.12),
    "decoder": (0.25, 0.2),
    "decoder step with zero weights": (0.05, 0.05),
    "final_layer": (0.08, 0.08),
}
"""Absolute and relative part of the tolerance of each boundary, in the form ``sum`` (XFMR-014, ORACLE-009)."""

NAMED_TESTS = ("test_embedding", "test_decoder_step_wires_kernel_boundaries", "test_final_layer_matches_scalar_reference")
"""Tests of the example (XFMR-014)."""
