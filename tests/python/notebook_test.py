"""A notebook's kernel runs searches: one table in one cell, one warning of its threads, and Ctrl-C that ends
cleanly. Needs a Python with ipykernel: this one, or $TUNE_NOTEBOOK_PYTHON; else skipped.

    python3 -m venv notebook && notebook/bin/pip install ipykernel
"""

import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

DRIVER = r'''
import sys, time
from pathlib import Path
from jupyter_client import KernelManager

BEGIN = """
import time, tune

class Slow(tune.Trainable):
    def setup(self, config):
        self.x, self.n = config["x"], 0
    def step(self):
        self.n += 1
        time.sleep(0.02)
        return {"y": self.x * self.n}
    def save(self, directory):
        (directory / "n").write_text(str(self.n))
    def load(self, directory):
        self.n = int((directory / "n").read_text())

options = dict(config={"x": tune.grid_search([1, 2])}, metric="y", mode="max", cpus=2, name="slow")
"""

def run(client, code, interrupt_when=None):
    """What the cell showed: (type, text) of every message, the error's name, and the cells of the table."""
    sent = client.execute(code)
    shown, error, tables = [], None, {}
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if interrupt_when is not None and interrupt_when():
            manager.interrupt_kernel()
            interrupt_when = None
        try:
            message = client.get_iopub_msg(timeout=0.05)
        except Exception:
            continue
        if message["parent_header"].get("msg_id") != sent:
            continue
        content = message["content"]
        if message["msg_type"] == "stream":
            shown.append((content["name"], content["text"]))
        elif message["msg_type"] in ("display_data", "update_display_data"):
            tables.setdefault(content["transient"]["display_id"], []).append(content["data"]["text/html"])
        elif message["msg_type"] == "error":
            error = content["ename"] + ": " + content["evalue"]
        elif message["msg_type"] == "status" and content["execution_state"] == "idle":
            return "".join(t for n, t in shown if n == "stdout"), "".join(t for n, t in shown if n == "stderr"), error, tables
    raise SystemExit("the cell never ended")

manager = KernelManager(kernel_name="python3")
manager.start_kernel()
try:
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    assert run(client, BEGIN)[2] is None

    out, err, error, tables = run(
        client, "print(tune.run(Slow, **{**options, 'name': 'a'}, stop={'training_iteration': 3}).best_config)")
    assert error is None, error
    assert out == "{'x': 2}\n", out
    assert len(tables) == 1, tables  # one place, however often it changed
    last = next(iter(tables.values()))[-1]
    assert "<table" in last and "2/2 (2 TERMINATED)" in last, last
    warned = err.count("warning: this process runs")
    assert warned == 1, err

    endless = "tune.run(Slow, **options, stop={'training_iteration': 60}%s)"
    has_begun = lambda: sum(len(f.read_text().splitlines()) for f in Path("results/slow").glob("*/result.json")) > 4
    out, err, error, tables = run(client, endless % "", has_begun)
    assert error.startswith("InterruptedRun: SIGINT"), error
    assert "tune.run(..., name=\"slow\", if_exists=\"resume\")" in error, error
    assert "warning: this process runs" not in err, err
    assert list(Path("results/slow").glob("*/checkpoint_*")), "nothing was saved"

    out, err, error, tables = run(
        client, "print(tune.run(Slow, **options, stop={'training_iteration': 60}, if_exists='resume').best_result['y'])")
    assert (out, error) == ("120\n", None), (out, err, error)
    rows = [line for f in Path("results/slow").glob("*/result.json") for line in f.read_text().splitlines()]
    assert len(rows) == 120, len(rows)
finally:
    manager.shutdown_kernel(now=True)
print("ok")
'''


def python_with_kernel():
    for python in filter(None, [os.environ.get("TUNE_NOTEBOOK_PYTHON", ""), sys.executable]):
        code = "import importlib.util as u, sys; sys.exit(not (u.find_spec('ipykernel') and u.find_spec('jupyter_client')))"
        if os.access(python, os.X_OK) and subprocess.run([python, "-c", code]).returncode == 0:
            return python
    return None


class NotebookTest(unittest.TestCase):
    def test_a_kernel_shows_one_table_and_an_interrupt_is_resumed(self):
        python = python_with_kernel()
        if python is None:
            self.skipTest("there is no Python with ipykernel")
        with tempfile.TemporaryDirectory(prefix="tune-python-test-") as folder:
            (Path(folder) / "notebook.py").write_text(DRIVER)
            done = subprocess.run(
                [python, "notebook.py"], cwd=folder, capture_output=True, text=True, timeout=200,
                env=dict(os.environ, TUNE_PYTHON=python, IPYTHONDIR=folder),
            )
            self.assertEqual((done.stdout, done.returncode), ("ok\n", 0), done.stderr)
            end = time.monotonic() + 20
            while self.left_over(folder) and time.monotonic() < end:
                time.sleep(0.05)
            self.assertEqual(self.left_over(folder), [])

    def left_over(self, folder):
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and os.readlink(entry / "cwd") == os.path.realpath(folder):
                    found.append(entry.name)
            except OSError:
                pass
        return found


if __name__ == "__main__":
    unittest.main()
