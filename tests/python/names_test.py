"""Search spaces, methods, trainables and their names, without processes."""

import ast
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import tune
from tune import _contract as contract
from tune import _worker
from tune._entry import entry_of
from tune._load import LoadError, load, preload
from tune._methods import named
from tune._space import describe, nested


class SpaceTest(unittest.TestCase):
    def test_domains_are_written_as_yaml_has_them(self):
        space = {
            "lr": tune.loguniform(1e-3, 1), "n": tune.qrandint(0, 10, 5), "grid": tune.grid_search([1, [2]]),
            "o": tune.choice([{"k": "a", "m": tune.uniform(0, 1)}, "none"]), "t": (1, 2),
            "old": {"grid_search": [3, 4]}, "nested": {"c": tune.choice(["x", "y"])}, "const": None,
        }
        self.assertEqual(
            describe(space),
            {
                "lr": {"loguniform": [1e-3, 1]}, "n": {"qrandint": [0, 10, 5]},
                "grid": {"grid_search": [1, [2]]},
                "o": {"choice": [{"k": "a", "m": {"uniform": [0, 1]}}, "none"]}, "t": [1, 2],
                "old": {"grid_search": [3, 4]}, "nested": {"c": {"choice": ["x", "y"]}}, "const": None,
            },
        )
        self.assertEqual(repr(tune.uniform(0, 1)), "tune.uniform(0, 1)")

    def test_what_is_not_drawn_is_refused(self):
        for space in [{"a": [tune.uniform(0, 1)]}, {"a": lambda c: 1}, {"a": [{"b": tune.randn()}]}]:
            with self.assertRaises(TypeError):
                describe(space)

    def test_paths_become_nested_maps(self):
        self.assertEqual(nested({"a/b": 1, "a/c": 2, "d": 3}), {"a": {"b": 1, "c": 2}, "d": 3})


def of_ray(kind, sampler, **fields):
    """A domain as ray.tune.search.sample has it: a class of that name, with its sampler."""
    sampler_kind, *wrapped = sampler
    make = lambda name, values: type(name, (), {"__module__": "ray.tune.search.sample", **values})()
    inner = make(sampler_kind, {key: fields.pop(key) for key in ("mean", "sd") if key in fields})
    outer = make("Quantized", {"sampler": inner, "q": wrapped[0]}) if wrapped else inner
    return make(kind, {"sampler": outer, **fields})


class RayTest(unittest.TestCase):
    def test_spaces_of_ray_are_ours(self):
        uniform, log, normal = "_Uniform", "_LogUniform", "_Normal"
        for domain, expected in [
            (of_ray("Float", [uniform], lower=0, upper=1), {"uniform": [0, 1]}),
            (of_ray("Float", [log], lower=1e-3, upper=1), {"loguniform": [1e-3, 1]}),
            (of_ray("Float", [uniform, 0.25], lower=0, upper=1), {"quniform": [0, 1, 0.25]}),
            (of_ray("Float", [log, 0.5], lower=0.5, upper=8), {"qloguniform": [0.5, 8, 0.5]}),
            (of_ray("Float", [normal], lower=0, upper=0, mean=1, sd=2), {"randn": [1, 2]}),
            (of_ray("Float", [normal, 0.5], lower=0, upper=0, mean=1, sd=2), {"qrandn": [1, 2, 0.5]}),
            (of_ray("Integer", [uniform], lower=1, upper=5), {"randint": [1, 5]}),
            (of_ray("Integer", [log], lower=1, upper=10), {"lograndint": [1, 10]}),
            # Both bounds are meant there, and only multiples are drawn: 3, 6, 9.
            (of_ray("Integer", [uniform, 3], lower=1, upper=10), {"qrandint": [3, 9, 3]}),
            # But without a step the upper one is left out.
            (of_ray("Integer", [uniform, 1], lower=1, upper=10), {"randint": [1, 10]}),
            (of_ray("Categorical", [uniform], categories=["a", "b"]), {"choice": ["a", "b"]}),
            ({"grid_search": [1, 2]}, {"grid_search": [1, 2]}),
        ]:
            self.assertEqual(describe({"model": {"x": domain}}), {"model": {"x": expected}})
            self.assertEqual(describe(tune.from_ray({"x": domain})), {"x": expected})
        nested = of_ray("Categorical", [uniform], categories=[
            {"kind": "sgd", "m": of_ray("Float", [uniform], lower=0, upper=1)}, {"kind": "adam"}])
        expected = {"choice": [{"kind": "sgd", "m": {"uniform": [0, 1]}}, {"kind": "adam"}]}
        self.assertEqual(describe(nested), expected)
        self.assertEqual(describe(tune.from_ray(nested)), expected)

    def test_what_ray_has_and_tune_has_not_is_refused_by_its_path(self):
        for domain, words in [
            (of_ray("Function", ["_CallSampler"]), "config/a/x: ray.tune's sample_from has no counterpart"),
            (of_ray("Integer", ["_LogUniform", 2], lower=2, upper=8), "config/a/x: whole numbers on a log"),
            (of_ray("Integer", ["_Uniform", 7], lower=1, upper=5), "no multiple of 7 between 1 and 5"),
            (of_ray("Float", ["_Mine"], lower=1, upper=5), "sampler _Mine has no counterpart"),
        ]:
            for read in [describe, tune.from_ray]:
                with self.assertRaisesRegex(TypeError, words):
                    read({"a": {"x": domain}})
        with self.assertRaisesRegex(TypeError, "within a list"):
            describe({"a": [of_ray("Float", ["_Uniform"], lower=0, upper=1)]})

    def test_domains_of_ray_itself_are_known(self):
        cache = Path(os.environ.get("TUNE_CACHE_DIR", Path.home() / ".cache/tune"))
        pythons = [os.environ.get("TUNE_RAY_PYTHON", ""), *map(str, cache.glob("peers/ray*/bin/python"))]
        python = next((one for one in pythons if os.access(one, os.X_OK)), None)
        if python is None:
            self.skipTest("there is no Python with Ray Tune")
        code = """
import ray.tune as ray, tune, json
print(json.dumps(tune._space.describe({
    "a": ray.uniform(0, 1), "b": ray.quniform(0, 1, 0.5), "c": ray.loguniform(1, 8), "d": ray.randint(1, 5),
    "e": ray.qrandint(1, 10, 3), "f": ray.lograndint(1, 9), "g": ray.randn(1, 2), "h": ray.qrandn(1, 2, 0.5),
    "i": ray.choice([1, "x"]), "j": ray.grid_search([1, 2]), "k": ray.qloguniform(1, 8, 1)})))
"""
        done = subprocess.run(
            [python, "-c", code], capture_output=True, text=True, timeout=120,
            env=dict(os.environ, PYTHONPATH=str(Path(tune.__file__).parents[1])),
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout), {
            "a": {"uniform": [0, 1]}, "b": {"quniform": [0, 1, 0.5]}, "c": {"loguniform": [1, 8]},
            "d": {"randint": [1, 5]}, "e": {"qrandint": [3, 9, 3]}, "f": {"lograndint": [1, 9]},
            "g": {"randn": [1, 2]}, "h": {"qrandn": [1, 2, 0.5]}, "i": {"choice": [1, "x"]},
            "j": {"grid_search": [1, 2]}, "k": {"qloguniform": [1, 8, 1]},
        })


class MethodsTest(unittest.TestCase):
    def test_only_given_parameters_are_said(self):
        self.assertEqual(named("scheduler", tune.asha(max_t=9)), {"asha": {"max_t": 9}})
        self.assertEqual(named("scheduler", "fifo"), "fifo")
        self.assertEqual(named("searcher", tune.gp()), {"gp": {}})
        self.assertEqual(
            named("scheduler", tune.pbt(hyperparam_mutations={"lr": tune.uniform(0, 1)})),
            {"pbt": {"hyperparam_mutations": {"lr": {"uniform": [0, 1]}}}},
        )

    def test_the_other_kind_and_strangers_are_refused(self):
        for value in [tune.gp(), 3, {"a": {}, "b": {}}]:
            with self.assertRaises(TypeError):
                named("scheduler", value)


class EntryTest(unittest.TestCase):
    def test_classes_and_functions_say_what_they_can(self):
        class Saves(tune.Trainable):
            def step(self): ...
            def save(self, directory): ...
            def load(self, directory): ...

        class SavesOnly(tune.Trainable):
            def step(self): ...
            def save(self, directory): ...

        self.assertEqual(entry_of(Saves).info, contract.TrainableInfo("Saves", True, False))
        self.assertFalse(entry_of(SavesOnly).can_save)
        self.assertFalse(entry_of(lambda config: 0).takes_session)
        self.assertTrue(entry_of(lambda config, session: 0).takes_session)
        self.assertFalse(entry_of(lambda config, data=3: 0).takes_session)
        self.assertEqual(entry_of(lambda c: 0).name, "lambda")

    def test_others_are_refused_with_the_way_out(self):
        class NoStep(tune.Trainable):
            pass

        class OfRay:
            def step(self): ...
            def save_checkpoint(self, d): ...

        for what, words in [(NoStep, "has no step"), (OfRay, "rename it"), (5, "neither"), (lambda: 0, "takes 0")]:
            with self.assertRaisesRegex(TypeError, words):
                entry_of(what)


class LoadTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.addCleanup(setattr, sys, "path", list(sys.path))

    def file(self, text, name="train.py"):
        path = self.folder / name
        path.write_text(text)
        self.addCleanup(sys.modules.pop, path.stem, None)
        return str(path)

    def test_a_file_is_imported_as_a_module_beside_its_neighbours(self):
        self.file("base = 3\n", "beside_train.py")
        path = self.file("import beside_train\nclass A:\n  class B:\n    def step(self): return {}\n")
        self.assertEqual(load(path + ":A.B").name, "A.B")
        self.assertIn("train", sys.modules)

    def test_a_file_with_the_name_of_a_module_takes_nothing_from_it(self):
        path = self.file("def train(c): ...\n", "json.py")
        import json

        load(path + ":train")
        self.assertIs(sys.modules["json"], json)
        sys.modules["json"] = json

    def test_errors_name_file_and_line(self):
        for text, words in [
            ("x = 1\ndef f(:\n", r"train\.py:2: SyntaxError"),
            ("import json\njson.loads('{')\n", r"train\.py:2: json\.decoder\.JSONDecodeError"),
            ("def f():\n  g()\nf()\n", r"train\.py:2: NameError"),
            ("import not_there_at_all\n", r"train\.py:1: ModuleNotFoundError"),
            ("import sys\nsys.exit(3)\n", r"train\.py:2: SystemExit"),
            ("def trian(c): ...\n", r"there is no 'train' in .*did you mean 'trian'.*it has: trian"),
        ]:
            path = self.file(text)
            sys.modules.pop("train", None)
            with self.assertRaisesRegex(LoadError, words):
                load(path + ":train")
        for target in ["train.py", ":x", "a.py:"]:
            with self.assertRaisesRegex(LoadError, "names no trainable"):
                load(target)
        with self.assertRaisesRegex(LoadError, "importing not_there: ModuleNotFoundError"):
            preload(["json", "not_there"])


class NamesTest(unittest.TestCase):
    def test_checkpoints_have_the_names_of_core(self):
        self.assertEqual(_worker.checkpoint_name(10, 1), "checkpoint_000010")
        self.assertEqual(_worker.checkpoint_name(10, 0), "checkpoint_000010")
        self.assertEqual(_worker.checkpoint_name(1234567, 2), "checkpoint_1234567-a2")

    def test_every_searcher_has_the_name_that_sweeps_have(self):
        made = [tune.automatic(), tune.random_search(), tune.every_cell(), tune.halton(), tune.gp(), tune.tpe(),
                tune.cma_es(), tune.nsga2(), tune.basic_variant()]
        self.assertEqual([method.name for method in made],
                         ["auto", "random", "grid", "halton", "gp", "tpe", "cma_es", "nsga2", "basic_variant"])
        self.assertEqual(
            named("scheduler", tune.pb2(hyperparam_bounds={"lr": [0, 1]})),
            {"pb2": {"hyperparam_bounds": {"lr": [0, 1]}}},
        )

    def test_every_public_name_is_there_and_has_words(self):
        for name in tune.__all__:
            self.assertTrue(getattr(tune, name).__doc__, name)


class SourceTest(unittest.TestCase):
    """What the package's text promises: Python 3.9, and types everywhere."""

    def sources(self):
        files = sorted(Path(tune.__file__).parent.glob("*.py"))
        self.assertGreater(len(files), 15)
        return files

    def test_its_syntax_is_that_of_python_3_9(self):
        for file in self.sources():
            ast.parse(file.read_text(), str(file), feature_version=(3, 9))

    def test_annotations_are_not_evaluated(self):
        """Else `X | None` and others of later Pythons would be errors on 3.9."""
        for file in self.sources():
            tree = ast.parse(file.read_text())
            if any(isinstance(node, ast.FunctionDef) for node in ast.walk(tree)):
                futures = [node for node in tree.body if getattr(node, "module", "") == "__future__"]
                self.assertEqual([name.name for node in futures for name in node.names], ["annotations"], file.name)

    def test_every_function_says_its_types(self):
        for file in self.sources():
            for node in ast.walk(ast.parse(file.read_text())):
                if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    continue
                where = f"{file.name}:{node.lineno} {node.name}"
                self.assertTrue(node.returns is not None or node.name == "__init__", where)
                every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs,
                         node.args.vararg, node.args.kwarg]
                for argument in filter(None, every):
                    if argument.arg not in ("self", "cls"):
                        self.assertIsNotNone(argument.annotation, f"{where}({argument.arg})")


if __name__ == "__main__":
    unittest.main()
