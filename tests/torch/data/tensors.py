"""Writes tensors.safetensors with the format's own package: `pip install safetensors numpy`, then
`python3 tensors.py` in this folder."""
import numpy
from safetensors.numpy import save_file

save_file(
    {
        "f64": numpy.array([[1.5, -2.5], [numpy.inf, 1e-300]]),
        "f32": numpy.arange(6, dtype=numpy.float32).reshape(1, 2, 3) / 4,
        "f16": numpy.array([0.5, -65504], dtype=numpy.float16),
        "i64": numpy.array([-(2**62), 7]),
        "u8": numpy.array([[0], [255]], dtype=numpy.uint8),
        "bool": numpy.array([True, False, True]),
        "scalar": numpy.array(3, dtype=numpy.int32),
        "empty": numpy.zeros((0, 4), dtype=numpy.float32),
    },
    "tensors.safetensors",
    metadata={"format": "np"},
)
