"""The programs and sweeps that the READMEs of trainables show run as they stand there."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CLONE = Path(__file__).resolve().parents[2]


def first_block(readme, language):
    text = (CLONE / readme).read_text()
    return re.search(rf"^```{language}\n(.*?)^```", text, re.S | re.M).group(1)


class ReadmeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tune-python-test-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_in(self, cwd, *command):
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_the_python_program_of_ten_lines_finds_the_best_rate(self):
        (self.folder / "search.py").write_text(first_block("trainables/python/README.md", "python"))
        best = json.loads(self.run_in(self.folder, sys.executable, "search.py").replace("'", '"'))
        self.assertTrue(0.001 <= best["lr"] <= 1, best)
        trials = [p for p in self.folder.glob("results/latest/*/result.json")]
        self.assertEqual(len(trials), 16)

    def test_the_command_sweep_of_ten_lines_runs_where_the_repository_is(self):
        sweep = first_block("trainables/README.md", "yaml")
        self.assertLessEqual(len(sweep.splitlines()), 10)
        (self.folder / "sweep.yaml").write_text(sweep)
        options = ["--name", "s", "--storage", str(self.folder), "--quiet"]
        out = self.run_in(CLONE, os.environ["TUNE_PROGRAM"], "run", str(self.folder / "sweep.yaml"), *options)
        self.assertEqual(list(json.loads(out)), ["lr", "momentum"])
        self.assertEqual(len(list(self.folder.glob("s/*/result.json"))), 16)


if __name__ == "__main__":
    unittest.main()
