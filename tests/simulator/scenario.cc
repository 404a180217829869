#include "simulator/scenario.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

#include <fmt/format.h>

#include "core/random.h"
#include "simulator/connection.h"
#include "simulator/simulated_schedulers.h"
#include "simulator/simulated_searcher.h"
#include "tune/drive/snapshot_parts.h"
#include "tune/search/model_searcher.h"

namespace tune::simulator {

using std::chrono::microseconds;
using std::chrono::milliseconds;

namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed, "scenario", 0) {}

  bool chance(double probability) { return random_.uniform() < probability; }
  int between(int low, int high) {  // both included
    return low >= high ? low : static_cast<int>(random_.integer(low, std::int64_t{high} + 1));
  }
  // The same weight for each order of magnitude.
  Time logarithmic(Time low, Time high) {
    const double ratio = static_cast<double>(high.count()) / static_cast<double>(low.count());
    return Time(static_cast<std::int64_t>(static_cast<double>(low.count()) *
                                          std::pow(ratio, random_.uniform())));
  }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[between(0, static_cast<int>(values.size()) - 1)];
  }
  std::uint32_t rate(double often, std::initializer_list<std::uint32_t> rates) {
    return chance(often) ? one_of(rates) : 0;
  }

 private:
  RandomStream random_;
};

NodeResources draw_node(Draw& draw) {
  NodeResources node;
  node.cpu_units = draw.between(1, 8) * kUnit;
  node.memory_bytes = draw.between(2, 16) * kGiB;
  const int gpus = draw.one_of({0, 0, 1, 2, 4});
  for (int gpu = 0; gpu < gpus; ++gpu) node.gpus.push_back({std::to_string(gpu), "GPU", 0});
  return node;
}

// Every node can hold it, so that the remaining nodes can always finish the experiment.
ResourceRequest draw_request(Draw& draw, const std::vector<NodeResources>& nodes) {
  std::int64_t cpus = 64;
  int gpus = 64;
  std::int64_t memory = 64 * kGiB;
  for (const NodeResources& node : nodes) {
    cpus = std::min(cpus, node.cpu_units / kUnit);
    memory = std::min(memory, node.memory_bytes);
    gpus = std::min(gpus, static_cast<int>(node.gpus.size()));
  }
  Resources wanted;
  wanted.ranks =
      draw.chance(0.7) ? 1 : draw.between(1, static_cast<int>(std::min<std::int64_t>(cpus, 3)));
  wanted.cpu = draw.chance(0.5) ? wanted.ranks : draw.between(1, static_cast<int>(cpus));
  wanted.cpu = std::max<double>(*wanted.cpu, wanted.ranks);
  if (gpus > 0 && draw.chance(0.6)) {
    const bool shares = gpus < wanted.ranks || draw.chance(0.5);
    wanted.gpu = shares ? wanted.ranks * draw.one_of({0.25, 0.3333, 0.5}) : wanted.ranks;
    if (wanted.gpu / wanted.ranks * std::max(1, wanted.ranks) > gpus) wanted.gpu = 0;
  }
  if (draw.chance(0.4)) wanted.memory = MemorySize(memory / draw.between(1, 4));
  return to_request(wanted);
}

void draw_cluster(Draw& draw, const Limits& limits, Scenario& scenario) {
  const int agents =
      draw.chance(0.02) ? draw.between(1, 5 * limits.agents) : draw.between(1, limits.agents);
  const NodeResources same = draw_node(draw);
  const bool mixed = draw.chance(0.5);
  for (int i = 0; i < agents; ++i) scenario.nodes.push_back(mixed ? draw_node(draw) : same);
  scenario.request = draw_request(draw, scenario.nodes);
  scenario.credit_scale = draw.chance(0.15) ? 4096 : 1;
}

void draw_sweep(Draw& draw, const Limits& limits, Scenario& scenario) {
  scenario.judge = draw.one_of({Judge::kFifo, Judge::kAsha, Judge::kAsha, Judge::kPausing});
  scenario.asha.max_t = scenario.iterations = draw.between(2, limits.iterations);
  scenario.asha.grace_period = draw.between(1, 2);
  scenario.asha.reduction_factor = draw.one_of({2.0, 3.0, 4.0});
  scenario.asha.brackets = draw.between(1, 3);
  scenario.asha.rule = draw.one_of({AshaRule::kRay, AshaRule::kTop});
  scenario.asha.stop_last_trials = draw.chance(0.7);
  if (draw.chance(0.3)) scenario.iterations += 2;
  scenario.pause_every = draw.between(1, 4);
  scenario.resumed_first = draw.chance(0.5);
  const int trials = draw.between(2, limits.trials);
  scenario.grid_cells = draw.one_of({1, 1, 2, 3});
  scenario.num_samples = std::max(1, trials / scenario.grid_cells);
  scenario.some_end_early = draw.chance(0.3);
  scenario.some_miss_metric = draw.chance(0.15);
  scenario.can_save = scenario.judge == Judge::kPausing || draw.chance(0.85);
  scenario.checkpoint.frequency =
      scenario.can_save ? static_cast<std::uint32_t>(draw.one_of({0, 1, 1, 2, 3, 5})) : 0;
  scenario.checkpoint.at_end = draw.chance(0.7);
  scenario.checkpoint.keep = static_cast<std::uint32_t>(draw.between(1, 3));
  scenario.max_failures = static_cast<std::uint32_t>(draw.one_of({0, 1, 3}));
  scenario.max_concurrent_trials = static_cast<std::uint32_t>(draw.one_of({0, 0, 0, 1, 2}));
  scenario.fail_fast = draw.chance(0.08);
  scenario.hang_timeout = std::chrono::seconds(draw.between(1, 20));
  scenario.step = draw.logarithmic(microseconds(200), milliseconds(50));
  if (draw.chance(0.12)) {
    scenario.max_trial_time =
        scenario.step * draw.between(1, static_cast<int>(scenario.iterations));
  }
  scenario.network_delay = draw.logarithmic(microseconds(20), milliseconds(50));
  scenario.store_delay = draw.logarithmic(milliseconds(1), std::chrono::seconds(3));
}

// The time to finish if nothing goes wrong, by a rough guess.
Time guess_length(const Scenario& scenario) {
  std::int64_t slots = 0;
  for (const NodeResources& node : scenario.nodes) {
    const ResourceRequest& request = scenario.request;
    std::int64_t fitting = node.cpu_units / request.cpu_units;
    if (request.memory_bytes > 0)
      fitting = std::min(fitting, node.memory_bytes / request.memory_bytes);
    slots += std::max<std::int64_t>(1, fitting);
  }
  const std::int64_t steps = static_cast<std::int64_t>(scenario.iterations) * scenario.num_samples *
                             scenario.grid_cells / slots;
  return milliseconds(8) + (scenario.step + scenario.network_delay / 2) * (steps + 3);
}

void draw_rates(Draw& draw, Rates& rates) {
  rates.attempt_fails = draw.rate(0.5, {50'000, 150'000, 400'000});
  rates.term_ignored = draw.rate(0.2, {100'000, 500'000});
  rates.frame_doubled = draw.rate(0.3, {20'000, 200'000});
  rates.frame_slow = draw.rate(0.3, {5'000, 50'000, 200'000});
  rates.append_doubted = draw.rate(0.3, {50'000});
  rates.store_slow = draw.rate(0.2, {5'000, 50'000, 300'000});
  rates.snapshot = draw.rate(0.5, {10'000, 100'000, 500'000});
  rates.promotion_fails = draw.rate(0.1, {20'000, 100'000});
  rates.fork_fails = draw.rate(0.1, {20'000, 100'000});
  rates.agent_dies = draw.rate(0.2, {3'000, 15'000});
  rates.agent_silent = draw.rate(0.1, {20'000, 200'000});
}

void draw_accidents(Draw& draw, Time length, Scenario& scenario) {
  using Kind = AccidentPlan::Kind;
  if (draw.chance(0.1))
    scenario.time_budget = draw.logarithmic(length / 4 + microseconds(1), length);
  const int accidents = draw.chance(0.35) ? 0 : draw.between(1, 8);
  for (int i = 0; i < accidents; ++i) {
    const Kind kind =
        draw.one_of({Kind::kAgentDies, Kind::kAgentDies, Kind::kAgentHangs, Kind::kAgentToldToEnd,
                     Kind::kZygoteDies, Kind::kZygoteHangs, Kind::kWorkerDies, Kind::kWorkerDies,
                     Kind::kConnectionLost, Kind::kConnectionLost, Kind::kAgentJoins});
    scenario.accidents.push_back({kind, draw.logarithmic(milliseconds(1), length * 2)});
  }
}

// Only where there are other places. Drawn last, so that all other values are as without it.
void draw_bad_place(Draw& draw, Time length, Scenario& scenario) {
  scenario.probe_after = draw.logarithmic(milliseconds(1), length);
  if (!draw.chance(0.25)) return;
  BadPlace bad;
  bad.node = static_cast<std::size_t>(draw.between(0, static_cast<int>(scenario.nodes.size()) - 1));
  const int gpus = static_cast<int>(scenario.nodes[bad.node].gpus.size());
  if (scenario.request.gpu_units > 0) {
    bad.gpu = static_cast<std::uint32_t>(draw.between(0, gpus - 1));
    if (gpus < 2 && scenario.nodes.size() < 2) return;
  } else if (scenario.nodes.size() < 2) {
    return;
  }
  scenario.bad_place = bad;
  if (!draw.chance(0.6)) return;
  // Some trials still have to come when the place is found to work again.
  scenario.bad_place->mended_at = draw.logarithmic(length / 2 + microseconds(1), 2 * length);
  scenario.probe_after = draw.logarithmic(milliseconds(1), length / 8 + milliseconds(2));
  scenario.num_samples = std::max(scenario.num_samples, draw.between(8, 20));
}

// Replaces some ASHA by stopping. A scheduler that pauses trials needs a trainable that can save.
// Drawn last, too.
void draw_kind_of_scheduler(Draw& draw, Scenario& scenario) {
  if (scenario.judge != Judge::kAsha) return;
  scenario.asha.min_rung_size = draw.one_of({1, 1, 2, 4});
  scenario.median.grace_period = draw.between(1, 3);
  scenario.median.min_samples_required = draw.between(1, 3);
  scenario.median.rule = draw.one_of({MedianRule::kMean, MedianRule::kBest});
  scenario.hyperband.max_t = scenario.asha.max_t;
  scenario.hyperband.grace_period = scenario.asha.grace_period;
  scenario.hyperband.reduction_factor = scenario.asha.reduction_factor;
  scenario.hyperband.stop_last_trials = scenario.asha.stop_last_trials;
  const int kind = draw.between(0, scenario.can_save ? 6 : 3);
  if (kind == 3) scenario.judge = Judge::kMedian;
  if (kind == 4 || kind == 5) scenario.asha.type = AshaType::kPromote;
  if (kind == 6) scenario.judge = Judge::kHyperBand;
}

// In place of grid and random search. Drawn last, too.
void draw_searcher(Draw& draw, Scenario& scenario) {
  scenario.asks = draw.chance(0.35);
  scenario.proposal_time = draw.logarithmic(microseconds(100), milliseconds(100));
  if (!scenario.asks) return;
  scenario.num_samples *= scenario.grid_cells;
  scenario.grid_cells = 1;
}

// Replaces some FIFO and some of those that pause. Drawn last, too. A donor is lost now and then
// while trials would restart from its checkpoint.
void draw_replacing(Draw& draw, Scenario& scenario) {
  const bool is_free = scenario.judge == Judge::kFifo || scenario.judge == Judge::kPausing;
  if (!is_free || !scenario.can_save || !draw.chance(0.4)) return;
  scenario.judge = Judge::kPbt;
  scenario.pbt.hyperparam_mutations = {{"x", uniform(0, 1)}};
  scenario.pbt.perturbation_interval = draw.between(1, 3);
  scenario.pbt.burn_in_period = draw.one_of({0, 0, 2});
  scenario.pbt.quantile_fraction = draw.one_of({0.25, 0.5});
  scenario.pbt.synch = draw.chance(0.3);
}

// Drawn last, too. There a hanging agent is one that is lost, and heard again.
void draw_joining(Draw& draw, Time length, Scenario& scenario) {
  using Kind = AccidentPlan::Kind;
  scenario.joined = draw.chance(0.3);
  scenario.lease = draw.logarithmic(milliseconds(1500), std::chrono::seconds(10));
  if (!scenario.joined) return;
  // A frame that takes longer than the lease loses its agent: a few do, or nothing would ever be
  // finished.
  if (Connection::kSlower * scenario.network_delay > scenario.lease / 2) {
    scenario.rates.frame_slow = std::min(scenario.rates.frame_slow, 5'000u);
  }
  const int accidents = draw.between(0, 4);
  for (int i = 0; i < accidents; ++i) {
    const Kind kind = draw.one_of({Kind::kNodeDrains, Kind::kNodeDrains, Kind::kAgentCutOff});
    scenario.accidents.push_back({kind, draw.logarithmic(milliseconds(1), length * 2)});
  }
  // They outlive their drivers, mostly.
  for (DriverLife& life : scenario.lives) {
    if (draw.chance(0.7)) life.agents_die_at_once = false;
  }
  while (scenario.lives.size() < 4 && draw.chance(0.6)) {
    DriverLife& life = scenario.lives.emplace_back();
    life.end = DriverLife::End::kKilled;
    life.end_at = draw.between(0, draw.one_of({60, 300}));
  }
}

// Groups that most nodes hold a part of only. Drawn last, too.
void draw_groups(Draw& draw, Time length, Scenario& scenario) {
  using Kind = AccidentPlan::Kind;
  if (!scenario.joined || !draw.chance(0.45)) return;
  scenario.nodes_of_group = draw.one_of({2, 2, 2, 3});
  const int local = draw.between(1, 2);
  const bool has_gpus = draw.chance(0.4);
  while (std::ssize(scenario.nodes) < scenario.nodes_of_group) {
    scenario.nodes.push_back(scenario.nodes.front());
  }
  const bool has_large = draw.chance(0.3);
  for (NodeResources& node : scenario.nodes) {
    const bool is_large = has_large && &node == &scenario.nodes.back() &&
                          std::ssize(scenario.nodes) > scenario.nodes_of_group;
    const int holds = is_large ? local * scenario.nodes_of_group : local;
    // No room for another rank, so that it holds no larger part.
    node.cpu_units = holds * kUnit + (is_large ? 0 : draw.between(0, 1) * kUnit / 2);
    node.gpus.clear();
    for (int gpu = 0; has_gpus && gpu < holds; ++gpu) {
      node.gpus.push_back({std::to_string(gpu), "GPU", 0});
    }
  }
  Resources wanted;
  wanted.ranks = local * scenario.nodes_of_group;
  wanted.cpu = wanted.ranks;
  if (has_gpus) wanted.gpu = wanted.ranks;
  scenario.request = to_request(wanted);
  scenario.bad_place.reset();
  // A node that is lost takes a whole group with it: a few are, or nothing would ever be finished.
  scenario.rates.agent_dies = scenario.rates.agent_silent = 0;
  scenario.rates.frame_slow = std::min(scenario.rates.frame_slow, 5'000u);
  scenario.num_samples = std::min(scenario.num_samples, 8);
  const int accidents = draw.between(0, 6);
  for (int i = 0; i < accidents; ++i) {
    const Kind kind =
        draw.one_of({Kind::kLinkBreaks, Kind::kAgentCutOff, Kind::kAgentDies, Kind::kAgentHangs});
    scenario.accidents.push_back({kind, draw.logarithmic(milliseconds(1), length * 2), true});
  }
}

// For schedulers that take several objectives. Drawn last, too.
void draw_objectives(Draw& draw, Scenario& scenario) {
  const bool is_drawn = draw.chance(0.25);
  const bool takes_one =
      scenario.judge == Judge::kPbt || scenario.judge == Judge::kPausing ||
      (scenario.judge == Judge::kMedian && scenario.median.rule == MedianRule::kBest);
  scenario.several = is_drawn && !takes_one;
}

void draw_lives(Draw& draw, Scenario& scenario) {
  using End = DriverLife::End;
  const int lives = draw.chance(0.35) ? 0 : draw.between(1, 4);
  for (int i = 0; i < lives; ++i) {
    DriverLife& life = scenario.lives.emplace_back();
    life.end = draw.one_of({End::kNone, End::kKilled, End::kKilled, End::kKilled, End::kStalled,
                            End::kStoreLost, End::kStoreLost});
    life.end_at = draw.between(0, draw.one_of({8, 60, 300}));
    life.lost_in =
        draw.one_of({StoreCall::kAny, StoreCall::kAny, StoreCall::kTrim, StoreCall::kRead});
    const bool loses_read = life.end == End::kStoreLost && life.lost_in == StoreCall::kRead;
    if (loses_read) life.end_at = 0;  // the driver reads when it starts
    if (draw.chance(0.25)) life.interrupt_at = draw.between(1, draw.one_of({8, 60, 300}));
    life.agents_are_told_to_end = draw.chance(0.5);
    life.agents_die_at_once = draw.chance(0.4);
    if (draw.chance(0.15)) life.failing_zygote = draw.between(1, draw.one_of({2, 6}));
    life.zygote_restarts_failing = draw.one_of({0, 0, 0, 1, 3, 7, 20});
    life.retry_errored = draw.chance(0.3);
    life.more_samples = draw.chance(0.1) ? draw.between(1, 2) : 0;
  }
}

void draw_patience(Draw& draw, Scenario& scenario) {
  scenario.store_patience =
      draw.one_of({std::chrono::seconds(1), std::chrono::seconds(5), std::chrono::seconds(30)});
  scenario.rates.store_silent = draw.rate(0.2, {2'000, 10'000, 50'000});
  scenario.store_silence = draw.logarithmic(microseconds(100), scenario.store_patience / 4);
  for (DriverLife& life : scenario.lives) {
    if (draw.chance(0.3)) continue;
    life.lost_for = draw.logarithmic(milliseconds(1), 2 * scenario.store_patience);
  }
}

// Users come in some sweeps, some of them often.
void draw_orders(Draw& draw, Time length, Scenario& scenario) {
  if (!draw.chance(0.3)) return;
  const int orders = draw.chance(0.3) ? draw.between(6, 20) : draw.between(1, 5);
  for (int i = 0; i < orders; ++i) {
    const OrderKind kind =
        draw.one_of({OrderKind::kStop, OrderKind::kPause, OrderKind::kPause, OrderKind::kPause,
                     OrderKind::kUnpause, OrderKind::kRetry, OrderKind::kRetry, OrderKind::kAdd,
                     OrderKind::kNote, OrderKind::kNumSamples});
    scenario.orders.push_back({kind, draw.logarithmic(milliseconds(1), length * 2)});
  }
}

void draw_open_rungs(Draw& draw, Scenario& scenario) {
  const bool opens = draw.chance(0.5);
  const int after = draw.between(1, 4);
  if (opens && scenario.asha.type == AshaType::kPromote) scenario.asha.open_after = after;
}

}  // namespace

const DriverLife& Scenario::life(std::size_t number) const {
  static const DriverLife undisturbed;
  return number < lives.size() ? lives[number] : undisturbed;
}

Scenario draw_scenario(std::uint64_t seed, const Limits& limits) {
  Draw draw(seed);
  Scenario scenario;
  scenario.seed = seed;
  draw_cluster(draw, limits, scenario);
  draw_sweep(draw, limits, scenario);
  draw_rates(draw, scenario.rates);
  draw_accidents(draw, guess_length(scenario), scenario);
  draw_lives(draw, scenario);
  draw_bad_place(draw, guess_length(scenario), scenario);
  scenario.rates.store_goes_back = draw.rate(0.2, {5'000, 20'000, 100'000});
  scenario.rates.files_slow = draw.rate(0.2, {50'000, 300'000});
  scenario.rates.no_room = draw.rate(0.2, {5'000, 50'000});
  scenario.file_delay = draw.logarithmic(milliseconds(1), std::chrono::seconds(1));
  scenario.snapshot_part =
      draw.one_of({SnapshotParts::kPartBytes, std::size_t{300}, std::size_t{3000}});
  draw_patience(draw, scenario);
  draw_kind_of_scheduler(draw, scenario);
  draw_searcher(draw, scenario);
  draw_replacing(draw, scenario);
  draw_joining(draw, guess_length(scenario), scenario);
  draw_objectives(draw, scenario);
  draw_orders(draw, guess_length(scenario), scenario);
  scenario.relays = draw.chance(0.5) && scenario.joined;
  draw_groups(draw, guess_length(scenario), scenario);
  scenario.objects = draw.chance(0.4) && scenario.relays;
  scenario.first_sees_folder = scenario.relays && draw.chance(0.4);
  scenario.owns_first = draw.chance(0.4) && scenario.joined && !scenario.relays;
  draw_open_rungs(draw, scenario);
  return scenario;
}

std::string Scenario::describe() const {
  const char* judges[] = {"fifo", "asha", "pausing", "median", "hyperband", "pbt"};
  std::string text = fmt::format(
      "{} nodes, {} trials of {} iterations, {}, {} ranks, {} accidents, {} disturbed drivers, "
      "max_failures {}, checkpoints every {} keep {}",
      nodes.size(), num_samples * grid_cells, iterations, judges[static_cast<int>(judge)],
      request.ranks, accidents.size(), lives.size(), max_failures, checkpoint.frequency,
      checkpoint.keep);
  const auto tell = [&text](bool is_so, const char* what) {
    if (is_so) text += what;
  };
  tell(judge == Judge::kAsha && asha.type == AshaType::kPromote, " by promotion");
  tell(several, ", two objectives and a constraint");
  tell(asks, ", a searcher that takes time");
  tell(judge == Judge::kPbt && pbt.synch, " with waiting");
  tell(request.memory_bytes > 0, ", memory is counted");
  tell(joined, ", agents that joined");
  tell(owns_first, " but the driver's own");
  tell(relays, ", without the experiment's folder");
  tell(first_sees_folder, " but on one node");
  tell(objects, ", checkpoints in an object store");
  tell(nodes_of_group > 0, ", groups over several nodes");
  tell(time_budget > Duration{}, ", time budget");
  tell(max_trial_time > Duration{}, ", time limit of a trial");
  tell(rates.store_slow > 0, ", slow store");
  tell(bad_place.has_value(), ", a bad place");
  tell(!orders.empty(), ", orders of users");
  tell(rates.store_goes_back > 0, ", a store that goes back in time");
  tell(rates.store_silent > 0, ", a store that falls silent");
  tell(rates.agent_silent > 0, ", agents that begin silent");
  tell(std::ranges::any_of(lives, [](const DriverLife& life) { return life.zygotes_fail(); }),
       ", zygotes that cannot load");
  return text;
}

SearchSpace search_space(const Scenario& scenario) {
  if (scenario.asks) return {{"x", uniform(0, 1)}, {"kind", choice({"a", "b", "c"})}};
  std::vector<Value> cells;
  for (int i = 0; i < scenario.grid_cells; ++i) cells.emplace_back(i);
  return {{"x", uniform(0, 1)}, {"cell", grid_search(cells)}};
}

ControllerSetup controller_setup(const Scenario& scenario) {
  ControllerSetup setup;
  setup.experiment.experiment_id = "0a1b2";
  setup.experiment.experiment_directory = "/results/simulated";
  setup.experiment.trainable = kTrainable;
  if (scenario.objects) setup.experiment.objects.address = "s3://simulated";
  setup.experiment.stop = {{"training_iteration", static_cast<double>(scenario.iterations)}};
  setup.experiment.checkpoint = scenario.checkpoint;
  setup.experiment.max_trial_time = scenario.max_trial_time;
  setup.experiment.hang_timeout = scenario.hang_timeout;
  setup.experiment.group_timeout = scenario.hang_timeout / 4;
  setup.experiment.alone_timeout = scenario.hang_timeout * 3 / 4;
  setup.experiment.joined.patience = kPatience * scenario.lease;
  setup.request = scenario.request;
  setup.objective = {kMetric, Mode::kMax, scenario.seed};
  if (scenario.several) {
    setup.objective.metric.clear();
    setup.objective.goals = {{kMetric}, {kSecondMetric, Mode::kMin}};
    setup.objective.constraints = {{.metric = kSecondMetric, .max = 0.6}};
  }
  setup.seed = scenario.seed;
  setup.fail_fast = scenario.fail_fast;
  setup.probe_after = scenario.probe_after;

  switch (scenario.judge) {
    case Judge::kFifo:
      setup.scheduler = fifo().make();
      break;
    case Judge::kAsha:
      setup.scheduler = asha(scenario.asha).make();
      break;
    case Judge::kMedian:
      setup.scheduler = median_stopping(scenario.median).make();
      break;
    case Judge::kHyperBand:
      setup.scheduler = hyperband(scenario.hyperband).make();
      break;
    case Judge::kPbt:
      setup.scheduler = pbt(scenario.pbt).make();
      break;
    case Judge::kPausing:
      setup.scheduler =
          std::make_unique<PausingScheduler>(scenario.pause_every, scenario.resumed_first);
      break;
  }
  setup.scheduler = std::make_unique<WatchedScheduler>(
      std::move(setup.scheduler), scenario.may_be_cut_short() || !scenario.orders.empty());
  setup.scheduler->configure(setup.objective);

  if (scenario.asks) {
    setup.searcher =
        std::make_unique<ModelSearcher>("simulated", std::make_shared<const SimulatedProposer>());
  } else {
    setup.searcher = basic_variant().make();
  }
  setup.space = {search_space(scenario), scenario.num_samples, {}, setup.objective};
  setup.searcher->configure(setup.space);
  return setup;
}

}  // namespace tune::simulator
