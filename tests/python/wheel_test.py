"""The wheel: made from the build, unpacked as pip does it, and used without anything of the build."""

import base64
import csv
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

CLONE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["TUNE_PROGRAM"]).parents[1]

SEARCH = """
import tune

def train(config):
    tune.report(loss=config["x"])

analysis = tune.run(train, {"x": tune.grid_search([2, 1])}, metric="loss", mode="min", quiet=True)
print(analysis.best_config, tune.__file__.startswith(%r))
"""


class WheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="tune-python-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name).resolve()
        made = subprocess.run(
            [sys.executable, CLONE / "trainables/python/wheel.py", "--build", BUILD, "--output", cls.folder],
            capture_output=True, text=True,
        )
        assert made.returncode == 0, made.stderr
        cls.wheel = Path(made.stdout.strip())
        cls.site = cls.folder / "site"
        with zipfile.ZipFile(cls.wheel) as archive:
            archive.extractall(cls.site)
            for entry in archive.infolist():
                (cls.site / entry.filename).chmod(entry.external_attr >> 16)

    def run_bare(self, *command):
        """Without PATH and all variables."""
        return subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True,
            env={"PATH": "/nowhere", "HOME": str(self.folder), "PYTHONPATH": str(self.site)},
        )

    def test_it_runs_a_search_with_what_it_carries(self):
        (self.folder / "search.py").write_text(SEARCH % str(self.site))
        done = self.run_bare(sys.executable, "search.py")
        self.assertEqual(done.stdout, "{'x': 1} True\n", done.stderr)

    def test_its_program_runs_a_sweep_with_this_interpreter(self):
        (self.folder / "train.py").write_text("import tune\ndef train(config): tune.report(y=config['x'])\n")
        (self.folder / "sweep.yaml").write_text("python: train.py:train\nconfig: {x: 3}\nmetric: y\n")
        done = self.run_bare(sys.executable, "-m", "tune", "run", "sweep.yaml", "--quiet")
        self.assertEqual(done.stdout, '{"x":3}\n', done.stderr)

    def test_its_record_names_every_file(self):
        with zipfile.ZipFile(self.wheel) as archive:
            names = archive.namelist()
            record = next(name for name in names if name.endswith("/RECORD"))
            rows = list(csv.reader(archive.read(record).decode().splitlines()))
            self.assertEqual([row[0] for row in rows], names)
            for name, digest, size in rows[:-1]:
                data = archive.read(name)
                found = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                self.assertEqual((digest, size), ("sha256=" + found, str(len(data))), name)
        for name in ["tune/__init__.py", "tune/py.typed", "tune/_bin/tune", "tune/_bin/redis-server"]:
            self.assertIn(name, names)
        self.assertFalse([name for name in names if "__pycache__" in name])
        self.assertEqual("tune/_bin/tune-view" in names, (BUILD / "bin/tune-view").is_file())

    def test_a_build_that_is_named_and_not_there_is_refused(self):
        done = subprocess.run(
            [sys.executable, CLONE / "trainables/python/wheel.py", "--build", self.folder],
            capture_output=True, text=True, cwd=self.folder,
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"there is no bin/tune in {self.folder}, which --build or TUNE_BUILD_DIR", done.stderr)

    def test_a_clone_without_a_build_compiles_the_programs_first(self):
        clone, tools = self.folder / "clone", self.folder / "tools"
        shutil.copytree(CLONE / "trainables/python", clone / "trainables/python")
        (clone / "CMakeLists.txt").touch()
        tools.mkdir()
        for name in ["ninja", "c++"]:
            (tools / name).symlink_to("/bin/true")
        (tools / "ldd").symlink_to(shutil.which("ldd"))
        self.assertIn("there is no cmake. All that it is built with", self.make(clone, tools).stderr)
        # It says what it was asked for, and copies what was built already.
        (tools / "cmake").write_text(
            f'#!/bin/sh\necho "$@" >>asked\n/bin/mkdir -p build-wheel/bin build-wheel/lib\n'
            f"/bin/cp {BUILD}/bin/tune {BUILD}/bin/tune-worker build-wheel/bin\n"
            f"/bin/cp {BUILD}/lib/libtune_signals.so build-wheel/lib\n"
        )
        (tools / "cmake").chmod(0o755)
        made = self.make(clone, tools)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertIn("which takes some minutes", made.stderr)
        self.assertTrue((self.folder / made.stdout.strip()).is_file(), made.stdout)
        configured, built = (clone / "asked").read_text().splitlines()
        self.assertTrue(configured.startswith(f"--preset default -B {clone}/build-wheel -DTUNE_WITH_TORCH=OFF"))
        self.assertEqual(built, f"--build {clone}/build-wheel")

    def make(self, clone, tools):
        environ = dict(os.environ, PATH=str(tools))
        environ.pop("TUNE_BUILD_DIR", None)
        return subprocess.run(
            [sys.executable, clone / "trainables/python/wheel.py", "--output", "dist"], cwd=self.folder,
            env=environ, capture_output=True, text=True,
        )


if __name__ == "__main__":
    unittest.main()
