"""Which methods there are, where they run and how much they are asked."""
import collections
import hashlib
import os

HERE = os.path.dirname(os.path.abspath(__file__))

# kinds: what it makes sense for: tasks of "curves" or "one_step", "several" objectives. peer: none for tune's own.
# version: what its results hang on besides task, seed and setting. slow: above .1 s a suggestion; it is
# run with 20 trainings, 4 workers, free starts and few seeds only.
Method = collections.namedtuple("Method", "name peer kinds version slow")

# Peer: its program, and its environment (requirements/<it>.txt); none: any Python will do.
PEERS = {"plain": ("plain.py", None),
         "optuna": ("optuna_peer.py", "optuna"),
         "optuna_gp": ("optuna_peer.py", "optuna_gp"),
         "syne": ("syne_peer.py", "syne"),
         "ray": ("ray_peer.py", "ray_optuna"),
         "smac": ("smac_peer.py", "smac"),
         "hebo": ("hebo_peer.py", "hebo")}
KINDS = ("curves", "one_step", "several")


def sweep_of(name, kind):
    return os.path.join(HERE, "settings", kind, name.split(": ", 1)[1] + ".yaml")


def digest(*paths):
    found = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            found.update(file.read())
    return found.hexdigest()[:12]


def own_methods(kind, program):
    """The sweeps of a folder. What the program searches with may differ from build to build."""
    folder = os.path.join(HERE, "settings", kind)
    for file in sorted(os.listdir(folder)):
        if file.endswith(".yaml"):
            yield Method("tune: " + file[:-5], None, (kind,),
                         digest(os.path.join(folder, file), program), False)


def peer_methods():
    def method(peer, name, kinds, slow=False):
        environment = PEERS[peer][1]
        requirements = os.path.join(HERE, "requirements", "%s.txt" % environment)
        return Method(name, peer, kinds, digest(requirements) if environment else None, slow)

    curves, one_step, several = ("curves",), ("one_step",), ("several",)
    yield method("plain", "plain: random + none", KINDS)
    yield method("plain", "plain: one step + the best", curves)
    for sampler in ("tpe", "random", "tpe group"):
        yield method("optuna", "optuna: %s + halving" % sampler, curves)
        yield method("optuna", "optuna: %s + none" % sampler, KINDS)
        yield method("optuna", "optuna: %s + hyperband" % sampler, curves)
        yield method("optuna", "optuna: %s + median" % sampler, curves)
    yield method("optuna", "optuna: tpe univariate + none", KINDS)
    yield method("optuna", "optuna: nsga2 + none", several)
    yield method("syne", "syne: random + asha", curves)
    yield method("syne", "syne: bohb + asha", curves)
    yield method("ray", "ray: optuna + asha", curves)
    for pruner in ("halving", "none", "hyperband", "median"):
        yield method("optuna_gp", "optuna: gp + %s" % pruner, KINDS if pruner == "none" else curves,
                     slow=True)
    yield method("syne", "syne: cqr + asha", curves, slow=True)
    yield method("smac", "smac: forest + hyperband", curves, slow=True)
    yield method("smac", "smac: forest + none", one_step, slow=True)
    yield method("hebo", "hebo: hebo + asha", curves, slow=True)
    yield method("hebo", "hebo: hebo + none", one_step, slow=True)
