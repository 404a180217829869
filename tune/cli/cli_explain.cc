// tune explain.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/json.h"
#include "core/strings.h"
#include "tune/cli/cli_commands.h"
#include "tune/cli/cli_insight.h"
#include "tune/results/explanation.h"
#include "tune/show/status_block.h"

namespace tune {

namespace {

using Source = Explanation::Source;

constexpr std::size_t kMostBeside = 12;

// The scale of a mean (tune/search/gp/targets.h, several.h).
const char* scale_of(const Explanation& found) {
  if (found.goals.size() > 1) {
    return "of all objectives by weights drawn for this proposal: 0 is the best of each";
  }
  if (found.is_constrained) {
    return "0 is the best trial that keeps the constraints, or of all while none does; a standard "
           "deviation of all is 1.05";
  }
  return "0 is the middle trial, a standard deviation of all is 1";
}

// The model's expectation, in words.
std::string expectation(const Explanation& found) {
  const Explanation::Proposed& one = *found.proposed;
  if (!one.acquisition) return {};
  if (one.by == "tpe") {
    return fmt::format("exp({:.4g}) times as likely among good trials as among the others",
                       *one.acquisition);
  }
  const char* chance = "the logarithm of the chance that the constraints are kept";
  if (!one.mean || !one.standard_deviation) {
    if (!found.is_constrained) return fmt::format("acquisition {:.4g}", *one.acquisition);
    return fmt::format("acquisition {:.4g} ({}: values of the metric say nothing yet)",
                       *one.acquisition, chance);
  }
  const std::string from =
      one.margin ? fmt::format(", counted from {:.4g} above the best", *one.margin) : "";
  const std::string bounded =
      found.is_constrained
          ? fmt::format("{} and {}, added; the latter alone while no trial keeps them",
                        one.margin ? "," : "", chance)
          : "";
  return fmt::format(
      "mean {:.4g}, sd {:.4g}, acquisition {:.4g} ({}, larger is better; acquisition: the "
      "logarithm of the expected improvement{}{})",
      *one.mean, *one.standard_deviation, *one.acquisition, scale_of(found), from, bounded);
}

// By what its model tells: an expectation, the trials that it was made of, or neither.
std::string how_by_model(const Explanation& found) {
  const Explanation::Proposed& one = *found.proposed;
  if (one.acquisition && one.by == found.searcher) {
    return fmt::format("the best by the model of {}", one.by);
  }
  if (one.acquisition) {
    return fmt::format("the best by the model of {}, which {} asked", one.by, found.searcher);
  }
  const bool has_parents = std::ranges::any_of(found.neighbours, &Explanation::Neighbour::named);
  if (has_parents) return fmt::format("a child, by {}, of the two named below", one.by);
  return fmt::format("drawn by {} from what it has learnt", one.by);
}

std::string how(const Explanation& found) {
  const std::string& searcher = found.searcher;
  switch (found.source) {
    case Source::kRandom:
      return fmt::format("drawn at random by {}, which learns nothing from results", searcher);
    case Source::kGrid:
      return fmt::format(
          "a cell of the grid, {}; what is not a grid_search was drawn at random: "
          "{} learns nothing from results",
          join(found.grid, ", "), searcher);
    case Source::kGiven:
      return fmt::format("given: points_to_evaluate/{}", found.given);
    case Source::kUntold:
      return fmt::format("by the searcher {}, which tells nothing of it",
                         searcher.empty() ? "of the program" : searcher);
    case Source::kAdded:
      return fmt::format("added by {} while the sweep ran{}{}; what was left out was drawn",
                         found.orders.front().user, found.orders.front().text.empty() ? "" : ": ",
                         found.orders.front().text);
    case Source::kProposed:
      break;
  }
  if (!found.learns) {
    return fmt::format("the next of {}'s sequence, in which results play no part", searcher);
  }
  const std::string& origin = found.proposed->origin;
  if (origin == "model") return how_by_model(found);
  if (origin == "start_up") {
    return fmt::format("drawn by {}: too few results were known for a model", searcher);
  }
  if (origin == "random") {
    return fmt::format("drawn by {} on purpose, as a share of its proposals is", searcher);
  }
  return fmt::format("drawn by {}, which had no model", searcher);
}

void print_proposed(const Explanation& found) {
  if (found.proposed_config != found.config) {
    fmt::print("it began as {}\n", found.proposed_config.dump());
  }
  fmt::print("proposed: {}\n", how(found));
  if (found.proposed) {
    const Explanation::Proposed& one = *found.proposed;
    if (!one.note.empty()) fmt::print("  {}\n", one.note);
    if (found.learns) {
      fmt::print("  known then: {} results; trials without one yet: {}\n", one.results_known,
                 one.pending_known);
    }
    const std::string expected = expectation(found);
    if (!expected.empty()) fmt::print("  expected: {}\n", expected);
  }
  std::vector<std::string> beside = found.beside;
  if (beside.empty()) return;
  const std::size_t more = beside.size() - std::min(beside.size(), kMostBeside);
  beside.resize(beside.size() - more);
  fmt::print("  ran then: {}{}\n", join(beside, ", "),
             more > 0 ? fmt::format(" and {} more", more) : "");
}

std::string text_of(const std::optional<ValueAt>& value) {
  if (!value) return "-";
  if (value->numbers.empty()) return fmt::format("{:.6g} at {}", value->value, value->iteration);
  return fmt::format("({:.6g}) at {}", fmt::join(value->numbers, ", "), value->iteration);
}

void print_neighbours(const Explanation& found) {
  if (found.neighbours.empty()) return;
  std::string metric = found.goals.empty() ? "value" : join(found.goals, ", ");
  if (found.goals.size() > 1) metric = "(" + metric + ")";
  std::size_t width = 12;
  for (const Explanation::Neighbour& one : found.neighbours) {
    width = std::max(width, one.trial.size());
  }
  fmt::print("nearest trials before it\n  {:<{}}  {:>8}  {:>18}  {:>18}\n", "trial", width,
             "distance", metric + " then", metric + " now");
  for (const Explanation::Neighbour& one : found.neighbours) {
    fmt::print("  {:<{}}  {:>8.3f}  {:>18}  {:>18}{}\n", one.trial, width, one.distance,
               text_of(one.then), text_of(one.newest), one.named ? "  named by the model" : "");
  }
}

std::string words_of(const std::string& verdict) {
  if (verdict == "go_on") return "goes on";
  if (verdict == "pause") return "pauses";
  if (verdict == "stop") return "is stopped";
  return verdict == "replace" ? "goes on from another trial's checkpoint" : verdict;
}

void print_standing(const Explanation& found) {
  if (!found.standing) return;
  fmt::print("by its last result\n");
  for (const std::string& line : lines_of(*found.standing)) fmt::print("  {}\n", line);
}

void print_steps(const Explanation& found) {
  if (found.steps.empty()) return;
  fmt::print("on its way\n");
  for (const Explanation::Step& step : found.steps) {
    std::string line = fmt::format("  iteration {}:", step.iteration);
    if (step.rung) {
      const Explanation::Step::Rung& rung = *step.rung;
      line +=
          fmt::format(" {}, rank {} of {}", rung.value ? fmt::format("{:.6g}", *rung.value) : "nan",
                      rung.rank, rung.of);
      if (rung.cut_off) line += fmt::format(", cut-off {:.6g}", *rung.cut_off);
      line += ":";
    }
    line += " " + words_of(step.verdict);
    if (!step.reason.empty()) line += fmt::format(" ({})", one_line(step.reason));
    fmt::print("{}\n", line);
  }
}

void print_orders(const Explanation& found) {
  if (found.orders.empty()) return;
  fmt::print("by users\n");
  for (const Explanation::Order& one : found.orders) {
    fmt::print("  iteration {}: {} by {}{}{}\n", one.iteration, one.order, one_line(one.user),
               one.text.empty() ? "" : ": ", one_line(one.text));
  }
}

}  // namespace

int explain_command(const ExplainArguments& arguments) {
  const std::string trial = find_trial(arguments.directory, arguments.trial).filename().string();
  const Explanation found = explain(Analysis::load(arguments.directory), trial);
  if (arguments.json) {
    fmt::print("{}\n", to_json(to_value(found)));
    return 0;
  }
  fmt::print("trial {}, {}: {}\n", found.trial, status_name(found.status), found.config.dump());
  print_proposed(found);
  print_neighbours(found);
  print_steps(found);
  print_orders(found);
  print_standing(found);
  fmt::print("{}\n", found.end);
  return 0;
}

}  // namespace tune
