"""Turn the original ONNX graphs into weights of the hand-written networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # onnx is a set-up extra and torch is slow to import
    from onnx import ModelProto, NodeProto
    from torch import Tensor, nn

NORM_EPSILON = 1e-5
LATIN_END = 0x250
LATIN_SIGNS = "€™–—‘’“”•…←→↑↓≤≥≠≈"
KINDS = {
    "Conv2d": "convolution",
    "ConvTranspose2d": "transposed",
    "Linear": "linear",
    "LayerNorm": "norm",
    "Affine": "affine",
}

Array = NDArray[np.float64]


@dataclass(slots=True, eq=False)
class Unit:
    """Hold the weights of one layer, in float64 while constants are folded into them."""

    kind: str
    weight: Array
    bias: Array

    def scale(self, factor: Array) -> None:
        """Multiply the output channels by one number or by one each."""
        channels = 1 if self.kind == "transposed" else 0
        shape = [1] * self.weight.ndim
        if factor.size > 1:
            shape[channels] = factor.size
        self.weight = self.weight * factor.reshape(shape)
        self.bias = self.bias * factor.ravel()

    def shift(self, offset: Array) -> None:
        """Add one number or one per output channel."""
        self.bias = self.bias + offset.ravel()


@dataclass(slots=True)
class GraphReader:
    """Walk a graph in its order and collect its layers.

    Normalisation after a convolution, and scalars and biases that a graph
    adds in nodes of their own, are folded into the layer before them.
    `owners` names the layer whose plain output a tensor is; `scaled` holds
    multiplications that wait for the addition that makes them a layer.
    """

    constants: dict[str, NDArray[np.generic]] = field(default_factory=dict)
    owners: dict[str, Unit] = field(default_factory=dict)
    scaled: dict[str, Array] = field(default_factory=dict)
    units: list[Unit] = field(default_factory=list)

    def read(self, model: ModelProto) -> list[Unit]:
        """Return the layers in the order in which they run."""
        from onnx import numpy_helper  # a set-up extra

        for initial in model.graph.initializer:
            self.constants[initial.name] = numpy_helper.to_array(initial)
        for node in model.graph.node:
            if node.op_type == "Constant":
                self.constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
            else:
                self._visit(node)
        return self.units

    def _visit(self, node: NodeProto) -> None:
        match node.op_type:
            case "Identity" | "Reshape":
                self._pass_on(node)
            case "Conv" | "ConvTranspose":
                self._convolution(node)
            case "BatchNormalization":
                self._batch_norm(node)
            case "MatMul":
                self._linear(node)
            case "Mul":
                self._multiply(node)
            case "Add":
                self._add(node)

    def _pass_on(self, node: NodeProto) -> None:
        name = node.input[0]
        if name in self.constants:
            value = self.constants[name]
            if node.op_type == "Reshape":
                value = value.reshape([int(side) for side in self.constants[node.input[1]]])
            self.constants[node.output[0]] = value
        elif name in self.owners and node.op_type == "Identity":
            self.owners[node.output[0]] = self.owners[name]

    def _convolution(self, node: NodeProto) -> None:
        weight = self._float(node.input[1])
        is_plain = node.op_type == "Conv"
        bias = np.zeros(weight.shape[0 if is_plain else 1])
        unit = Unit("convolution" if is_plain else "transposed", weight, bias)
        if len(node.input) > 2:
            unit.shift(self._float(node.input[2]))
        self._emit(unit, node)

    def _batch_norm(self, node: NodeProto) -> None:
        gain, offset, mean, variance = map(self._float, node.input[1:5])
        unit = self.owners[node.input[0]]
        unit.shift(-mean)
        unit.scale(gain / np.sqrt(variance + NORM_EPSILON))
        unit.shift(offset)
        self.owners[node.output[0]] = unit

    def _linear(self, node: NodeProto) -> None:
        if node.input[1] in self.constants:
            weight = self._float(node.input[1]).T
            self._emit(Unit("linear", weight, np.zeros(weight.shape[0])), node)

    def _multiply(self, node: NodeProto) -> None:
        tensor, constant = self._operands(node)
        if constant is None or constant.ndim == 0:
            return
        if tensor in self.owners:
            self.owners[tensor].scale(constant)
            self.owners[node.output[0]] = self.owners[tensor]
        else:
            self.scaled[node.output[0]] = constant

    def _add(self, node: NodeProto) -> None:
        # A constant without a dimension belongs to an activation written out in nodes.
        tensor, constant = self._operands(node)
        if constant is None or constant.ndim == 0:
            return
        if tensor in self.owners:
            self.owners[tensor].shift(constant)
            self.owners[node.output[0]] = self.owners[tensor]
        elif tensor in self.scaled:
            weight = self.scaled.pop(tensor)
            self.units.append(Unit("affine" if weight.size == 1 else "norm", weight, constant))

    def _operands(self, node: NodeProto) -> tuple[str, Array | None]:
        """Return the tensor and the constant of a node with two inputs; None if it has none."""
        for name, other in (tuple(node.input), tuple(node.input)[::-1]):
            if other in self.constants:
                return name, self._float(other)
        return node.input[0], None

    def _emit(self, unit: Unit, node: NodeProto) -> None:
        self.units.append(unit)
        self.owners[node.output[0]] = unit

    def _float(self, name: str) -> Array:
        return np.asarray(self.constants[name], np.float64)


def load_graph(path: Path) -> ModelProto:
    """Read an ONNX file."""
    import onnx  # a set-up extra

    return onnx.load(path)


def read_units(path: Path) -> list[Unit]:
    """Return the layers of a graph, folded, in the order in which they run."""
    return GraphReader().read(load_graph(path))


def read_characters(path: Path) -> list[str]:
    """Return the characters of a recognition graph by class: "" first, the space last."""
    entries = {entry.key: entry.value for entry in load_graph(path).metadata_props}
    return ["", *entries["character"].split("\n"), " "]


def latin_classes(characters: Sequence[str]) -> list[int]:
    """Return the classes that a Latin text needs, in their old order.

    The cut leaves the answers on Latin text as they were and takes the last
    layer from 18 710 classes to 543: less memory, and no full-width signs.
    """
    return [
        index
        for index, text in enumerate(characters)
        if text == "" or (len(text) == 1 and (ord(text) < LATIN_END or text in LATIN_SIGNS))
    ]


def cut_classes(units: list[Unit], classes: list[int]) -> None:
    """Keep some rows of the last layer."""
    last = units[-1]
    last.weight, last.bias = last.weight[classes], last.bias[classes]


def pair_weights(net: nn.Module, units: list[Unit]) -> dict[str, Tensor]:
    """Return the state of `net`, float32, its layers paired with `units` by position.

    The networks register their modules in the order in which the graphs run.
    """
    import torch  # slow to import

    layers = [(name, m) for name, m in net.named_modules() if type(m).__name__ in KINDS]
    assert len(layers) == len(units), f"{len(layers)} layers, {len(units)} in the graph"
    state: dict[str, Tensor] = {}
    for (name, layer), unit in zip(layers, units, strict=True):
        assert KINDS[type(layer).__name__] == unit.kind, f"{name} met a {unit.kind}"
        values = {"weight": unit.weight, "bias": unit.bias}
        for key, parameter in layer.named_parameters():
            value = values.pop(key)
            assert value.size == parameter.numel(), f"{name}.{key}: {value.shape}"
            tensor = torch.from_numpy(np.ascontiguousarray(value, np.float32))
            state[f"{name}.{key}"] = tensor.reshape(parameter.shape)
        assert all(not value.any() for value in values.values()), f"{name} drops a bias"
    return state
