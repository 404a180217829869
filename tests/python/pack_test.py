"""The MessagePack of the worker contract."""

import math
import unittest
from pathlib import Path

from tune import _contract as contract
from tune._pack import MAX_NESTING, PackError, find_number, pack, unpack

VALUES = [
    None, True, False, 0, 1, 127, 128, 255, 256, 65536, 2**63 - 1, -1, -32, -33, -(2**63),
    0.0, -1.5, 1e300, math.inf, "", "text", "ä" * 20, "x" * 31, "x" * 32, "x" * 70_000,
    [], [1, [2, [3]]], list(range(15)), list(range(16)), list(range(70_000)),
    {}, {"a": {"b": [1, 2.5, None, "c"]}}, {f"k{i}": i for i in range(16)},
    {f"k{i}": i for i in range(70_000)},
]

# As core/wire.cc writes them: the shortest form of each.
WRITTEN_BY_OTHERS = {
    b"\xcc\xff": 255, b"\xcd\x01\x00": 256, b"\xce\x00\x01\x00\x00": 65536,
    b"\xcf\x7f\xff\xff\xff\xff\xff\xff\xff": 2**63 - 1, b"\xd0\x80": -128, b"\xd1\x80\x00": -32768,
    b"\xd2\x80\x00\x00\x00": -(2**31), b"\xca\x3f\xc0\x00\x00": 1.5, b"\xd9\x01a": "a",
    b"\xda\x00\x01a": "a", b"\xdb\x00\x00\x00\x01a": "a", b"\xc4\x02ab": b"ab", b"\xc5\x00\x01a": b"a",
    b"\xdc\x00\x01\x05": [5], b"\xdd\x00\x00\x00\x01\x05": [5], b"\xde\x00\x01\xa1a\x05": {"a": 5},
}


class Scalar:
    """As numpy and torch have them."""

    shape = ()

    def __init__(self, value):
        self.value = value

    def item(self):
        return self.value


class Array:
    shape = (2,)

    def tolist(self):
        return [1.5, 2.5]


class FloatOfSomeLibrary(float):
    pass


class PackTest(unittest.TestCase):
    def test_every_value_comes_back(self):
        for value in VALUES:
            self.assertEqual(unpack(pack(value)), value)
            self.assertIs(type(unpack(pack(value))), type(value))
        self.assertTrue(math.isnan(unpack(pack(math.nan))))

    def test_forms_that_others_write_are_read(self):
        for data, value in WRITTEN_BY_OTHERS.items():
            self.assertEqual(unpack(data), value)

    def test_numbers_of_libraries_become_plain_ones(self):
        value = {"a": Scalar(2), "b": Array(), "c": FloatOfSomeLibrary(0.5), "d": Path("/x"), "e": (1, 2)}
        self.assertEqual(
            unpack(pack(value)), {"a": 2, "b": [1.5, 2.5], "c": 0.5, "d": "/x", "e": [1, 2]}
        )

    def test_what_is_no_value_is_refused_with_its_path(self):
        deep = {}
        for _ in range(MAX_NESTING + 1):
            deep = {"a": deep}
        for value, words in [
            ({"loss": {"train": object()}}, "loss/train: the type object does not fit"),
            ({"a": {"x/y": 1}}, "a: the key 'x/y'"),
            ({"": 1}, "the key ''"),
            ({"a": {3: 1}}, "a: the key 3 has the type int"),
            ({"a": [1, 2**63]}, "a/1: 9223372036854775808 does not fit 64 bits"),
            (deep, "nested deeper than 64 levels"),
        ]:
            with self.assertRaises(PackError) as refused:
                pack(value)
            self.assertIn(words, str(refused.exception))

    def test_damaged_bytes_are_refused(self):
        whole = pack({"a": [1, "text", 2.5, 2**40]})
        for end in range(len(whole)):
            with self.assertRaises(PackError):
                unpack(whole[:end])
        for data in [b"", whole + b"\x00", b"\xc1", b"\xdb\xff\xff\xff\xff", b"\xdd\xff\xff\xff\xff", b"\x91" * 200]:
            with self.assertRaises(PackError):
                unpack(data)

    def test_numbers_are_found_by_path(self):
        result = {"a": {"b": 2}, "c": True, "d": "1", "e": Scalar(1.5), "n": math.nan}
        self.assertEqual(find_number(result, "a/b"), 2)
        self.assertEqual(find_number(result, "e"), 1.5)
        self.assertTrue(math.isnan(find_number(result, "n")))
        for path in ["a", "c", "d", "x", "a/b/c"]:
            self.assertIsNone(find_number(result, path))


class ContractTest(unittest.TestCase):
    def start(self, **changed):
        fields = dict(
            contract=contract.CONTRACT,
            experiment=[[["loss", 0.5, True]], [2, True, 1], 7, 8, {"A": "b"}],
            launch=[3, 2, pack({"lr": 0.1}), 11, 1, 4, 1, 5, 0.0, ["training_iteration", 9.0]],
            trial_id="a_00003", trial_directory="/t", once_directory="/o", rank=0, local_rank=0,
            threads=2, gpu_devices=["0"], environment={"C": "d"}, agent_pid=1, restore_folder="",
        )
        fields.update(changed)
        return list(fields.values())

    def test_a_start_is_read_with_all_its_fields(self):
        # Bytes within are bin: written here by hand, as pack() has no bytes.
        start = contract._record(contract.StartWorker, self.start())
        self.assertEqual(start.experiment.stop[0].path, "loss")
        self.assertTrue(start.experiment.stop[0].at_most)
        self.assertEqual(start.experiment.checkpoint.frequency, 2)
        self.assertEqual(start.launch.until.value, 9.0)
        self.assertEqual(unpack(start.launch.config), {"lr": 0.1})

    def test_fields_beyond_the_known_are_skipped_and_added_ones_may_be_missing(self):
        self.assertFalse(contract.decode_command(pack([1, [3, 2, ["a", 1.0]]])).save)
        self.assertTrue(contract.decode_command(pack([1, [3, 2, ["a", 1.0], True, "new"]])).save)
        with self.assertRaises(PackError):
            contract.decode_command(pack([2, [3]]))
        with self.assertRaises(PackError):
            contract.decode_command(pack([99, []]))

    def test_a_start_of_another_version_is_told_apart(self):
        with self.assertRaises(contract.OtherContract) as refused:
            contract.decode_command(pack([0, [contract.CONTRACT + 1, "whatever"]]))
        self.assertIn(f"version {contract.CONTRACT + 1}", str(refused.exception))

    def test_a_report_is_the_array_of_the_contract(self):
        report = contract.Report(3, 4, 5, 6, 7, None, True, False)
        self.assertEqual(
            unpack(contract.reported(1, 2, report, pack({"x": 1}))),
            [0, [1, 2, 3, 4, 5, 6, 7, None, True, False, pack({"x": 1})]],
        )
        report.timesteps_total = 2.5
        self.assertEqual(unpack(contract.reported(1, 2, report, b""))[1][7], 2.5)

    def test_the_version_is_that_of_the_header(self):
        header = Path(__file__).resolve().parents[2] / "core" / "worker_contract.h"
        self.assertIn(f"kWorkerContract = {contract.CONTRACT};", header.read_text())


if __name__ == "__main__":
    unittest.main()
