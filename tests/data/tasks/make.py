#!/usr/bin/env python3
"""Makes the tiny surrogates of this folder: networks of the same form as YAHPO Gym's, with weights
drawn at random, and what onnxruntime says to some inputs (expected.json).

    python3 -m venv V && V/bin/pip install numpy==2.4.6 onnxruntime==1.31.1
    V/bin/python tests/data/tasks/make.py [FOLDER]

With a folder that holds YAHPO Gym's lcbench and rbv2_xgboost it asks these, too (yahpo.json).

The ONNX file is written by hand (protobuf: tagged fields with lengths), so that nothing else is
needed. The same seed gives the same files."""
import json
import os
import random
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FLOAT, INT32, INT64, DOUBLE = 1, 6, 7, 11


def varint(number):
    number &= (1 << 64) - 1
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(tag, value):
    if isinstance(value, int):
        return varint(tag << 3) + varint(value)
    if isinstance(value, float):
        return varint(tag << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, str):
        value = value.encode()
    return varint(tag << 3 | 2) + varint(len(value)) + value


def tensor(name, kind, dims, values):
    code = {FLOAT: "f", INT64: "q", DOUBLE: "d"}[kind]
    return (b"".join(field(1, d) for d in dims) + field(2, kind) + field(8, name) +
            field(9, struct.pack("<%d%s" % (len(values), code), *values)))


class Graph:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.nodes, self.constants, self.count = [], [], 0

    def node(self, op, inputs, **attributes):
        self.count += 1
        name = str(self.count)
        out = b"".join(field(1, i) for i in inputs) + field(2, name) + field(4, op)
        for key, value in attributes.items():
            if isinstance(value, int):
                out += field(5, field(1, key) + field(3, value) + field(20, 2))
            elif isinstance(value, float):
                out += field(5, field(1, key) + field(2, value) + field(20, 1))
            else:
                out += field(5, field(1, key) + field(5, value) + field(20, 4))
        self.nodes.append(out)
        return name

    def constant(self, kind, value, dims=()):
        values = value if isinstance(value, list) else [value]
        return self.node("Constant", [], value=tensor("", kind, dims, values))

    def weights(self, name, dims, scale=1.0, centre=0.0, empty_rows=()):
        size = 1
        for d in dims:
            size *= d
        values = [self.random.gauss(centre, scale) for _ in range(size)]
        for row in empty_rows:
            values[row * dims[1]:(row + 1) * dims[1]] = [float("nan")] * dims[1]
        self.constants.append(tensor(name, FLOAT, dims, values))
        return name

    def column(self, source, i):
        return self.node("Gather", [source, self.constant(INT64, i)], axis=1)

    def affine_in(self, x, low, span):
        x = self.node("Sub", [x, self.constant(FLOAT, low)])
        return self.node("Cast", [self.node("Div", [x, self.constant(FLOAT, span)])], to=FLOAT)

    def log_in(self, x, low, span):
        x = self.node("Log", [self.node("Add", [x, self.constant(FLOAT, 1e-12)])])
        return self.affine_in(self.node("Cast", [x], to=FLOAT), low, span)

    def nexp_in(self, x, scale):
        x = self.node("Div", [self.node("Cast", [x], to=DOUBLE), self.constant(DOUBLE, scale)])
        x = self.node("Exp", [self.node("Neg", [x])])
        x = self.node("Sub", [x, self.constant(DOUBLE, 1e-12)])
        return self.affine_in(self.node("Cast", [x], to=FLOAT), 0.36787945, 0.63212055)

    def affine_out(self, x, span, low):
        x = self.node("Mul", [x, self.constant(FLOAT, span)])
        return self.node("Cast", [self.node("Add", [x, self.constant(FLOAT, low)])], to=FLOAT)

    def log_out(self, x, span, low):
        x = self.node("Exp", [self.affine_out(x, span, low)])
        x = self.node("Sub", [x, self.constant(FLOAT, 1e-12)])
        return self.node("Cast", [self.node("Cast", [x], to=FLOAT)], to=FLOAT)

    def nexp_out(self, x, scale):
        x = self.node("Cast", [self.affine_out(x, 0.63212055, 0.36787945)], to=DOUBLE)
        x = self.node("Log", [self.node("Add", [x, self.constant(DOUBLE, 1e-12)])])
        x = self.node("Mul", [self.node("Neg", [x]), self.constant(DOUBLE, scale)])
        return self.node("Cast", [self.node("Cast", [x], to=FLOAT)], to=FLOAT)

    def unsqueeze(self, x):
        return self.node("Unsqueeze", [x, self.constant(INT64, [1], (1,))])

    def dense(self, x, name, inputs, outputs):
        return self.node("Gemm", [x, self.weights(name + ".weight", (outputs, inputs), inputs ** -0.5),
                                  self.weights(name + ".bias", (outputs,), 0.3)],
                         alpha=1.0, beta=1.0, transB=1)

    def norm(self, x, name, width):
        self.constants.append(tensor(name + ".var", FLOAT, (width,),
                                     [self.random.uniform(0.2, 1) for _ in range(width)]))
        return self.node("BatchNormalization",
                         [x, self.weights(name + ".weight", (width,), 0.1, 1.0),
                          self.weights(name + ".bias", (width,), 0.1),
                          self.weights(name + ".mean", (width,), 0.1), name + ".var"],
                         epsilon=1e-5, momentum=0.9)

    def gated(self, x, name, width, hidden):
        y = self.dense(self.norm(x, name + ".norm", width), name + ".linear0", width, 2 * hidden)
        last = self.constant(INT64, [-1], (1,))
        size = self.node("Gather", [self.node("Shape", [y]), last], axis=0)
        zero, one, two = (self.constant(INT64, [i], (1,)) for i in (0, 1, 2))
        half = self.node("Div", [self.node("Add", [size, one]), two])
        middle = self.node("Mul", [half, one])
        left = self.node("Slice", [y, zero, middle, last])
        right = self.node("Slice", [y, middle, self.node("Mul", [half, two]), last])
        y = self.node("Mul", [left, self.node("Relu", [right])])
        return self.node("Add", [x, self.dense(y, name + ".linear1", hidden, width)])

    def bytes(self, categories, numbers, output, outputs):
        def value(name, kind, width):
            shape = (field(1, field(2, "batch_size")) + field(1, field(1, width)))
            return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))
        graph = b"".join(field(1, n) for n in self.nodes) + field(2, "torch_jit")
        graph += b"".join(field(5, c) for c in self.constants)
        graph += field(11, value("x_cat", INT32, categories))
        graph += field(11, value("x_cont", FLOAT, numbers)) + field(12, value(output, FLOAT, outputs))
        return (field(1, 7) + field(2, "pytorch") + field(7, graph) +
                field(8, field(1, "") + field(2, 13)))


def network(graph, embeddings, columns, outputs, width=8, hidden=5, blocks=2):
    """`embeddings`: (rows, width, empty rows) a category; `columns`, `outputs`: what maps each."""
    parts = []
    for i, (rows, size, empty) in enumerate(embeddings):
        table = graph.weights("embds_fct.%d.weight" % i, (rows, size), 1.5, empty_rows=empty)
        parts.append(graph.node("Gather", [table, graph.column("x_cat", i)]))
    parts = [graph.node("Concat", parts, axis=1)]
    maps = [graph.unsqueeze(make(graph.column("x_cont", i))) for i, make in enumerate(columns)]
    x = graph.node("Concat", parts + [graph.node("Concat", maps, axis=1)], axis=1)
    inputs = sum(size for _, size, _ in embeddings) + len(columns)
    x = graph.dense(x, "first_layer", inputs, width)
    for i in range(blocks):
        x = graph.gated(x, "layers.%d" % i, width, hidden)
    x = graph.node("Relu", [graph.norm(x, "last_normalization", width)])
    x = graph.node("Sigmoid", [graph.dense(x, "head", width, len(outputs))])
    maps = [graph.unsqueeze(make(graph.column(x, i))) for i, make in enumerate(outputs)]
    return graph.bytes(len(embeddings), len(columns), graph.node("Concat", maps, axis=1), len(outputs))


def write(folder, name, content):
    os.makedirs(os.path.join(HERE, folder), exist_ok=True)
    text = content if isinstance(content, bytes) else content.encode()
    with open(os.path.join(HERE, folder, name), "wb") as out:
        out.write(text)


def number(name, low, high, log=False, whole=False):
    return {"name": name, "type": "uniform_int" if whole else "uniform_float", "log": log,
            "lower": low, "upper": high, "default": low}


def category(name, choices):
    return {"name": name, "type": "categorical", "choices": choices, "default": choices[0],
            "probabilities": None}


def space(parameters, conditions=()):
    return json.dumps({"hyperparameters": parameters, "conditions": list(conditions),
                       "forbiddens": [], "json_format_version": 0.2}, indent=1) + "\n"


def tiny_curves():
    g = Graph(1)
    model = network(
        g, [(5, 3, (0, 2, 4))],
        [lambda x: g.log_in(x, 0.0, 2.3), lambda x: g.affine_in(x, 16.0, 496.0),
         lambda x: g.log_in(x, -9.2, 6.9), lambda x: g.affine_in(x, 0.1, 0.89)],
        [lambda x: g.affine_out(x, 400.0, 0.5), lambda x: g.log_out(x, 32.2, -27.6),
         lambda x: g.affine_out(x, 3.0, 0.1)])
    write("tiny_curves", "model.onnx", model)
    write("tiny_curves", "config_space.json", space([
        category("OpenML_task_id", ["11", "12", "13", "14"]),
        number("batch_size", 16, 512, log=True, whole=True), number("epoch", 1, 10, whole=True),
        number("learning_rate", 1e-4, 1e-1, log=True), number("momentum", 0.1, 0.99)]))
    write("tiny_curves", "encoding.json", json.dumps({"OpenML_task_id": {"12": 1, "14": 3}}, indent=1))
    write("tiny_curves", "param_set.R", """search_space = ps(
  OpenML_task_id = p_fct(levels = c("11", "12",
    "13", "14"), tags = "task_id"),
  epoch = p_int(lower = 1L, upper = 10L, tags = "budget"),
  batch_size = p_dbl(lower = log(16L), upper = log(512L), tags = c("int", "log"), trafo = function(x) as.integer(round(exp(x)))),
  learning_rate = p_dbl(lower = log(1e-4), upper = log(1e-1), tags = "log", trafo = function(x) exp(x)),
  momentum = p_dbl(lower = 0.1, upper = 0.99)
)

codomain = ps(
  val_accuracy = p_dbl(lower = 0, upper = 100, tags = "maximize"),
  val_cross_entropy = p_dbl(lower = 0, upper = Inf, tags = "minimize"),
  time = p_dbl(lower = 0, upper = Inf, tags = "minimize")
)
""")


def tiny_conditional():
    g = Graph(2)
    model = network(
        g, [(4, 3, (0, 2)), (3, 2, ())],
        [lambda x: g.affine_in(x, 1.0, 2980.0), lambda x: g.nexp_in(x, 0.99996698),
         lambda x: g.affine_in(x, 0.0, 31.0), lambda x: g.affine_in(x, 0.02, 0.98),
         lambda x: g.log_in(x, 0.0, 2.3025851)],
        [lambda x: g.log_out(x, 27.631021, -27.631021), lambda x: g.nexp_out(x, 34.48290253),
         lambda x: g.affine_out(x, 25.0, 0.123)])
    write("tiny_conditional", "model.onnx", model)
    write("tiny_conditional", "config_space.json", space(
        [category("booster", ["gblinear", "gbtree"]),
         number("nrounds", 7, 2981, log=True, whole=True), number("repl", 1, 10, whole=True),
         category("task_id", ["3", "5"]), number("trainsize", 0.03, 1.0),
         number("eta", 1e-3, 1.0, log=True), number("max_depth", 1, 15, whole=True)],
        [{"child": "eta", "parent": "booster", "type": "IN", "values": ["gbtree"]},
         {"child": "max_depth", "parent": "booster", "type": "EQ", "value": "gbtree"}]))
    write("tiny_conditional", "encoding.json", json.dumps(
        {"booster": {"#na#": 0, "gblinear": 1, "gbtree": 2}, "task_id": {"3": 1, "5": 3}}, indent=1))
    write("tiny_conditional", "param_set.R", """search_space = ps(
  booster = p_fct(levels = c("gblinear", "gbtree")),
  nrounds = p_dbl(lower = 2, upper = 8, tags = c("int", "log"), trafo = function(x) as.integer(round(exp(x)))),
  eta = p_dbl(lower = -7, upper = 0, tags = "log", trafo = function(x) exp(x), depends = booster %in% c("gbtree")),
  max_depth = p_int(lower = 1L, upper = 15L, depends = booster == "gbtree"),
  trainsize = p_dbl(lower = 0.03, upper = 1, tags = "budget"),
  repl = p_int(lower = 1L, upper = 10L, tags = "budget"),
  task_id = p_fct(levels = c("3", "5"),
    tags = "task_id"
  )
)

codomain = ps(
  acc = p_dbl(lower = 0, upper = 1, tags = "maximize"),
  logloss = p_dbl(lower = 0, upper = Inf, tags = "minimize"),
  timetrain = p_dbl(lower = 0, upper = Inf, tags = "minimize")
)
""")


def said(folder, categories, numbers):
    """What onnxruntime says to these rows."""
    import numpy
    import onnxruntime
    session = onnxruntime.InferenceSession(os.path.join(folder, "model.onnx"))
    numbers = numpy.stack(numbers, 1).astype(numpy.float32)
    categories = numpy.stack(categories, 1).astype(numpy.int32)
    outputs = session.run(None, {"x_cat": categories, "x_cont": numbers})[0]
    return {"x_cat": categories.ravel().tolist(),
            "x_cont": [float("%.9g" % v) for v in numbers.ravel()],
            "outputs": [float("%.9g" % v) for v in outputs.ravel()]}


def expected(rows=40):
    import numpy
    r = numpy.random.default_rng(3)
    found = {
        "tiny_curves": said(
            os.path.join(HERE, "tiny_curves"), [r.choice([1, 3], rows)],
            [r.integers(1, 11, rows), r.integers(16, 513, rows), 10 ** r.uniform(-4, -1, rows),
             r.uniform(.1, .99, rows)]),
        "tiny_conditional": said(
            os.path.join(HERE, "tiny_conditional"), [r.choice([1, 3], rows), r.integers(1, 3, rows)],
            [r.integers(7, 2982, rows), r.uniform(0, 1, rows), r.integers(0, 16, rows),
             r.uniform(.03, 1, rows), r.integers(1, 11, rows)])}
    write(".", "expected.json", json.dumps(found) + "\n")


def expected_of_yahpo(folder, rows=40):
    import numpy
    r = numpy.random.default_rng(4)
    logs = lambda low, high: numpy.exp(r.uniform(numpy.log(low), numpy.log(high), rows))
    curves = said(
        os.path.join(folder, "lcbench"), [r.choice(numpy.arange(1, 36, 2), rows)],
        [r.integers(1, 53, rows), numpy.round(logs(16, 512)), logs(1e-4, .1), r.uniform(.1, .99, rows),
         r.uniform(1e-5, .1, rows), r.integers(1, 6, rows), numpy.round(logs(64, 1024)),
         r.random(rows)])
    active = r.random((8, rows)) < .7
    trees = [logs(9.2e-4, 1), logs(4.6e-5, 7.3), r.integers(1, 16, rows), logs(2.72, 148),
             r.uniform(.01, 1, rows), r.uniform(.01, 1, rows), r.random(rows), r.random(rows)]
    eta, gamma, depth, weight, by_tree, by_level, rate, skip = [t * a for t, a in zip(trees, active)]
    conditional = said(
        os.path.join(folder, "rbv2_xgboost"),
        [r.choice(numpy.arange(1, 120, 2), rows), r.integers(1, 4, rows), r.integers(1, 4, rows)],
        [numpy.round(logs(7, 2981)), eta, gamma, logs(9.2e-4, 1096), logs(9.2e-4, 1096),
         r.uniform(.1, 1, rows), depth, weight, by_tree, by_level, rate, skip,
         r.uniform(.03, 1, rows), r.integers(1, 11, rows)])
    write(".", "yahpo.json", json.dumps({"lcbench": curves, "rbv2_xgboost": conditional}) + "\n")


if __name__ == "__main__":
    tiny_curves()
    tiny_conditional()
    expected()
    if len(sys.argv) > 1:
        expected_of_yahpo(sys.argv[1])
