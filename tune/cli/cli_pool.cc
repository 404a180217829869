#include "tune/cli/cli_pool.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "core/fitting.h"
#include "core/strings.h"
#include "tune/drive/pool.h"
#include "tune/results/ask_driver.h"
#include "tune/spec/pool_value.h"
#include "tune/spec/pool_words.h"

namespace tune {

namespace {

std::string line_of(const std::vector<std::string>& words, const PoolValues& values) {
  std::vector<std::string> quoted;
  for (const std::string& word : filled_pool_words(words, values)) {
    const bool is_program = word.find('\n') != std::string::npos;
    quoted.push_back(is_program ? "'...'" : shell_word(word));
  }
  return join(quoted, " ");
}

// A file that other programs can read; all else is a comment in it.
int print_manifest(const EngineWords& words, const PoolValues& values) {
  std::string manifest = words.manifest(values);
  if (!words.show.empty()) {
    constexpr std::chrono::seconds kPatience{40};
    manifest = output_of(filled_pool_words(words.show, values), kPatience, manifest);
  }
  std::string list = line_of(words.list, values);
  list.resize(std::min(list.size(), list.find(" -o ")));
  fmt::print("# {}; all are listed by {}\n{}", values.at("name"), list, manifest);
  return 0;
}

}  // namespace

int pool_command(const PoolArguments& arguments) {
  if (arguments.pause && arguments.resume) {
    throw Error(ErrorCode::kBadInput, "--pause and --resume: give one of the two");
  }
  if (!arguments.max && !arguments.pause && !arguments.resume) {
    throw Error(ErrorCode::kBadInput, "changing the pool: give --max N, --pause or --resume");
  }
  Value request{{"do", "pool"}, {"user", user_name()}};
  if (arguments.max) request.set("max", *arguments.max);
  if (arguments.pause || arguments.resume) request.set("paused", arguments.pause);
  fmt::print("{}\n", ask_driver(arguments.directory, request));
  return 0;
}

int print_pool(const ExperimentSpec& spec) {
  const PoolOptions& pool = spec.options.pool;
  if (!pool.is_given()) throw Error(ErrorCode::kBadInput, "--pool: the sweep has no pool");
  const CheckedEngine engine = checked_engine(spec);
  if (!engine.notice.empty()) fmt::print(stderr, "{}\n", engine.notice);
  const std::filesystem::path experiment =
      std::filesystem::absolute(spec.options.storage) / (spec.name.empty() ? "NAME" : spec.name);
  const PoolFiles files(spec, experiment);
  const int nodes = nodes_for(node_of(pool, spec.request), spec.request);
  if (nodes > 1) {
    const std::int64_t hosts = std::ssize(engine.words.hosts);
    const std::int64_t max = most_agents(pool, engine.words.hosts.size());
    const std::int64_t most = hosts > 0 ? std::min(hosts, max) : max;
    fmt::print("# each trial needs {} nodes: of at most {}, so many trials at the same time: {}\n",
               nodes, most, most / nodes);
  }
  PoolValues values = pool_values(spec, files);
  values["name"] = values.at("prefix") + "1";
  values["log"] = files.log(values.at("name"));
  values["id"] = "ID";
  values["host"] = engine.words.hosts.empty() ? "" : engine.words.hosts.front();
  if (engine.words.manifest) return print_manifest(engine.words, values);
  fmt::print("# {}, started as\n{}\n# listed as\n{}\n# stopped as\n{}\n# {}\n{}", values.at("name"),
             line_of(engine.words.start, values), line_of(engine.words.list, values),
             line_of(engine.words.stop, values), files.script.string(),
             agent_script(spec, files, agent_program(pool)));
  return 0;
}

}  // namespace tune
