#include "tune/drive/engine_words.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <map>

#include <fmt/format.h>

#include "core/strings.h"
#include "tune/drive/kubernetes_words.h"
#include "tune/drive/ray_words.h"
#include "tune/drive/ssh_words.h"

namespace tune {

namespace {

using Words = std::vector<std::string>;

std::int64_t whole_cpus(const EnginePlace& place) {
  return std::max<std::int64_t>(1, (place.node.cpu_units + kUnit - 1) / kUnit);
}

std::int64_t mebibytes(const EnginePlace& place) {
  return (place.node.memory_bytes + (1 << 20) - 1) >> 20;
}

void append(Words& words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
}

std::string with_commas(const Words& hosts) {
  return join(hosts, ",");
}

// "04:00:00"
std::string clock_time(double seconds) {
  const auto all = static_cast<std::int64_t>(std::ceil(seconds));
  return fmt::format("{:02}:{:02}:{:02}", all / 3600, all / 60 % 60, all % 60);
}

std::int64_t minutes(double seconds) {
  return static_cast<std::int64_t>(std::ceil(seconds / 60));
}

// ---- Slurm --------------------------------------------------------------------------------------

// A job a line, as `squeue -o` has it. Not --json, which another version prints otherwise.
constexpr const char* kJobs = "%j|%i|%T|%r|%N";
// After it, in the list of a run that has its own job's nodes: nothing waits for the queue there.
// One that does would keep the nodes from being used, as an agent on its way.
constexpr const char* kOutside = "outside";

// The signal is the second notice: the agent knows the end of its job. To the batch script alone
// (B:), which becomes the agent: one to a step would reach the workers, too.
Words sbatch_options(const PoolOptions& pool, const EnginePlace& place) {
  Words words = {
      "--job-name=${name}",
      "--nodes=1",
      "--ntasks=1",
      "--no-requeue",
      "--open-mode=append",
      "--output=${log}",
      fmt::format("--cpus-per-task={}", whole_cpus(place)),
      fmt::format("--signal=B:USR2@{}", std::max(1L, std::lround(pool.drain.seconds())))};
  if (!place.node.gpus.empty())
    words.push_back(fmt::format("--gres=gpu:{}", place.node.gpus.size()));
  if (pool.node.memory.bytes() > 0) words.push_back(fmt::format("--mem={}M", mebibytes(place)));
  if (pool.time.seconds() > 0) {
    words.push_back(fmt::format("--time={}", minutes(pool.time.seconds())));
  }
  words.emplace_back("--exclude=${exclude}");
  append(words, pool.submit);
  return words;
}

EngineWords slurm_jobs(const PoolOptions& pool, const EnginePlace& place) {
  EngineWords engine;
  engine.start = {"sbatch", "--parsable"};
  append(engine.start, sbatch_options(pool, place));
  append(engine.start, {"${script}", "${name}"});
  engine.check = {"sbatch", "--test-only", "--wrap=true"};
  append(engine.check, sbatch_options(pool, place));
  // All states: how an ended job ended is told for some minutes.
  engine.list = {"squeue", "-h", "--states=all", "-u", place.user, "-o", kJobs};
  engine.stop = {"scancel", "${id}"};
  engine.exclusion = with_commas;
  return engine;
}

// In a job: an agent on each of its nodes, and nothing is submitted.
EngineWords slurm_steps(const PoolOptions& pool, const EnginePlace& place) {
  EngineWords engine;
  engine.start = started_apart({"srun", "--overlap", "--jobid=" + place.job, "--nodes=1",
                                "--ntasks=1", "--nodelist=${host}", "--input=none",
                                "--job-name=${name}", "--output=${log}", "--open-mode=append"});
  const bool is_whole = !pool.node.is_given();  // else one trial's share would be left of the job
  engine.start.push_back(is_whole ? "--whole"
                                  : fmt::format("--cpus-per-task={}", whole_cpus(place)));
  append(engine.start, pool.submit);
  append(engine.start, {"${script}", "${name}"});
  if (is_whole) engine.start.emplace_back(kWholeNode);
  // And the jobs of a run that has begun outside, which otherwise nobody would ever stop.
  constexpr const char* kBoth = R"(squeue -h --steps -j "$1" -o '%j|%i|RUNNING||%N' && )"
                                R"(exec squeue -h --states=all -u "$2" -o "$3")";
  engine.list = {
      "sh", "-c", kBoth, "sh", place.job, place.user, fmt::format("{}|{}", kJobs, kOutside)};
  engine.stop = {"scancel", "${id}"};
  engine.id_form = IdForm::kNone;
  engine.hosts = place.job_hosts;
  engine.environment_note = fmt::format(
      "inside job {}: an agent on each of its {} nodes, nothing is submitted (inside: submit does)",
      place.job, place.job_hosts.size());
  return engine;
}

// ---- Presets of the engine `command` ------------------------------------------------------------

EngineWords pbs(const PoolOptions& pool, const EnginePlace& place) {
  EngineWords engine;
  std::string select = fmt::format("select=1:ncpus={}", whole_cpus(place));
  if (!place.node.gpus.empty()) select += fmt::format(":ngpus={}", place.node.gpus.size());
  if (pool.node.memory.bytes() > 0) select += fmt::format(":mem={}mb", mebibytes(place));
  engine.start = {"qsub", "-N", "${name}", "-o", "${log}", "-j", "oe", "-r", "n", "-l", select};
  if (pool.time.seconds() > 0) {
    append(engine.start, {"-l", "walltime=" + clock_time(pool.time.seconds())});
  }
  append(engine.start, pool.submit);
  append(engine.start, {"-v", "TUNE_ALLOCATION=${name}", "${script}"});
  engine.list = {"qstat", "-f"};
  engine.stop = {"qdel", "${id}"};
  engine.list_form = ListForm::kPbs;
  return engine;
}

EngineWords lsf(const PoolOptions& pool, const EnginePlace& place) {
  EngineWords engine;
  engine.start = {"bsub",   "-J",           "${name}", "-o",
                  "${log}", "-rn",          "-n",      std::to_string(whole_cpus(place)),
                  "-R",     "span[hosts=1]"};
  if (!place.node.gpus.empty()) {
    append(engine.start, {"-gpu", fmt::format("num={}", place.node.gpus.size())});
  }
  if (pool.node.memory.bytes() > 0) {
    append(engine.start, {"-M", fmt::format("{}MB", mebibytes(place))});
  }
  if (pool.time.seconds() > 0) {
    append(engine.start, {"-W", std::to_string(minutes(pool.time.seconds()))});
  }
  append(engine.start, {"-R${if:exclude}", "select[${exclude}]"});  // holds beside the other -R
  engine.exclusion = [](const Words& hosts) {
    return "hname!='" + join(hosts, "' && hname!='") + "'";
  };
  append(engine.start, pool.submit);
  append(engine.start, {"${script}", "${name}"});
  engine.list = {"bjobs", "-a", "-noheader", "-o",
                 "name id stat pend_reason first_host delimiter='|'"};
  engine.stop = {"bkill", "${id}"};
  engine.id_form = IdForm::kNumber;  // Job <7> is submitted to queue <normal>.
  return engine;
}

EngineWords grid_engine(const PoolOptions& pool, const EnginePlace& place) {
  EngineWords engine;
  engine.start = {"qsub", "-terse", "-N", "${name}", "-o", "${log}", "-j", "y", "-r", "n"};
  if (whole_cpus(place) > 1) {
    append(engine.start, {"-pe", "smp", std::to_string(whole_cpus(place))});
  }
  if (!place.node.gpus.empty()) {
    append(engine.start, {"-l", fmt::format("gpu={}", place.node.gpus.size())});
  }
  if (pool.node.memory.bytes() > 0) {
    append(engine.start, {"-l", fmt::format("h_vmem={}M", mebibytes(place) / whole_cpus(place))});
  }
  if (pool.time.seconds() > 0) {
    append(engine.start, {"-l", "h_rt=" + clock_time(pool.time.seconds())});
  }
  append(engine.start, {"-l${if:exclude}", "h=!(${exclude})"});
  engine.exclusion = [](const Words& hosts) { return join(hosts, "|"); };
  append(engine.start, pool.submit);
  append(engine.start, {"${script}", "${name}"});
  engine.list = {"qstat", "-r", "-u", place.user};
  engine.stop = {"qdel", "${id}"};
  engine.list_form = ListForm::kGridEngine;
  return engine;
}

EngineWords htcondor(const PoolOptions& pool, const EnginePlace& place) {
  EngineWords engine;
  engine.start = {"condor_submit", "-terse", "-batch-name", "${name}"};
  const auto line = [&](const std::string& text) { append(engine.start, {"-append", text}); };
  line("executable = ${script}");
  line("arguments = ${name}");
  line("output = ${log}");
  line("error = ${log}");
  line("transfer_executable = false");
  line("should_transfer_files = no");
  line(fmt::format("request_cpus = {}", whole_cpus(place)));
  if (!place.node.gpus.empty()) line(fmt::format("request_gpus = {}", place.node.gpus.size()));
  if (pool.node.memory.bytes() > 0) line(fmt::format("request_memory = {}", mebibytes(place)));
  // Requirements of the user's come later, and replace these.
  append(engine.start, {"-append${if:exclude}", "requirements = ${exclude}"});
  engine.exclusion = [](const Words& hosts) {
    return "(Machine =!= \"" + join(hosts, "\") && (Machine =!= \"") + "\")";
  };
  append(engine.start, pool.submit);
  append(engine.start, {"/dev/null", "-queue", "1"});
  engine.list = {"condor_q",  "-nobatch",  "-af:,",      "JobBatchName",
                 "ClusterId", "JobStatus", "RemoteHost", "HoldReason"};
  engine.stop = {"condor_rm", "${id}"};
  engine.list_form = ListForm::kHtcondor;
  engine.id_form = IdForm::kNumber;  // 7.0 - 7.0
  return engine;
}

EngineWords flux(const PoolOptions& pool, const EnginePlace& place) {
  EngineWords engine;
  engine.start = {"flux",
                  "batch",
                  "--job-name=${name}",
                  "--output=${log}",
                  "--nslots=1",
                  fmt::format("--cores-per-slot={}", whole_cpus(place))};
  if (!place.node.gpus.empty()) {
    engine.start.push_back(fmt::format("--gpus-per-slot={}", place.node.gpus.size()));
  }
  if (pool.time.seconds() > 0) {
    engine.start.push_back(fmt::format("--time-limit={}m", minutes(pool.time.seconds())));
  }
  engine.start.emplace_back("--requires=-host:${exclude}");
  engine.exclusion = with_commas;
  append(engine.start, pool.submit);
  append(engine.start, {"${script}", "${name}"});
  engine.list = {"flux", "jobs", "-a", "-n", "-o", "{name}|{id.dec}|{state}||{nodelist}"};
  engine.stop = {"flux", "cancel", "${id}"};
  return engine;
}

// ---- Reading ------------------------------------------------------------------------------------

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  return text;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find_first_of(separators);
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words = split(line, " \t");
  std::erase(words, "");
  return words;
}

void for_each_line(std::string_view text, const std::function<void(std::string_view)>& take) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    take(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

// "PENDING (Priority)"
std::string in_words(std::string_view state, std::string_view reason) {
  if (reason.empty() || reason == "None" || reason == "-") return std::string(state);
  return fmt::format("{} ({})", state, reason);
}

// Adds what was found, when it is one of ours.
class Listing {
 public:
  explicit Listing(std::string_view prefix) : prefix_(prefix) {}

  bool is_ours(std::string_view name) const { return allocation_number(name, prefix_) > 0; }
  void add_outside(std::string_view name, std::string_view id, std::string_view state,
                   std::string_view reason, std::string_view host) {
    if (!is_ours(name)) return;
    add(name, id, state, reason, host);
    ListedAllocation& one = found_.back();
    if (one.state != AllocationState::kQueued) return;
    one.is_hopeless = true;
    one.reason = "it waited outside the job in which the run goes on: " + one.reason;
  }
  void add(std::string_view name, std::string_view id, std::string_view state,
           std::string_view reason, std::string_view host) {
    if (!is_ours(name)) return;
    const auto known = state.empty() ? AllocationState::kRunning : state_of_word(state);
    // A host is known of what runs alone; lists of several hosts are of others' making.
    const bool runs = known == AllocationState::kRunning;
    // An unknown word is told as one of those that wait: the allocation is there, by its name, and
    // neither is an agent of it missed nor does it end.
    found_.push_back({allocation_number(name, prefix_), known.value_or(AllocationState::kQueued),
                      std::string(id),
                      runs || known == AllocationState::kEnded ? std::string(host) : "",
                      runs ? "" : in_words(state, reason)});
  }
  std::vector<ListedAllocation> take() { return std::move(found_); }

 private:
  std::string_view prefix_;
  std::vector<ListedAllocation> found_;
};

void read_lines(std::string_view output, Listing& listing) {
  for_each_line(output, [&](std::string_view line) {
    std::vector<std::string_view> parts = split(line, "|");
    parts.resize(std::max<std::size_t>(parts.size(), 6));
    const auto add = parts[5] == kOutside ? &Listing::add_outside : &Listing::add;
    (listing.*add)(parts[0], parts[1], parts[2], parts[3], parts[4]);
  });
}

// "undefined" stands for what a job does not have. The reason comes last: it may hold commas.
void read_htcondor(std::string_view output, Listing& listing) {
  static const std::map<std::string_view, std::string_view> kStates = {
      {"1", "Idle"},      {"2", "Running"}, {"3", "Removed"},
      {"4", "Completed"}, {"5", "Held"},    {"6", "Transferring Output"},
      {"7", "Suspended"}};
  for_each_line(output, [&](std::string_view line) {
    std::vector<std::string_view> parts = split(line, ",");
    parts.resize(std::max<std::size_t>(parts.size(), 5));
    const std::size_t at = parts[3].find('@');  // slot1@host
    const std::string_view host = at == std::string_view::npos ? "" : parts[3].substr(at + 1);
    std::string_view reason = parts[4];
    if (!reason.empty()) {
      reason = trimmed(line.substr(static_cast<std::size_t>(reason.data() - line.data())));
    }
    if (reason == "undefined") reason = "";
    const auto state = kStates.find(parts[2]);
    listing.add(parts[0], parts[1], state == kStates.end() ? parts[2] : state->second, reason,
                host);
  });
}

void read_pbs(std::string_view output, Listing& listing) {
  std::map<std::string, std::string, std::less<>> job;
  const auto finish = [&] {
    std::string host = job["exec_host"];
    host.resize(std::min(host.size(), host.find_first_of("/+:")));
    listing.add(job["Job_Name"], job["id"], job["job_state"], job["comment"], host);
    job.clear();
  };
  for_each_line(output, [&](std::string_view line) {
    if (line.starts_with("Job Id:")) {
      finish();
      job["id"] = trimmed(line.substr(7));
      return;
    }
    const std::size_t equals = line.find(" = ");
    if (equals == std::string_view::npos) return;
    job[std::string(trimmed(line.substr(0, equals)))] = trimmed(line.substr(equals + 3));
  });
  finish();
}

void read_grid_engine(std::string_view output, Listing& listing) {
  std::vector<std::string> job;  // id, state, queue
  for_each_line(output, [&](std::string_view line) {
    constexpr std::string_view kName = "Full jobname:";
    const std::string_view text = trimmed(line);
    if (text.starts_with(kName)) {
      if (job.size() == 3)
        listing.add(trimmed(text.substr(kName.size())), job[0], job[1], "", job[2]);
      return job.clear();
    }
    const std::vector<std::string_view> words = words_of(line);
    const bool is_job = words.size() >= 8 && std::isdigit(static_cast<unsigned char>(words[0][0]));
    if (!is_job) return;
    const std::size_t at = words[7].find('@');
    const std::string_view host = at == std::string_view::npos ? "" : words[7].substr(at + 1);
    job = {std::string(words[0]), std::string(words[4]), std::string(host)};
  });
}

void read_processes(std::string_view output, Listing& listing) {
  for_each_line(output, [&](std::string_view line) {
    const std::vector<std::string_view> words = words_of(line);
    const auto name = std::ranges::find_if(words, [&](auto word) { return listing.is_ours(word); });
    if (name != words.end()) listing.add(*name, words.front(), "", "", "");
  });
}

// The nodes see another folder than the experiment's: the newest token goes there, and what agents
// print comes from there.
void add_folder(EngineWords& engine) {
  engine.prepare = {"sh",
                    "-c",
                    R"(umask 077 && cp -- "$1" "$2.new" && mv -f -- "$2.new" "$2")",
                    "sh",
                    "${own_join_file}",
                    "${join_file}"};
  engine.last_words = {
      "sh", "-c",     R"([ ! -e "$1" ] || cp -- "$1" "$2"; [ ! -e "$2" ] || tail -n 12 -- "$2")",
      "sh", "${log}", "${own_log}"};
  engine.finish = {"sh",
                   "-c",
                   R"(for log in "$1"/*.log; do [ ! -e "$log" ] || cp -- "$log" "$2"/; done
rm -rf -- "$1")",
                   "sh",
                   "${folder}",
                   "${own_folder}"};
  engine.finish_by_host = false;
}

EngineWords words_of_engine(const PoolOptions& pool, const EnginePlace& place) {
  if (pool.engine == "slurm") {
    const bool is_inside = !place.job.empty() && pool.inside != "submit";
    return is_inside ? slurm_steps(pool, place) : slurm_jobs(pool, place);
  }
  if (pool.engine == "ssh") return ssh_hosts(pool, place);
  if (pool.engine == "kubernetes") return kubernetes_jobs(pool, place);
  if (pool.engine == "ray") return ray_actors(pool, place);
  if (pool.engine == "pbs") return pbs(pool, place);
  if (pool.engine == "lsf") return lsf(pool, place);
  if (pool.engine == "grid_engine") return grid_engine(pool, place);
  if (pool.engine == "htcondor") return htcondor(pool, place);
  if (pool.engine == "flux") return flux(pool, place);
  EngineWords engine;
  engine.start = pool.start;
  append(engine.start, pool.submit);
  engine.list = pool.list;
  engine.stop = pool.stop;
  const bool leaves_out = std::ranges::any_of(
      engine.start, [](const auto& word) { return word.find("exclude}") != word.npos; });
  if (leaves_out) engine.exclusion = with_commas;
  return engine;
}

}  // namespace

EngineWords engine_words(const PoolOptions& pool, const EnginePlace& place) {
  EngineWords engine = words_of_engine(pool, place);
  if (!pool.folder.empty()) add_folder(engine);
  return engine;
}

std::vector<std::string> started_apart(const std::vector<std::string>& program) {
  Words words = {"sh", "-c", R"(log=$1; shift; exec setsid -f "$@" >>"$log" 2>&1 </dev/null)", "sh",
                 "${log}"};
  append(words, program);
  return words;
}

std::string id_of(IdForm form, std::string_view output) {
  output = trimmed(output);
  if (form == IdForm::kNone || output.empty()) return {};
  if (form == IdForm::kNumber) {
    const std::size_t begin = output.find_first_of("0123456789");
    if (begin == std::string_view::npos) return {};
    return std::string(output.substr(
        begin, std::min(output.find_first_not_of("0123456789", begin), output.size()) - begin));
  }
  const std::size_t space = output.find_last_of(" \t\n");
  std::string_view word = space == std::string_view::npos ? output : output.substr(space + 1);
  return std::string(word.substr(0, word.find(';')));  // "7;cluster"
}

std::vector<ListedAllocation> listed_in(ListForm form, std::string_view output,
                                        std::string_view prefix) {
  Listing listing(prefix);
  switch (form) {
    case ListForm::kLines:
      read_lines(output, listing);
      break;
    case ListForm::kPbs:
      read_pbs(output, listing);
      break;
    case ListForm::kGridEngine:
      read_grid_engine(output, listing);
      break;
    case ListForm::kHtcondor:
      read_htcondor(output, listing);
      break;
    case ListForm::kProcesses:
      read_processes(output, listing);
      break;
    case ListForm::kKubernetes:
      return listed_by_kubernetes(output, prefix);
  }
  return listing.take();
}

std::optional<AllocationState> state_of_word(std::string_view word) {
  using enum AllocationState;
  // Slurm; PBS and Grid Engine; LSF; HTCondor; Flux.
  static const std::map<AllocationState, std::vector<std::string_view>> kWords = {
      {kQueued,
       {"PENDING",
        "CONFIGURING",
        "REQUEUED",
        "REQUEUE_FED",
        "REQUEUE_HOLD",
        "RESV_DEL_HOLD",
        "SPECIAL_EXIT",
        "POWER_UP_NODE",
        "EXPEDITING",
        "queued",
        "Q",
        "H",
        "W",
        "T",
        "qw",
        "hqw",
        "hRwq",
        "Eqw",
        "t",
        "PEND",
        "PSUSP",
        "WAIT",
        "PROV",
        "1",
        "5",
        "Idle",
        "Held",
        "DEPEND",
        "PRIORITY",
        "SCHED"}},
      // UNKWN: LSF does not hear of the job's host any more. Its agent may be heard all the same.
      {kRunning, {"RUNNING",   "COMPLETING", "STAGE_OUT", "SUSPENDED", "STOPPED",
                  "SIGNALING", "RESIZING",   "running",   "R",         "B",
                  "E",         "S",          "U",         "r",         "s",
                  "dr",        "RUN",        "SSUSP",     "USUSP",     "UNKWN",
                  "2",         "6",          "7",         "Running",   "Transferring Output",
                  "Suspended", "CLEANUP"}},
      {kEnded,
       {"COMPLETED",
        "FAILED",
        "TIMEOUT",
        "CANCELLED",
        "PREEMPTED",
        "NODE_FAIL",
        "BOOT_FAIL",
        "LAUNCH_FAILED",
        "RECONFIG_FAIL",
        "DEADLINE",
        "OUT_OF_MEMORY",
        "REVOKED",
        "ended",
        "C",
        "F",
        "X",
        "DONE",
        "EXIT",
        "ZOMBI",
        "3",
        "4",
        "Removed",
        "Completed",
        "INACTIVE"}}};
  for (const auto& [state, words] : kWords) {
    if (std::ranges::find(words, word) != words.end()) return state;
  }
  return std::nullopt;
}

int tunnel_port_of(int driver_port) {
  constexpr int kFirst = 20000;
  constexpr int kCount = 40000;
  return kFirst + (driver_port + kCount / 2 - kFirst) % kCount;
}

}  // namespace tune
