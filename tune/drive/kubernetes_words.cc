#include "tune/drive/kubernetes_words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "core/json.h"
#include "core/strings.h"

namespace tune {

namespace {

using Texts = std::vector<std::string>;

// ---- The commands -------------------------------------------------------------------------------

// Shell for what kubectl does not do by itself. $1, $2 are its own; `submit` follows in "$@".

// Makes a Job of the manifest $1; $2 is the user's patch.
constexpr const char* kCreate = R"(file=$1 patch=$2; shift 2
if [ "$patch" ]; then
  kubectl patch --local --type=strategic -f "$file" -p "$patch" -o yaml
else cat "$file"; fi | kubectl "$@" create -f - -o name )";

// Makes or replaces the Secret, for the experiment $1, of the file $2.
constexpr const char* kToken = R"(experiment=$1 file=$2; shift 2
kubectl create secret generic "$experiment" --from-file=token="$file" --dry-run=client -o yaml |
kubectl label --local -f - "tune/experiment=$experiment" -o yaml |
kubectl "$@" apply -f - )";

// Keeps the output of the allocation $1 in the file $2, as long as its pod is there.
constexpr const char* kKeepLog = R"(name=$1 log=$2; shift 2
part=$log.$$
kubectl "$@" logs -l "tune/allocation=$name" --tail=10000 >"$part" 2>/dev/null &&
  [ -s "$part" ] && mv "$part" "$log" || rm -f "$part"
)";

constexpr const char* kDelete =
    R"(exec kubectl "$@" delete job "$name" --ignore-not-found --wait=false)";
constexpr const char* kTail = R"([ ! -e "$log" ] || tail -n 12 -- "$log")";

// A line for each Job and pod, of the fields that Field names. Messages come from the cluster: a
// tab is in none of them.
struct Field {
  enum : std::size_t {
    kName,
    kKind,
    kSuspend,
    kPhase,
    kNode,
    kReason,
    kConditions,
    kUnscheduled,
    kWaiting,
    kTerminated,
    kCount
  };
};
constexpr const char* kTemplate =
    R"({{range .items}}{{with .metadata.labels}}{{index . "tune/allocation"}}{{end}}{{"\t"}})"
    R"({{.kind}}{{"\t"}}{{.spec.suspend}}{{"\t"}}{{.status.phase}}{{"\t"}}{{.spec.nodeName}})"
    R"({{"\t"}}{{.status.reason}}{{"\t"}}{{range .status.conditions}}{{if eq .status "True"}})"
    R"({{.type}}:{{.reason}};{{end}}{{end}}{{"\t"}}{{range .status.conditions}})"
    R"({{if eq .type "PodScheduled"}}{{if eq .status "False"}}{{.reason}}: {{.message}}{{end}})"
    R"({{end}}{{end}}{{"\t"}}{{range .status.containerStatuses}}{{with .state.waiting}})"
    R"({{.reason}}: {{.message}}{{end}}{{end}}{{"\t"}}{{range .status.containerStatuses}})"
    R"({{with .state.terminated}}{{.reason}}, exit code {{.exitCode}}{{end}}{{end}}{{"\n"}}{{end}})";

Texts shell(const std::string& script, Texts arguments, const PoolOptions& pool) {
  Texts words = {"sh", "-c", script, "sh"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  words.insert(words.end(), pool.submit.begin(), pool.submit.end());
  return words;
}

Texts kubectl(const PoolOptions& pool, const Texts& rest) {
  Texts words = {"kubectl"};
  words.insert(words.end(), pool.submit.begin(), pool.submit.end());
  words.insert(words.end(), rest.begin(), rest.end());
  return words;
}

std::string replaced_all(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// ---- The manifest -------------------------------------------------------------------------------

std::string quoted(const std::string& text) {
  return to_json(Value(text));
}

// Text of several lines, as a block of YAML. Kubernetes fills in $(NAME), and takes $$ for $.
std::string block(const std::string& text, const std::string& indent) {
  std::string all;
  bool begins = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (begins && text[i] != '\n') all += indent;
    begins = text[i] == '\n';
    const bool is_read =
        text[i] == '$' && i + 1 < text.size() && (text[i + 1] == '$' || text[i + 1] == '(');
    all += is_read ? "$$" : std::string(1, text[i]);
  }
  return all;
}

// "{cpu: "8", memory: "61440Mi", nvidia.com/gpu: "4"}"
std::string shares(const PoolOptions& pool, const EnginePlace& place) {
  const double cpus = static_cast<double>(place.node.cpu_units) / kUnit;
  std::string text = fmt::format("{{cpu: \"{:g}\"", cpus);
  if (pool.node.memory.bytes() > 0) {
    text += fmt::format(", memory: \"{}Mi\"", (place.node.memory_bytes + (1 << 20) - 1) >> 20);
  }
  if (!place.node.gpus.empty()) {
    text += fmt::format(", nvidia.com/gpu: \"{}\"", place.node.gpus.size());
  }
  return text + "}";
}

// The end counts from the begin of the pod, not from that of its Job, which may wait for long.
std::string times(const PoolOptions& pool) {
  constexpr double kParting = 30;  // after the drain
  std::string text = fmt::format("      terminationGracePeriodSeconds: {:.0f}\n",
                                 std::ceil(pool.drain.seconds()) + kParting);
  if (!(pool.time.seconds() > 0)) return text;
  return text +
         fmt::format("      activeDeadlineSeconds: {:.0f}\n", std::ceil(pool.time.seconds()));
}

// Without a volume ranks share 64 MiB of memory: too little for NCCL and for loaders of data.
std::string container(const PoolOptions& pool, const EnginePlace& place, const std::string& name) {
  const std::string share = shares(pool, place);
  const bool has_setup = !pool.setup.empty();
  return fmt::format(
      "      - name: agent\n"
      "        image: {}\n"
      "        command: [{}, {}]\n"
      "        args:\n"
      "        - |\n"
      "{}"
      "        - agent\n"
      "        - {}\n"
      "        resources:\n"
      "          requests: {}\n"
      "          limits: {}\n"
      "        volumeMounts:\n"
      "        - {{name: token, mountPath: /etc/tune, readOnly: true}}\n"
      "        - {{name: shared-memory, mountPath: /dev/shm}}\n",
      quoted(pool.image), has_setup ? "/bin/bash" : "/bin/sh", has_setup ? "-lc" : "-c",
      block(place.script, "          "), quoted(name), share, share);
}

// Nodes on which agents have started and never come.
std::string affinity(const std::string& excluded) {
  if (excluded.empty()) return {};
  std::string text =
      "      affinity:\n"
      "        nodeAffinity:\n"
      "          requiredDuringSchedulingIgnoredDuringExecution:\n"
      "            nodeSelectorTerms:\n"
      "            - matchFields:\n";
  for (std::size_t begin = 0; begin <= excluded.size();) {
    const std::size_t end = std::min(excluded.find(',', begin), excluded.size());
    text += fmt::format("              - {{key: metadata.name, operator: NotIn, values: [{}]}}\n",
                        quoted(excluded.substr(begin, end - begin)));
    begin = end + 1;
  }
  return text;
}

// ---- The list -----------------------------------------------------------------------------------

using Fields = std::array<std::string_view, Field::kCount>;

Fields fields_of(std::string_view line) {
  Fields fields;
  for (std::string_view& field : fields) {
    const std::size_t end = line.find('\t');
    field = line.substr(0, end);
    while (field.ends_with(' ')) field.remove_suffix(1);
    if (field == "<no value>") field = {};
    line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  }
  return fields;
}

// The reason of a condition that holds: "Failed:BackoffLimitExceeded;" Nothing: it does not hold.
std::optional<std::string_view> condition(std::string_view all, std::string_view type) {
  const std::string begin = fmt::format("{}:", type);
  while (!all.empty()) {
    const std::size_t end = std::min(all.find(';'), all.size());
    const std::string_view one = all.substr(0, end);
    if (one.starts_with(begin)) return one.substr(begin.size());
    all.remove_prefix(std::min(end + 1, all.size()));
  }
  return std::nullopt;
}

bool is_hopeless(std::string_view waiting) {
  constexpr std::array kNever = {"ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull",
                                 "CreateContainerConfigError", "CreateContainerError"};
  return std::ranges::any_of(kNever, [&](const char* why) { return waiting.starts_with(why); });
}

std::string pending(std::string_view why) {
  return why.empty() ? "Pending" : fmt::format("Pending ({})", why);
}

void take_pod(const Fields& pod, ListedAllocation& one) {
  if (pod[Field::kPhase] == "Pending") {
    const std::string_view why =
        pod[Field::kWaiting].empty() ? pod[Field::kUnscheduled] : pod[Field::kWaiting];
    one.is_hopeless = is_hopeless(pod[Field::kWaiting]);
    one.reason = pending(why);
  } else if (pod[Field::kPhase] == "Succeeded" || pod[Field::kPhase] == "Failed") {
    const auto disrupted = condition(pod[Field::kConditions], "DisruptionTarget");
    const std::string_view why = disrupted                     ? *disrupted
                                 : pod[Field::kReason].empty() ? pod[Field::kTerminated]
                                                               : pod[Field::kReason];
    one.state = AllocationState::kEnded;
    one.host = pod[Field::kNode];
    one.reason = why.empty() ? std::string(pod[Field::kPhase]) : std::string(why);
  } else {
    one.state = AllocationState::kRunning;
    one.host = pod[Field::kNode];
    one.reason.clear();
  }
}

void take_job(const Fields& job, ListedAllocation& one) {
  for (const char* end : {"Failed", "Complete"}) {
    const auto why = condition(job[Field::kConditions], end);
    if (!why) continue;
    one.state = AllocationState::kEnded;
    one.reason = why->empty() ? end : fmt::format("{} ({})", end, *why);
    return;
  }
  one.reason = job[Field::kSuspend] == "true" ? "Suspended (its queue has not admitted it)"
                                              : pending("no pod yet");
}

}  // namespace

EngineWords kubernetes_jobs(const PoolOptions& pool, const EnginePlace& place) {
  const std::string patch = replaced_all(pool.patch, "${", "$${");
  const std::string label = "tune/experiment=${experiment}";
  const std::string log = kKeepLog;
  EngineWords engine;
  // A token that is none: the right to make Secrets is found out, and nothing is made.
  engine.check = shell(std::string(kCreate) +
                           "--dry-run=server && kubectl \"$@\" create secret "
                           "generic tune-check --dry-run=server -o name",
                       {kInputFile, patch}, pool);
  engine.prepare = shell(kToken, {"${experiment}", "${join_file}"}, pool);
  engine.start = shell(kCreate, {kInputFile, patch}, pool);
  engine.list = kubectl(
      pool, {"get", "jobs,pods", "-l", label, "-o", std::string("go-template=") + kTemplate});
  engine.stop = shell(log + kDelete, {"${name}", "${log}"}, pool);
  engine.last_words = shell(log + kTail, {"${name}", "${log}"}, pool);
  engine.finish =
      kubectl(pool, {"delete", "jobs,secrets", "-l", label, "--ignore-not-found", "--wait=false"});
  if (!pool.patch.empty()) {
    engine.show = {"kubectl", "patch", "--local", "--type=strategic", "-f", kInputFile, "-p",
                   patch,     "-o",    "yaml"};
  }
  engine.list_form = ListForm::kKubernetes;
  engine.exclusion = [](const auto& hosts) { return join(hosts, ","); };
  engine.id_form = IdForm::kNone;  // the name does
  engine.manifest = [pool, place](const PoolValues& values) {
    return kubernetes_manifest(pool, place, values);
  };
  return engine;
}

std::string kubernetes_manifest(const PoolOptions& pool, const EnginePlace& place,
                                const PoolValues& values) {
  const std::string labels =
      fmt::format("tune/experiment: {}, tune/allocation: {}", quoted(values.at("experiment")),
                  quoted(values.at("name")));
  std::string queue;
  if (!pool.queue.empty()) queue = ", kueue.x-k8s.io/queue-name: " + quoted(pool.queue);
  return fmt::format(
      "apiVersion: batch/v1\n"
      "kind: Job\n"
      "metadata:\n"
      "  name: {}\n"
      "  labels: {{{}{}}}\n"
      "spec:\n"
      "  parallelism: 1\n"
      "  completions: 1\n"
      "  backoffLimit: 0\n"
      "  ttlSecondsAfterFinished: 3600\n"
      "  template:\n"
      "    metadata:\n"
      "      labels: {{{}}}\n"
      "    spec:\n"
      "      restartPolicy: Never\n"
      "      automountServiceAccountToken: false\n"
      "{}{}"
      "      containers:\n"
      "{}"
      "      volumes:\n"
      "      - name: token\n"
      "        secret: {{secretName: {}, defaultMode: 256}}\n"  // 0400
      "      - name: shared-memory\n"
      "        emptyDir: {{medium: Memory}}\n",
      quoted(values.at("name")), labels, queue, labels, times(pool), affinity(values.at("exclude")),
      container(pool, place, values.at("name")), quoted(values.at("experiment")));
}

std::vector<ListedAllocation> listed_by_kubernetes(std::string_view output,
                                                   std::string_view prefix) {
  std::map<std::string_view, ListedAllocation> jobs;
  std::map<std::string_view, Fields> pods;  // where there are several, the one that lives
  while (!output.empty()) {
    const std::size_t end = std::min(output.find('\n'), output.size());
    const Fields fields = fields_of(output.substr(0, end));
    output.remove_prefix(std::min(end + 1, output.size()));
    const std::string_view name = fields[Field::kName];
    const PoolBook::Number number = allocation_number(name, prefix);
    if (number == 0) continue;
    if (fields[Field::kKind] == "Job") {
      jobs[name].number = number;
      take_job(fields, jobs[name]);
    } else {
      const bool lives = fields[Field::kPhase] == "Running" || fields[Field::kPhase] == "Pending";
      if (lives || !pods.contains(name)) pods[name] = fields;
    }
  }
  std::vector<ListedAllocation> listed;
  for (auto& [name, one] : jobs) {
    const auto pod = pods.find(name);
    const bool has_ended = one.state == AllocationState::kEnded;
    if (pod != pods.end()) take_pod(pod->second, one);
    if (has_ended) one.state = AllocationState::kEnded, one.is_hopeless = false;
    listed.push_back(std::move(one));
  }
  return listed;
}

}  // namespace tune
