"""What the process that calls tune.run is fit for, and what it is left as."""

import contextlib
import io
import os
import sys
import tempfile
import threading
import types
import unittest

import tune
from tune import _process, _run
from in_folder import InFolder


class CallerTest(InFolder):
    def test_other_threads_are_warned_of_once(self):
        gate = threading.Event()
        thread = threading.Thread(target=gate.wait, name="reader")
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(gate.set)
        _run._has_warned_of_threads = False
        with contextlib.redirect_stderr(io.StringIO()) as words:
            for name in ["a", "b"]:
                self.run_quietly(lambda config: tune.report(x=1), name=name)
        self.assertEqual(words.getvalue().count("warning: this process runs"), 1)
        self.assertIn("reader", words.getvalue())
        self.assertIn('tune.run("train.py:Train"', words.getvalue())

    def test_a_process_with_cuda_is_refused(self):
        original = _process.cuda_is_initialised
        self.addCleanup(setattr, _process, "cuda_is_initialised", original)
        _process.cuda_is_initialised = lambda: True
        with self.assertRaisesRegex(tune.BadInput, "initialised CUDA"):
            self.run_quietly(lambda config: tune.report(x=1))
        sys.modules["torch"] = types.SimpleNamespace(
            cuda=types.SimpleNamespace(is_initialized=lambda: True)
        )
        self.addCleanup(sys.modules.pop, "torch")
        self.assertTrue(original())

    def test_a_device_of_the_gpu_driver_that_is_open_tells_of_cuda(self):
        with tempfile.TemporaryDirectory(prefix="tune-python-test-") as folder:
            os.symlink("/dev/null", f"{folder}/0")
            os.symlink("socket:[4]", f"{folder}/3")
            self.assertFalse(_process.cuda_is_initialised(folder))
            os.symlink("/dev/nvidia-uvm", f"{folder}/4")
            self.assertTrue(_process.cuda_is_initialised(folder))

    def test_report_needs_a_trial(self):
        with self.assertRaisesRegex(RuntimeError, "runs no trial"):
            tune.report(x=1)

    def test_a_missing_program_is_told(self):
        given = os.environ["TUNE_PROGRAM"]
        self.addCleanup(os.environ.__setitem__, "TUNE_PROGRAM", given)
        os.environ["TUNE_PROGRAM"] = "/no/tune"
        with self.assertRaisesRegex(tune.Error, "there is no program /no/tune"):
            self.run_quietly(lambda config: tune.report(x=1))

    def test_a_notebook_shows_one_table(self):
        shown = []

        class Handle:
            def update(self, what):
                shown.append(what)

        def display(what, display_id=False):
            shown.append(what)
            return Handle()

        ipython = types.ModuleType("IPython")
        ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
        part = types.ModuleType("IPython.display")
        part.HTML, part.display = lambda text: text, display
        ipython.display = part
        for name, module in [("IPython", ipython), ("IPython.display", part)]:
            sys.modules[name] = module
            self.addCleanup(sys.modules.pop, name)

        def train(config):
            tune.report(loss=config["x"])
            if config["x"] == 2:
                raise ValueError("<b>no</b>")

        tune.run(
            train, {"x": tune.grid_search([1, 2])}, metric="loss", mode="min", name="s", cpus=2,
            raise_on_failed_trial=False,
        )
        self.assertIn("<th>loss</th>", shown[-1])
        self.assertIn("<td>TERMINATED</td>", shown[-1])
        self.assertIn("2/2 (1 TERMINATED, 1 ERROR)", shown[-1])
        self.assertIn("&lt;b&gt;no", shown[-1])


if __name__ == "__main__":
    unittest.main()
