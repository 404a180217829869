"""Search spaces, methods, trainables and their names, without processes."""

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

    def test_every_public_name_is_there_and_has_words(self):
        for name in tune.__all__:
            self.assertTrue(getattr(tune, name).__doc__, name)


if __name__ == "__main__":
    unittest.main()
