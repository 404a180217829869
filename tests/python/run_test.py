"""tune.run with real processes."""

import contextlib
import json
import math
import os
import signal
import sys
import threading
import time
import types
import unittest
from pathlib import Path

import tune
from tune import _run
from in_folder import InFolder, wait_until

FAULTY = Path(__file__).resolve().parents[1] / "programs" / "faulty.py"


class Counter(tune.Trainable):
    def setup(self, config):
        self.x, self.count = config["x"], 0

    def step(self):
        self.count += 1
        return {"value": self.x * self.count, "count": self.count}

    def save(self, directory):
        (directory / "count").write_text(str(self.count))

    def load(self, directory):
        self.count = int((directory / "count").read_text())


class RunTest(InFolder):
    def test_trials_outlive_a_killed_driver_and_the_next_call_has_them_back(self):
        killed = self.folder / "killed"

        def train(config):
            for step in range(20):
                if step == 3 and not killed.exists():
                    killed.touch()
                    record = json.loads((self.folder / "results/s/run.json").read_text())
                    os.kill(record["driver_pid"], signal.SIGKILL)
                time.sleep(0.02)
                tune.report(value=step)

        options = dict(metric="value", mode="max", patience_s=60, num_samples=2)
        with self.assertRaisesRegex(tune.Error, "signal 9"):
            self.run_quietly(train, {"x": tune.uniform(0, 1)}, **options)
        self.run_quietly(train, {"x": tune.uniform(0, 1)}, if_exists="resume", **options)
        for file in self.folder.glob("results/s/*/result.json"):
            results = [json.loads(line) for line in file.read_text().splitlines()]
            self.assertEqual([result["value"] for result in results], list(range(20)))
            self.assertEqual(len({result["pid"] for result in results}), 1)
        wait_until(lambda: not self.left_over())

    def test_a_closure_and_its_data_are_the_trials(self):
        data = {"unpicklable": lambda v: v * 2, "numbers": list(range(1000))}

        def train(config):
            for step in range(3):
                tune.report(value=data["unpicklable"](config["x"]) + step, size=len(data["numbers"]))

        analysis = self.run_quietly(
            train, {"x": tune.grid_search([1, 5]), "model": {"layers": 2}}, metric="value", mode="max"
        )
        self.assertEqual(analysis.best_config, {"x": 5, "model": {"layers": 2}})
        self.assertEqual(analysis.best_result["value"], 12)
        self.assertEqual(analysis.best_result["size"], 1000)
        self.assertEqual([trial.status for trial in analysis.trials], ["TERMINATED"] * 2)
        self.assertEqual([row["value"] for row in analysis.trials[0].results], [2, 3, 4])
        self.assertEqual(len(analysis.results), 6)
        self.assertEqual(analysis.rows()[1]["config/model/layers"], 2)
        self.assertEqual(self.left_over(), [])

    def test_a_dataframe_comes_with_pandas_or_says_how_to_get_it(self):
        analysis = self.run_quietly(lambda c: tune.report(y=c["x"]), {"x": tune.grid_search([1, 2])})
        self.addCleanup(sys.modules.pop, "pandas")
        sys.modules["pandas"] = types.SimpleNamespace(DataFrame=list)
        self.assertEqual([(row["config/x"], row["y"]) for row in analysis.dataframe()], [(1, 1), (2, 2)])
        sys.modules["pandas"] = None
        with self.assertRaisesRegex(ImportError, r"pip install pandas, or take rows\(\)"):
            analysis.dataframe()

    def test_several_objectives_have_a_front(self):
        def train(config):
            tune.report(loss=config["x"], size=abs(config["x"] - 2), ms=10 * config["x"])

        analysis = self.run_quietly(
            train, {"x": tune.grid_search([0, 1, 2, 3, 4])}, searcher=tune.basic_variant(),
            objectives=[{"metric": "loss", "mode": "min"}, {"metric": "size", "mode": "min"}],
            constraints=[{"metric": "ms", "min": 5}],
        )
        # 0 breaks the bound; 3 and 4 are worse than 2 by both.
        self.assertEqual([trial.config["x"] for trial in analysis.pareto], [1, 2])
        with self.assertRaisesRegex(tune.BadInput, "2 objectives.*analysis.pareto"):
            print(analysis.best_config)

    def test_a_class_saves_and_its_best_checkpoint_is_known(self):
        analysis = self.run_quietly(
            Counter, {"x": tune.grid_search([1, 3, 2])}, metric="value", mode="max",
            scheduler=tune.asha(max_t=4, reduction_factor=2), checkpoint={"frequency": 1},
        )
        self.assertEqual(analysis.best_config, {"x": 3})
        self.assertEqual((analysis.best_checkpoint / "count").read_text(), "4")
        again = tune.Analysis.load("results/latest")
        self.assertEqual(again.best_config, {"x": 3})
        again.write_csv("all.csv")
        model = tune.restore(Counter, "results/latest")
        self.assertEqual((model.x, model.count, model.context.iteration), (3, 4, 4))
        self.assertEqual(model.step(), {"value": 15, "count": 5})
        self.assertEqual(len(Path("all.csv").read_text().splitlines()), 4)

    def test_a_replaced_trial_is_restored_with_the_values_of_its_checkpoint(self):
        class Drifting(Counter):
            def setup(self, config):
                self.lr, self.x, self.count = config["lr"], 1, 0

            def step(self):
                self.count += 1
                return {"value": self.lr, "count": self.count}

        # By pbt: the worst at any report is the worst of all, so the order of reports does not matter.
        self.run_quietly(
            Drifting, {"lr": tune.uniform(0.1, 1)}, num_samples=4, metric="value", mode="max", seed=2,
            scheduler=tune.pbt(perturbation_interval=2, hyperparam_mutations={"lr": tune.uniform(0.1, 1)}),
            stop={"training_iteration": 8}, checkpoint={"frequency": 1, "keep": 8},
        )
        analysis = tune.Analysis.load("results/s")
        self.assertIn('"replaced"', Path("results/s/events.jsonl").read_text())
        model = tune.restore(Drifting, "results/s")
        there = analysis.best_trial.results[model.context.iteration - 1]
        self.assertEqual((model.lr, model.count), (there["value"], there["count"]))
        # By a schedule: the best checkpoint is from before the last values.
        schedule = [{"iteration": 0, "config": {"lr": 0.9}}, {"iteration": 4, "config": {"lr": 0.1}}]
        analysis = self.run_quietly(
            Drifting, {"lr": 0.9}, metric="value", mode="max", name="r",
            scheduler=tune.pbt_replay(schedule),
            stop={"training_iteration": 8}, checkpoint={"frequency": 1, "keep": 8},
        )
        self.assertEqual(analysis.best_config, {"lr": 0.1})
        model = tune.restore(Drifting, "results/r")
        self.assertEqual(model.lr, 0.9)
        self.assertLessEqual(model.count, 4)

    def test_a_function_saves_restores_and_finds_its_place(self):
        def train(config, session):
            start = 0
            if session.checkpoint():
                start = int((session.checkpoint() / "n").read_text())
            elif session.context.attempt > 1:
                raise RuntimeError("nothing to go on from")
            for step in range(start, 4):
                if step == 2 and session.context.attempt == 1:
                    os.kill(os.getpid(), signal.SIGKILL)
                save = lambda folder: (folder / "n").write_text(str(step + 1))
                self.assertTrue(session.report({"n": step + 1}, save=save))
            assert session is tune.session() and tune.context().trial_id

        analysis = self.run_quietly(
            train, metric="n", mode="max", max_failures=1, checkpoint={"frequency": 1}
        )
        self.assertEqual([result["n"] for result in analysis.trials[0].results], [1, 2, 3, 4])

    def test_searchers_and_domains_reach_the_program(self):
        def train(config):
            tune.report(loss=(config["lr"] - 0.1) ** 2 + config["o"].get("m", 0))

        space = {
            "lr": tune.loguniform(1e-3, 1), "n": tune.qrandint(2, 8, 2), "k": tune.randn(),
            "o": tune.choice([{"kind": "sgd", "m": tune.uniform(0, 1)}, {"kind": "adam"}]),
        }
        analysis = self.run_quietly(
            train, space, num_samples=8, metric="loss", mode="min", searcher=tune.tpe(start_up=2), seed=3,
            stop={"loss": tune.at_most(-1)},
        )
        for trial in analysis.trials:
            self.assertIn(trial.config["n"], [2, 4, 6, 8])
            self.assertEqual("m" in trial.config["o"], trial.config["o"]["kind"] == "sgd")
        stored = json.loads(Path("results/s/experiment.json").read_text())
        self.assertEqual(list(stored["searcher"]), ["tpe"])
        self.assertEqual(stored["stop"], {"loss": {"<=": -1.0}})

    def test_mistakes_come_all_at_once(self):
        with self.assertRaises(tune.BadInput) as refused:
            self.run_quietly(Counter, {"x": tune.uniform(1, 0)}, num_sample=3, metric="value", max_failures=-1)
        words = str(refused.exception)
        self.assertIn("config/x", words)
        self.assertIn("num_sample", words)
        self.assertIn("did you mean 'num_samples'", words)
        for trainable, options, text in [
            (Counter, {}, "stop"),
            (3, {}, "neither a class"),
            (lambda a, b, c: 0, {}, "takes 3 arguments"),
            (Counter, {"config": {"x": object()}}, "config/x: the type object does not fit"),
            (Counter, {"config": {"x": [tune.uniform(0, 1)]}}, "within a list"),
            (Counter, {"scheduler": object()}, "scheduler: expected tune.asha(...)"),
            (Counter, {"scheduler": tune.gp()}, "is a searcher"),
            ("train.py", {}, "names no trainable"),
            (str(FAULTY) + ":nobody", {}, "there is no 'nobody'"),
            (Counter, {"preload": ["json"]}, "preload is for a trainable"),
        ]:
            with self.assertRaises((tune.BadInput, TypeError)) as refused:
                self.run_quietly(trainable, **options)
            self.assertIn(text, str(refused.exception))
        self.assertFalse(Path("results/s").exists())
        self.assertEqual(self.left_over(), [])

    def test_failed_trials_are_told_with_what_was_found(self):
        def train(config):
            print("a line")
            tune.report(x=config["x"])
            if config["x"] == 2:
                raise ValueError("two is too much")

        with self.assertRaises(tune.TrialError) as failed:
            self.run_quietly(train, {"x": tune.grid_search([1, 2])}, metric="x", mode="max")
        self.assertEqual(repr(tune.TrialError), "<class 'tune.TrialError'>")  # as tracebacks name it
        first, second = failed.exception.analysis.trials
        self.assertEqual((first.status, second.status), ("TERMINATED", "ERROR"))
        self.assertIn("function: ValueError: two is too much", second.error)
        self.assertIn("run_test.py", second.error)
        self.assertIn("a line", (second.directory / "stdout").read_text())
        analysis = self.run_quietly(
            train, {"x": 2}, name="t", metric="x", mode="max", raise_on_failed_trial=False
        )
        self.assertEqual(analysis.trials[0].status, "ERROR")

    def test_a_crash_in_a_library_names_the_line_that_led_there(self):
        def train(config):
            tune.report(x=1)
            os.kill(os.getpid(), signal.SIGSEGV)

        with self.assertRaises(tune.TrialError) as failed:
            self.run_quietly(train)
        trial = failed.exception.analysis.trials[0]
        self.assertIn("killed by signal 11 (SIGSEGV)", trial.error)
        words = (trial.directory / "stderr").read_text()  # the calls up to the fork are many lines
        self.assertRegex(words, r"Fatal Python error: Segmentation fault\n\n[^\n]*\n[^\n]* in train\n")

    def test_a_trial_may_have_children_and_a_caller_may_be_a_thread(self):
        def train(config):
            import multiprocessing

            with multiprocessing.get_context("fork").Pool(2) as pool:
                tune.report(x=sum(pool.map(abs, [-1, -2, -3])))

        found = []
        _run._has_warned_of_threads = True
        thread = threading.Thread(target=lambda: found.append(self.run_quietly(train, metric="x", mode="max")))
        thread.start()
        thread.join()
        self.assertEqual(found[0].best_result["x"], 6)
        self.assertEqual(self.left_over(), [])

    def test_a_name_is_imported_by_a_process_of_its_own(self):
        Path("mine.py").write_text(
            "import os, tune\ndef train(config):\n    tune.report(pid=os.getppid(), x=config['x'])\n"
        )
        analysis = self.run_quietly("mine.py:train", {"x": 4}, preload=["json"], metric="x", mode="max")
        self.assertEqual(analysis.best_result["x"], 4)

    def test_an_experiment_is_refused_resumed_or_begun_afresh_by_its_name(self):
        options = dict(config={"x": 1}, metric="value", mode="max", stop={"training_iteration": 2})
        self.run_quietly(Counter, **options)
        with self.assertRaisesRegex(tune.BadInput, "finished"):
            self.run_quietly(Counter, **options)
        self.assertEqual(len(self.run_quietly(Counter, if_exists="resume", **options).trials), 1)
        self.assertEqual(len(self.run_quietly(Counter, if_exists="fresh", **options).trials), 1)

    def test_ranks_get_the_environment_of_torchrun_and_a_free_port(self):
        def train(config):
            import socket

            rank, address = int(os.environ["RANK"]), ("127.0.0.1", int(os.environ["MASTER_PORT"]))
            names = ["WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR"]
            seen = [os.environ[name] for name in names]
            if rank == 0:
                with socket.create_server(address) as server:
                    with server.accept()[0] as other:
                        text = other.recv(100).decode()
            else:
                end = time.monotonic() + 30
                while True:
                    with contextlib.suppress(ConnectionRefusedError):
                        with socket.create_connection(address) as connection:
                            connection.sendall(b"from rank 1")
                        break
                    assert time.monotonic() < end
                text = ""
            for _ in range(3):
                tune.report(text=text, seen=seen, rank=tune.context().rank, n=1)

        analysis = self.run_quietly(
            train, metric="n", mode="max", resources_per_trial={"cpu": 2, "ranks": 2}
        )
        result = analysis.trials[0].results[-1]
        self.assertEqual(result["text"], "from rank 1")
        self.assertEqual(result["seen"], ["2", "0", "2", "0", "127.0.0.1"])
        self.assertEqual((result["rank"], result["training_iteration"]), (0, 3))

    def test_once_per_node_runs_once_and_results_are_handed_out(self):
        marks = self.folder / "marks"
        marks.mkdir()

        def train(config):
            context = tune.context()
            context.once_per_node("download", lambda: (marks / str(os.getpid())).touch())
            context.results.submit("a/b.txt", b"bytes")
            with self.assertRaises(ValueError):
                context.results.submit("../b.txt", b"bytes")
            tune.report(n=len(list(marks.iterdir())))

        analysis = self.run_quietly(train, {"x": tune.grid_search([1, 2, 3])}, metric="n", mode="max")
        self.assertEqual([trial.last_result["n"] for trial in analysis.trials], [1, 1, 1])
        self.assertEqual((analysis.trials[0].directory / "results/a/b.txt").read_bytes(), b"bytes")

    def test_random_numbers_follow_the_seed_and_differ_between_trials(self):
        def train(config):
            import random

            tune.report(x=random.random())

        drawn = []
        for name in ["a", "b"]:
            analysis = self.run_quietly(
                train, {"n": tune.grid_search([1, 2])}, name=name, seed=7, metric="x", mode="max"
            )
            drawn.append([trial.last_result["x"] for trial in analysis.trials])
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(*drawn[0])

    def test_nan_and_infinity_come_back(self):
        def train(config):
            tune.report(a=math.nan, b=math.inf, c=1)

        result = self.run_quietly(train, metric="c", mode="max").best_result
        self.assertTrue(math.isnan(result["a"]))
        self.assertEqual(result["b"], math.inf)


if __name__ == "__main__":
    unittest.main()
