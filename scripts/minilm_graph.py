"""Writes the graph of the bundled model, without weights: `python -m scripts.minilm_graph`.

It takes the weights by their names in `model.safetensors` and in the shapes that they have there;
what depends on weights alone is computed once, when onnxruntime loads the graph.

Source: BERT (Devlin et al., 2019), whose encoder it is; docs/decisions/0020.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from ragfilter.models.embedders import DIMENSION, GRAPH

LAYERS = 6
HEADS = 12
INNER = 4 * DIMENSION
WORDS, PLACES, KINDS = 30522, 512, 2
EPSILON = 1e-12
OPSET, IR_VERSION = 20, 9
"""The oldest that have Gelu, for the oldest onnxruntime of the range."""


class Graph:
    """The nodes and tensors of a graph. Each method adds some, and returns the name of a result."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.tensors: list[TensorProto] = []

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        (output,) = self.split(operator, 1, *inputs, **attributes)
        return output

    def split(self, operator: str, n: int, *inputs: str, **attributes: Any) -> list[str]:
        """A node with n outputs."""
        outputs = [f"{operator}_{len(self.nodes)}_{i}" for i in range(n)]
        self.nodes.append(helper.make_node(operator, inputs, outputs, **attributes))
        return outputs

    def constant(self, value: float | list[int], kind: type = np.int64) -> str:
        name = f"constant_{len(self.tensors)}"
        self.tensors.append(numpy_helper.from_array(np.array(value, dtype=kind), name))
        return name

    def weight(self, name: str, *shape: int) -> str:
        """A tensor of the weights, which is given when the graph is loaded."""
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape)
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="model.safetensors")
        self.tensors.append(tensor)
        return name

    def normed(self, x: str, name: str) -> str:
        parts = [self.weight(f"{name}.LayerNorm.{part}", DIMENSION) for part in ("weight", "bias")]
        return self.node("LayerNormalization", x, *parts, epsilon=EPSILON)

    def dense(self, x: str, name: str, inputs: int, outputs: int) -> str:
        weight = self.node("Transpose", self.weight(f"{name}.weight", outputs, inputs), perm=[1, 0])
        product = self.node("MatMul", x, weight)
        return self.node("Add", product, self.weight(f"{name}.bias", outputs))

    def embedded(self, ids: str) -> str:
        """What a word means, where it stands, and that the text has one part."""
        words, places, kinds = (
            self.weight(f"embeddings.{part}_embeddings.weight", n, DIMENSION)
            for part, n in (("word", WORDS), ("position", PLACES), ("token_type", KINDS))
        )
        places = self.node("Add", places, self.node("Gather", kinds, self.constant(0)))
        length = self.node("Slice", self.node("Shape", ids), self.constant([1]), self.constant([2]))
        places = self.node("Slice", places, self.constant([0]), length)
        return self.normed(self.node("Add", self.node("Gather", words, ids), places), "embeddings")

    def attention(self, x: str, name: str) -> str:
        """Each token's mean of the values of all tokens, weighted by how well its query fits their keys."""
        width = DIMENSION // HEADS
        apart, together = self.constant([0, 0, HEADS, width]), self.constant([0, 0, DIMENSION])
        query, key, value = (
            self.node(
                "Transpose",
                self.node("Reshape", self.dense(x, f"{name}.{part}", DIMENSION, DIMENSION), apart),
                perm=perm,
            )
            for part, perm in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3]))
        )
        scale = self.constant(width**-0.5, np.float32)
        fits = self.node("Softmax", self.node("Mul", self.node("MatMul", query, key), scale))
        mean = self.node("Transpose", self.node("MatMul", fits, value), perm=[0, 2, 1, 3])
        return self.node("Reshape", mean, together)

    def layer(self, x: str, name: str) -> str:
        mean = self.attention(x, f"{name}.attention.self")
        seen = self.dense(mean, f"{name}.attention.output.dense", DIMENSION, DIMENSION)
        x = self.normed(self.node("Add", seen, x), f"{name}.attention.output")
        inner = self.node("Gelu", self.dense(x, f"{name}.intermediate.dense", DIMENSION, INNER))
        outer = self.dense(inner, f"{name}.output.dense", INNER, DIMENSION)
        return self.normed(self.node("Add", outer, x), f"{name}.output")


def model() -> ModelProto:
    """Token numbers (texts, tokens) of texts that have the same length, to vectors (texts, tokens, 384)."""
    graph = Graph()
    x = graph.embedded("ids")
    for n in range(LAYERS):
        x = graph.layer(x, f"encoder.layer.{n}")
    shape = ["texts", "tokens"]
    made = helper.make_graph(
        graph.nodes,
        "MiniLM",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, shape)],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, [*shape, DIMENSION])],
        graph.tensors,
    )
    opset = helper.make_opsetid("", OPSET)
    return helper.make_model(made, opset_imports=[opset], ir_version=IR_VERSION)


if __name__ == "__main__":
    GRAPH.write_bytes(model().SerializeToString(deterministic=True))
