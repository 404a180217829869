"""A script that calls tune.run, is killed, and is resumed."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

import tune
from in_folder import InFolder, wait_until

SCRIPT = """
import os, time, tune

print("top of the script", flush=True)

class Slow(tune.Trainable):
    def setup(self, config):
        self.x, self.n = config["x"], 0
    def step(self):
        self.n += 1
        time.sleep(0.03)
        while self.n == 4 and os.path.exists("hold"):
            time.sleep(0.01)
        return {"y": self.x * self.n}
    def save(self, directory):
        (directory / "n").write_text(str(self.n))
    def load(self, directory):
        self.n = int((directory / "n").read_text())

if __name__ == "__main__":
    first = tune.run(lambda config: tune.report(y=7), name="first", metric="y", mode="max", quiet=True)
    base = first.best_result["y"]
    options = dict(config={"x": tune.grid_search([1, 2, 3])}, metric="y", mode="max", cpus=2, quiet=True,
                   name="second", stop={"training_iteration": 12}, checkpoint={"frequency": 1},
                   listen=os.environ.get("LISTEN", ""))
    print("best", base + tune.run(Slow, **options).best_result["y"])
"""


class ScriptTest(InFolder):
    def start(self, **environment):
        Path("search.py").write_text(SCRIPT)
        script = subprocess.Popen(
            [sys.executable, "search.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True, env={**os.environ, **environment},
        )
        self.addCleanup(script.kill)
        wait_until(lambda: self.results() >= 4 or script.poll() is not None)
        return script

    def results(self):
        return sum(
            len(path.read_text().splitlines()) for path in self.folder.glob("results/second/*/result.json")
        )

    def start_tune(self, *words, **environment):
        started = subprocess.Popen(
            [os.environ["TUNE_PROGRAM"], *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **environment},
        )
        self.addCleanup(started.kill)
        return started

    def count_events(self, what):
        return Path("results/second/events.jsonl").read_text().count(f'"event":"{what}"')

    def check_resumed(self, *more):
        self.check_ends_as_ever(self.start_tune("resume", "results/second", *more))

    def check_ends_as_ever(self, resumed):
        out, err = resumed.communicate(timeout=60)
        self.assertEqual(resumed.returncode, 0, err)
        self.assertEqual(out.splitlines()[-1], "best 43")  # 7 + 3 * 12
        for trial in tune.Analysis.load("results/second").trials:
            self.assertEqual([r["training_iteration"] for r in trial.results], list(range(1, 13)))
        self.assertEqual(self.left_over(), [])

    def test_ctrl_c_saves_and_the_sweep_is_resumed_by_executing_the_script_again(self):
        script = self.start()
        script.send_signal(signal.SIGINT)  # as a notebook or `kill` sends it, to one process
        out, err = script.communicate(timeout=60)
        self.assertIn("InterruptedRun: SIGINT: resume with: tune resume results/second", err)
        self.assertEqual(out, "top of the script\n")
        wait_until(lambda: not self.left_over())
        self.check_resumed()
        more = [os.environ["TUNE_PROGRAM"], "resume", "results/second", "--num-samples", "2"]
        self.assertEqual(subprocess.run(more, capture_output=True).returncode, 0)
        self.assertEqual(len(tune.Analysis.load("results/second").trials), 6)

    def test_ctrl_c_of_a_terminal_reaches_all_and_counts_once(self):
        script = self.start()
        os.killpg(script.pid, signal.SIGINT)
        _, err = script.communicate(timeout=60)
        self.assertIn("InterruptedRun", err)
        wait_until(lambda: not self.left_over())
        self.check_resumed()

    def test_a_signal_to_every_process_of_a_job_lets_the_trials_save(self):
        script = self.start()
        for name in self.left_over():  # as systemd and batch systems do
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(name), signal.SIGTERM)
        script.communicate(timeout=60)
        wait_until(lambda: not self.left_over())
        events = [json.loads(line) for line in Path("results/second/events.jsonl").read_text().splitlines()]
        ends = [event["outcome"] for event in events if event["event"] == "attempt_ended"]
        self.assertEqual(set(ends), {"paused"}, events)
        self.check_resumed()

    def test_a_script_s_search_takes_orders_while_it_runs(self):
        def order(*words):
            for _ in range(60):
                done = subprocess.run(
                    [os.environ["TUNE_PROGRAM"], words[0], "results/second", *words[1:]], capture_output=True, text=True
                )
                if "give the order again later" not in done.stderr:  # the disk is busy
                    break
                time.sleep(1)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        Path("hold").touch()
        script = self.start()
        self.assertEqual(order("pause", "0", "1", "--reason", "lunch").count("stays PAUSED until tune unpause"), 2)
        order("note", "1", "from a shell")
        Path("hold").unlink()
        ends = lambda: Path("results/second/events.jsonl").read_text().count('"event":"trial_ended"')
        wait_until(lambda: ends() == 1)  # the paused ones keep the search alive
        self.assertIn('has it: {"x":10}', order("add", "{x: 10}"))
        order("change", "--num-samples", "2")
        wait_until(lambda: ends() == 5)
        self.assertIn("trial 0 is stopped", order("stop", "0"))
        order("retry", "0")
        order("unpause", "1")
        out, err = script.communicate(timeout=60)
        self.assertEqual((script.returncode, out.splitlines()[-1]), (0, "best 127"), err)  # 7 + 10 * 12
        trials = tune.Analysis.load("results/second").trials
        self.assertEqual([len(trial.results) for trial in trials], [12] * 7)
        self.assertIn("pause by", order("explain", "0"))

    def test_a_killed_script_takes_everything_along_and_is_resumed(self):
        script = self.start()
        script.kill()
        script.communicate(timeout=60)
        wait_until(lambda: not self.left_over())
        self.check_resumed()

    def test_a_script_s_search_whose_driver_was_killed_goes_on_where_resume_is_told_to_listen(self):
        Path("hold").touch()
        script = self.start(LISTEN="lo")
        driver = json.loads(Path("results/second/run.json").read_text())["driver_pid"]
        os.kill(driver, signal.SIGKILL)  # not the script: its death ends the search in order
        script.communicate(timeout=60)
        described = Path("results/second/experiment.json")
        described.write_text(json.dumps({**json.loads(described.read_text()), "listen": "gone9"}))
        refused = self.start_tune("resume", "results/second")
        _, err = refused.communicate(timeout=60)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("BadInput: listen: this machine has no interface or address gone9", err)
        self.assertIn("results/second --listen ADDRESS[:PORT]", err)
        Path("hold").unlink()
        self.check_resumed("--listen", "127.0.0.1")
        self.assertEqual(self.count_events("node_returned"), 1)  # with its trials
        self.assertEqual(json.loads(described.read_text())["listen"], "127.0.0.1")

    def test_machines_may_join_a_script_s_search_that_begins_to_listen_when_it_is_resumed(self):
        Path("hold").touch()
        script = self.start()
        script.kill()
        script.communicate(timeout=60)
        wait_until(lambda: not self.left_over())
        resumed = self.start_tune("resume", "results/second", "--listen", "lo")
        join = Path("results/second/nodes/join")
        wait_until(lambda: join.exists() and join.read_text())
        agent = self.start_tune("agent", "--cpus", "1", TUNE_JOIN=join.read_text().strip())
        # Two trials are held on the driver's own machine: the third one runs on this.
        wait_until(lambda: len(list(self.folder.glob("results/second/*/result.json"))) == 3)
        self.assertEqual(self.count_events("node_joined"), 3)
        Path("hold").unlink()
        _, err = agent.communicate(timeout=60)
        self.assertEqual(agent.returncode, 0, err)
        self.check_ends_as_ever(resumed)

    def test_a_killed_zygote_is_replaced_by_the_script_executed_again(self):
        script = self.start()
        zygotes = self.zygotes()
        self.assertEqual(len(zygotes), 1)
        os.kill(zygotes[0], signal.SIGKILL)
        out, err = script.communicate(timeout=60)
        self.assertEqual(script.returncode, 0, err)
        self.assertIn("best 43", out)
        self.assertEqual(out.count("top of the script"), 1)
        self.assertIn("top of the script", Path("results/second/zygote.log").read_text())

    def zygotes(self):
        """Python processes whose parent is the agent, and that have its control socket: they lead no
        session, as workers do."""
        found = []
        for name in self.left_over():
            with contextlib.suppress(OSError):
                fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
                parent = Path("/proc", fields[1], "cmdline").read_bytes()
                own = Path("/proc", name, "cmdline").read_bytes()
                if b"search.py" in own and b"\0agent" in parent and fields[3] != name:
                    found.append(int(name))
        return found


if __name__ == "__main__":
    unittest.main()
