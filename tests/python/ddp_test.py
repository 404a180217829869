"""Trials of two ranks that train one model by torch.distributed (Gloo) and DistributedDataParallel.
They need a Python with torch: this one, $TUNE_TORCH_PYTHON, or the one of bench/peers; else skipped."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = r'''
import os, sys, time
import torch
import torch.distributed as dist
import tune

class Ddp(tune.Trainable):
    def setup(self, config):
        self.fail = config.get("fail", False) and self.context.attempt == 1
        dist.init_process_group("gloo")
        assert dist.get_rank() == self.context.rank and dist.get_world_size() == 2
        assert torch.get_num_threads() == self.context.cpus == 1
        torch.manual_seed(dist.get_rank())  # DDP makes the models equal
        self.model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
        self.optimiser = torch.optim.SGD(self.model.parameters(), lr=config["lr"])
        self.inputs = torch.randn(64, 4, generator=torch.Generator().manual_seed(dist.get_rank()))
        self.steps = 0

    def step(self):
        self.steps += 1
        if self.fail and self.steps == 3 and self.context.rank == 1:
            os.kill(os.getpid(), 9)
        loss = (self.model(self.inputs) - self.inputs.sum(1, keepdim=True)).pow(2).mean()
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        weights = [torch.zeros(1, 4) for _ in range(2)]
        dist.all_gather(weights, self.model.module.weight.detach())
        return {"loss": loss.item(), "equal": float(torch.equal(*weights)), "steps": self.steps}

    def save(self, directory):
        if self.context.rank == 0:
            torch.save({"model": self.model.state_dict(), "steps": self.steps}, directory / "model.pt")

    def load(self, directory):
        state = torch.load(directory / "model.pt")
        self.model.load_state_dict(state["model"])
        self.steps = state["steps"]


if __name__ == "__main__":
    analysis = tune.run(
        Ddp, config={"lr": tune.grid_search([0.05, 0.1]), "fail": True}, metric="loss", mode="min", cpus=4,
        stop={"training_iteration": 10}, resources_per_trial={"cpu": 2, "ranks": 2},
        checkpoint={"frequency": 1}, max_failures=1, name="ddp", quiet=True,
    )
    for trial in analysis.trials:
        results = trial.results
        assert [r["steps"] for r in results] == list(range(1, 11)), results
        assert all(r["equal"] for r in results), results
        assert results[-1]["loss"] < results[0]["loss"] / 3, results
        assert "killed by signal 9" in trial.error and "rank 1" in trial.error, trial.error
    print("ok")
'''


LAUNCHED = r'''
import torch, torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
model(torch.ones(3, 2) * (dist.get_rank() + 1)).sum().backward()
gradient = model.module.weight.grad
total = gradient.clone()
dist.all_reduce(total)
assert torch.equal(total, 2 * gradient)  # the same on both ranks
print("rank", dist.get_rank(), "of", dist.get_world_size(), "gradient", gradient[0, 0].item())
dist.destroy_process_group()
'''


def python_with_torch():
    cache = Path(os.environ.get("TUNE_CACHE_DIR", Path.home() / ".cache/tune"))
    places = [os.environ.get("TUNE_TORCH_PYTHON", ""), sys.executable, str(cache / "peers/torch/bin/python")]
    for python in filter(None, places):
        code = "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"
        if os.access(python, os.X_OK) and subprocess.run([python, "-c", code]).returncode == 0:
            return python
    return None


class DdpTest(unittest.TestCase):
    def test_ranks_train_one_model_and_go_on_from_their_checkpoint_when_one_is_killed(self):
        python = python_with_torch()
        if python is None:
            self.skipTest("there is no Python with torch")
        with tempfile.TemporaryDirectory(prefix="tune-python-test-") as folder:
            (Path(folder) / "ddp.py").write_text(PROGRAM)
            done = subprocess.run(
                [python, "ddp.py"], cwd=folder, capture_output=True, text=True,
                env=dict(os.environ, TUNE_PYTHON=python),
            )
        self.assertEqual((done.stdout, done.returncode), ("ok\n", 0), done.stderr)

    def test_tune_launch_starts_ranks_as_torchrun_does(self):
        python = python_with_torch()
        if python is None:
            self.skipTest("there is no Python with torch")
        with tempfile.TemporaryDirectory(prefix="tune-python-test-") as folder:
            (Path(folder) / "train.py").write_text(LAUNCHED)
            done = subprocess.run(
                [os.environ["TUNE_PROGRAM"], "launch", "--nproc-per-node", "2", "--master-port", "0", python, "train.py"],
                cwd=folder, capture_output=True, text=True, env=dict(os.environ, OMP_NUM_THREADS="1"),
            )
        self.assertEqual(done.returncode, 0, done.stderr)
        for rank in range(2):  # 3 rows of 1 and of 2: 4.5 on average
            self.assertIn(f"rank {rank} of 2 gradient 4.5", done.stdout)

    def test_a_caller_whose_torch_has_initialised_cuda_is_refused(self):
        """By torch's own word: it is told that it has, as there need not be a GPU."""
        python = python_with_torch()
        if python is None:
            self.skipTest("there is no Python with torch")
        code = "import torch, tune; torch.cuda._initialized = True; tune.run(lambda config: tune.report(x=1), quiet=True)"
        with tempfile.TemporaryDirectory(prefix="tune-python-test-") as folder:
            done = subprocess.run([python, "-c", code], cwd=folder, capture_output=True, text=True)
            self.assertEqual(os.listdir(folder), [])
        self.assertRegex(done.stderr, r"tune\.BadInput: this process has initialised CUDA")


if __name__ == "__main__":
    unittest.main()
