"""For tests of tune.run with real processes: a folder of their own, and what is left there."""

import contextlib
import os
import tempfile
import time
import unittest
from pathlib import Path

import tune


def wait_until(holds, limit_s=60):
    end = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() > end:
            raise AssertionError("it never came")
        time.sleep(0.01)


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tune-python-test-")
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        self.folder = Path(folder.name).resolve()

    def run_quietly(self, trainable, config=None, **options):
        options.setdefault("name", "s")
        return tune.run(trainable, config, quiet=True, cpus=2, **options)

    def left_over(self):
        """Processes whose working directory is the folder."""
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and int(entry.name) != os.getpid():
                    if os.readlink(entry / "cwd") == str(self.folder):
                        found.append(entry.name)
        return found
