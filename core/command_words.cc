#include "core/command_words.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/strings.h"

namespace tune {
namespace {

constexpr const char* kEnv = "/usr/bin/env";
constexpr const char* kInterpreter = "python3";

// Those that stand for any number of words.
enum class Arguments { kOptions, kPlain, kFlags };

const std::map<std::string, Arguments>& argument_kinds() {
  static const std::map<std::string, Arguments> kinds = {
      {"args", Arguments::kOptions},
      {"args_no_hyphens", Arguments::kPlain},
      {"args_no_boolean_flags", Arguments::kFlags}};
  return kinds;
}

const std::vector<std::string>& fact_names() {
  static const std::vector<std::string> names = {
      "args",     "args_no_hyphens", "args_no_boolean_flags", "args_json",
      "config_file", "trial_id",     "trial_dir",             "seed",
      "checkpoint",  "program",      "env",                   "interpreter"};
  return names;
}

bool is_fact(const std::string& name) {
  return std::ranges::find(fact_names(), name) != fact_names().end();
}

// ---- Words in pieces ----------------------------------------------------------------------------

struct Piece {
  bool is_placeholder = false;
  std::string text;  // the name, or what stands there
};
struct Pieces {
  std::vector<Piece> all;
  bool is_open = false;  // a "${" without its "}"
  bool is_alone() const { return all.size() == 1 && all[0].is_placeholder; }
};

Pieces pieces_of(const std::string& word) {
  Pieces pieces;
  std::string plain;
  const auto end_plain = [&] {
    if (!plain.empty()) pieces.all.push_back({false, std::exchange(plain, {})});
  };
  for (std::size_t i = 0; i < word.size();) {
    if (word.compare(i, 3, "$${") == 0) {
      plain += "${";
      i += 3;
    } else if (word.compare(i, 2, "${") == 0) {
      const std::size_t close = word.find('}', i);
      if (close == std::string::npos) {
        pieces.is_open = true;
        break;
      }
      end_plain();
      pieces.all.push_back({true, word.substr(i + 2, close - i - 2)});
      i = close + 1;
    } else {
      plain += word[i++];
    }
  }
  end_plain();
  return pieces;
}

// ---- Check --------------------------------------------------------------------------------------

bool is_parameter(const std::string& name, const std::vector<std::string>& parameters) {
  return std::ranges::any_of(parameters, [&](const std::string& path) {
    return path == name || path.starts_with(name + "/");
  });
}

std::string unknown(const std::string& name, const std::vector<std::string>& parameters) {
  std::vector<std::string> known = parameters;
  known.insert(known.end(), fact_names().begin(), fact_names().end());
  const std::string near = nearest(name, known);
  const std::string hint = near.empty() ? fmt::format("; there are: {}", join(known, ", "))
                                        : fmt::format(" (did you mean '{}'?)", near);
  return fmt::format("${{{}}} is neither a parameter of config nor known otherwise{}; a literal "
                     "${{ is written $${{",
                     name, hint);
}

// The fault of one placeholder; empty: none.
std::string why_wrong(const Pieces& pieces, const Piece& piece,
                      const std::vector<std::string>& parameters, bool has_program) {
  if (is_parameter(piece.text, parameters)) return {};
  if (!is_fact(piece.text)) return unknown(piece.text, parameters);
  if (argument_kinds().contains(piece.text) && !pieces.is_alone()) {
    return fmt::format("${{{}}} stands for several words: make it a word of its own", piece.text);
  }
  if (piece.text == "program" && !has_program) {
    return "${program} needs the key program: name the script, as in program: train.py";
  }
  return {};
}

// The first name in single braces, without a "$" before them, that a placeholder could have; empty:
// none.
std::string name_in_braces(const std::string& text, const std::vector<std::string>& parameters) {
  for (std::size_t open = text.find('{'); open != std::string::npos;
       open = text.find('{', open + 1)) {
    const std::size_t close = text.find('}', open);
    if (close == std::string::npos) break;
    if (open > 0 && text[open - 1] == '$') continue;
    std::string name = text.substr(open + 1, close - open - 1);
    if (is_parameter(name, parameters) || is_fact(name)) return name;
  }
  return {};
}

// ---- Values as words ----------------------------------------------------------------------------

std::string as_word(const Value& value) {
  return value.is_string() ? value.string() : to_json(value);
}

// As Python prints them, and so W&B's agent.
std::string as_argument(const Value& value) {
  if (value.type() == Value::Type::kBool) return value.boolean() ? "True" : "False";
  return value.is_null() ? "None" : as_word(value);
}

std::string with_dots(std::string path) {
  std::ranges::replace(path, '/', '.');
  return path;
}

void add_arguments(const Config& config, Arguments kind, std::vector<std::string>& filled) {
  for (const auto& [path, value] : config.leaves()) {
    const std::string name = with_dots(path);
    const bool is_flag = kind == Arguments::kFlags && value->type() == Value::Type::kBool;
    if (is_flag && value->boolean()) filled.push_back("--" + name);
    if (is_flag) continue;
    const char* hyphens = kind == Arguments::kPlain ? "" : "--";
    filled.push_back(fmt::format("{}{}={}", hyphens, name, as_argument(*value)));
  }
}

std::optional<std::string> fact(const std::string& name, const Config& config,
                                const WordFacts& facts) {
  if (name == "args_json") return to_json(config);
  if (name == "config_file") return facts.config_file;
  if (name == "trial_id") return facts.trial_id;
  if (name == "trial_dir") return facts.trial_directory;
  if (name == "seed") return std::to_string(facts.seed);
  if (name == "checkpoint") return facts.checkpoint;
  if (name == "program") return facts.program;
  if (name == "env") return kEnv;
  if (name == "interpreter") return kInterpreter;
  return std::nullopt;
}

[[noreturn]] void refuse(std::size_t word, const std::string& why) {
  throw Error(ErrorCode::kBadInput, fmt::format("command/{}: {}", word, why));
}

}  // namespace

std::vector<WordComplaint> check_words(const std::vector<std::string>& words,
                                       const std::vector<std::string>& parameters,
                                       bool has_program) {
  std::vector<WordComplaint> complaints;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Pieces pieces = pieces_of(words[i]);
    if (pieces.is_open) {
      complaints.push_back({i, fmt::format("'{}' has a ${{ without its }}: close it, or write $${{ "
                                           "for the two characters",
                                           words[i])});
    }
    if (words[i].find('\0') != std::string::npos) {
      complaints.push_back({i, "the word holds a zero byte"});
    }
    for (const Piece& piece : pieces.all) {
      if (!piece.is_placeholder) continue;
      std::string why = why_wrong(pieces, piece, parameters, has_program);
      if (!why.empty()) complaints.push_back({i, std::move(why)});
    }
  }
  return complaints;
}

std::vector<WordParameter> parameters_in(const std::vector<std::string>& words,
                                         const std::vector<std::string>& parameters) {
  std::vector<WordParameter> found;
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (const Piece& piece : pieces_of(words[i]).all) {
      if (!piece.is_placeholder || !is_parameter(piece.text, parameters)) continue;
      found.push_back({i, piece.text});
    }
  }
  return found;
}

std::vector<WordComplaint> lookalikes(const std::vector<std::string>& words,
                                      const std::vector<std::string>& parameters) {
  std::vector<WordComplaint> found;
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (const Piece& piece : pieces_of(words[i]).all) {
      const std::string name = piece.is_placeholder ? "" : name_in_braces(piece.text, parameters);
      if (name.empty()) continue;
      found.push_back(
          {i, fmt::format("{{{}}} is passed on as it is; the value is ${{{}}}", name, name)});
    }
  }
  return found;
}

std::vector<std::string> filled_words(const std::vector<std::string>& words, const Config& config,
                                      const WordFacts& facts) {
  std::vector<std::string> filled;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Pieces pieces = pieces_of(words[i]);
    const auto kind = pieces.is_alone() ? argument_kinds().find(pieces.all[0].text)
                                        : argument_kinds().end();
    if (kind != argument_kinds().end() && !config.contains(kind->first)) {
      add_arguments(config, kind->second, filled);
      continue;
    }
    std::string word;
    for (const Piece& piece : pieces.all) {
      if (!piece.is_placeholder) {
        word += piece.text;
      } else if (const Value* parameter = config.find(piece.text)) {
        word += as_word(*parameter);
      } else if (const auto known = fact(piece.text, config, facts)) {
        word += *known;
      } else {
        refuse(i, fmt::format("this configuration has no {}: give every configuration one, or let "
                              "the program read ${{args}} or ${{config_file}}",
                              piece.text));
      }
    }
    if (word.find('\0') != std::string::npos) refuse(i, "the word holds a zero byte");
    filled.push_back(std::move(word));
  }
  return filled;
}

std::string parameter_variable(std::string_view path) {
  std::string name = fmt::format("TUNE_PARAM_{}", path);
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

std::map<std::string, std::string> parameter_variables(const Config& config) {
  std::map<std::string, std::string> variables;
  for (const auto& [path, value] : config.leaves()) {
    std::string text = as_word(*value);
    if (text.find('\0') == std::string::npos) {
      variables[parameter_variable(path)] = std::move(text);
    }
  }
  return variables;
}

}  // namespace tune
