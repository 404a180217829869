#!/usr/bin/env python3
"""TensorBoard opens what `context().writer()` wrote: numbers, images, histograms and texts of a
sweep that was interrupted and resumed, each step once. Needs `tensorboard`."""
import pathlib
import signal
import struct
import subprocess
import tempfile
import time
import zlib

import tools

SWEEP = """trainable: Shown
plugin: {plugin}
config: {{lr: {{uniform: [0, 1]}}}}
num_samples: 2
stop: {{training_iteration: 60}}
checkpoint: {{frequency: 7}}
metric: value
mode: max
"""


def main():
    tools.need("tensorboard", "tensorboard")
    build = tools.build_folder()
    with tempfile.TemporaryDirectory(prefix="tune-test-") as temporary:
        place = pathlib.Path(temporary)
        (place / "sweep.yaml").write_text(SWEEP.format(plugin=build / "lib/libtune_synthetic.so"))
        words = [build / "bin/tune", "run", "sweep.yaml", "--name", "s", "--cpus", "2"]
        run = subprocess.Popen(list(map(str, words)), cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while run.poll() is None and not list(place.glob("results/s/*/checkpoint_000014*")):
            time.sleep(0.01)
        run.send_signal(signal.SIGKILL)
        run.communicate()
        tools.tune(build, "resume", place / "results/s")
        trials = sorted(place.glob("results/s/*/tensorboard"))
        assert len(trials) == 2, trials
        for trial in trials:
            check(trial)
    print("TensorBoard shows what the trials wrote")


def check(folder):
    from tensorboard.backend.event_processing import event_accumulator
    sizes = {"scalars": 0, "images": 0, "histograms": 0, "tensors": 0}
    found = event_accumulator.EventAccumulator(str(folder), size_guidance=sizes)
    found.Reload()
    batches = [(point.step, point.value) for point in found.Scalars("batch/loss")]
    assert [step for step, _ in batches] == list(range(1, 601)), batches
    assert all(abs(value - 1 / step) < 1e-6 for step, value in batches)
    steps = list(range(10, 601, 10))
    images = found.Images("picture")
    assert [image.step for image in images] == steps
    assert (images[0].width, images[0].height) == (32, 16)
    assert pixels(images[-1].encoded_image_string) == [
        bytes(byte for x in range(32) for byte in (8 * x, 16 * y, 40)) for y in range(16)]
    histograms = found.Histograms("weights")
    assert [histogram.step for histogram in histograms] == steps
    value = histograms[1].histogram_value
    assert value.num == 101 and value.min == -10 and value.max == 10 and sum(value.bucket) == 101, value
    texts = found.Tensors("note/text_summary" if "note/text_summary" in found.Tags()["tensors"] else "note")
    # This reader, unlike TensorBoard's page, keeps the tensors of steps that were done again.
    assert {text.step: text.tensor_proto.string_val[0].decode() for text in texts} == {
        step: f"step **{step // 10}**" for step in steps}, texts


def pixels(png):
    """The rows of a PNG of 8 bits without filters; the checksums of its parts are right."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, parts = 8, {}
    while at < len(png):
        size, = struct.unpack(">I", png[at:at + 4])
        kind, content = png[at + 4:at + 8], png[at + 8:at + 8 + size]
        assert zlib.crc32(kind + content) == struct.unpack(">I", png[at + 8 + size:at + 12 + size])[0]
        parts[kind] = content
        at += 12 + size
    width, height, bits, colour = struct.unpack(">IIBB", parts[b"IHDR"][:10])
    assert (bits, colour) == (8, 2)
    rows = zlib.decompress(parts[b"IDAT"])
    line = 3 * width + 1
    assert len(rows) == line * height and not any(rows[::line])
    return [rows[line * y + 1:line * (y + 1)] for y in range(height)]


if __name__ == "__main__":
    main()
