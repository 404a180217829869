#include "tune/drive/ray_words.h"

#include <fmt/format.h>

#include "tune/spec/pool_options.h"

namespace tune {

namespace {

// Starts, lists or stops agents; by an interpreter that has Ray.
constexpr const char* kHelper = R"python(
import argparse, ctypes, json, os, signal, socket, subprocess, sys, threading

try:
    import ray
    import ray.exceptions
    import ray.util
except ImportError as error:
    sys.exit("%s: %s: name the interpreter of your Ray: interpreter: /path/to/python"
             % (sys.executable, error))

NAMESPACE = "tune"
PATIENCE_S = 20  # of an agent that is stopped, to save and leave


@ray.remote(max_restarts=0, max_task_retries=0)
class Agent:
    """Holds the resources as long as its agent lives."""

    def __init__(self, words, log):
        self.process = None
        threading.Thread(target=self._run, args=(words, log)).start()

    def _run(self, words, log):
        prctl = ctypes.CDLL(None).prctl
        try:
            with open(log, "ab", buffering=0) as output:
                try:
                    # It ends with this thread: an actor may be killed without a word.
                    PR_SET_PDEATHSIG = 1
                    self.process = subprocess.Popen(
                        words, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                        start_new_session=True, preexec_fn=lambda: prctl(PR_SET_PDEATHSIG, signal.SIGTERM))
                except OSError as error:
                    output.write(f"starting the agent: {error}\n".encode())
                    return
            self.process.wait()
        finally:
            os._exit(0)

    def host(self):
        return socket.gethostname()

    def stop(self):
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)


def connect(address):
    """Ray says the same again and again on stderr until it gives up: only its last word is told."""
    errors = os.dup(2)
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level="error")
        os.dup2(errors, 2)
    except Exception as error:
        os.dup2(errors, 2)
        cause = error.__cause__ or error
        sys.exit(f"no Ray cluster at address {address}: {str(cause).strip().splitlines()[-1]}")


def start(options):
    shares = {"num_cpus": options.cpu, "num_gpus": options.gpu,
              "resources": json.loads(options.resources)}
    if options.memory > 0:
        shares["memory"] = options.memory
    Agent.options(name=options.name, namespace=NAMESPACE, lifetime="detached", **shares).remote(
        [options.script, options.name], options.log)


def listed(options):
    asked = {}
    for actor in ray.util.list_named_actors(all_namespaces=True):
        name = actor["name"]
        if actor["namespace"] == NAMESPACE and name.startswith(options.prefix):
            try:
                asked[ray.get_actor(name, NAMESPACE).host.remote()] = name
            except ValueError:
                pass  # it has ended meanwhile
    if not asked:
        return
    answered, silent = ray.wait(list(asked), num_returns=len(asked), timeout=3)
    for answer in answered:
        try:
            print(f"{asked[answer]}||RUNNING||{ray.get(answer)}")
        except ray.exceptions.RayError as error:
            print(f"{asked[answer]}||ended|{str(error).splitlines()[0]}|")
    for answer in silent:
        print(f"{asked[answer]}||PENDING|Ray has no room for it|")


def stop(options):
    try:
        actor = ray.get_actor(options.name, NAMESPACE)
    except ValueError:
        return
    try:
        if ray.wait([actor.host.remote()], timeout=3)[0]:  # else it has no place yet
            ray.get(actor.stop.remote(), timeout=PATIENCE_S + 5)
    except ray.exceptions.RayError:
        pass  # it has ended meanwhile
    ray.kill(actor)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["check", "start", "list", "stop"])
    parser.add_argument("--address", default="auto")
    parser.add_argument("--resources", default="{}")
    for text in ["--name", "--prefix", "--script", "--log"]:
        parser.add_argument(text, default="")
    for number in ["--cpu", "--gpu", "--memory"]:
        parser.add_argument(number, type=float, default=0)
    options = parser.parse_args()
    connect(options.address)
    {"check": lambda _: None, "start": start, "list": listed, "stop": stop}[options.what](options)


main()
)python";

// The words `submit` come last: they may say --address and --resources.
std::vector<std::string> helper(const PoolOptions& pool, const std::vector<std::string>& rest) {
  std::vector<std::string> words = {pool.interpreter.empty() ? "python3" : pool.interpreter, "-c",
                                    kHelper};
  words.insert(words.end(), rest.begin(), rest.end());
  words.insert(words.end(), pool.submit.begin(), pool.submit.end());
  return words;
}

}  // namespace

EngineWords ray_actors(const PoolOptions& pool, const EnginePlace& place) {
  EngineWords engine;
  engine.check = helper(pool, {"check"});
  std::vector<std::string> start = {"start",  "--name", "${name}", "--script", "${script}", "--log",
                                    "${log}", "--cpu",  "${cpu}",  "--gpu",    "${gpu}"};
  if (pool.node.memory.bytes() > 0) {
    start.insert(start.end(), {"--memory", std::to_string(place.node.memory_bytes)});
  }
  engine.start = helper(pool, start);
  engine.list = helper(pool, {"list", "--prefix", "${prefix}"});
  engine.stop = helper(pool, {"stop", "--name", "${name}"});
  engine.id_form = IdForm::kNone;
  return engine;
}

}  // namespace tune
