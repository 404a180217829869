#include "tune/spec/pool_words.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "core/error.h"
#include "core/strings.h"
#include "tune/spec/option_reader.h"

namespace tune {

namespace {

const std::vector<std::string> kNames = {
    "name",    "prefix", "experiment", "id",        "script", "join_file", "log",    "host",
    "exclude", "cpu",    "gpu",        "memory_mb", "time_s", "time_min",  "drain_s"};
const std::set<std::string> kMayBeLeftOut = {"host", "exclude"};

constexpr std::string_view kAsWord = "word:";  // a word of a shell
constexpr std::string_view kIf = "if:";        // nothing, in a word that may be left out

// Takes the prefix off a name; false: the name does not begin with it.
bool take(std::string_view prefix, std::string& name) {
  if (!name.starts_with(prefix)) return false;
  name.erase(0, prefix.size());
  return true;
}

// Replaces each placeholder by what `value` says of it.
std::string filled(std::string_view word,
                   const std::function<std::string(const std::string& name)>& value) {
  std::string text;
  while (true) {
    const std::size_t at = word.find("${");
    if (at == std::string_view::npos) return text += word;
    if (at > 0 && word[at - 1] == '$') {
      text.append(word.substr(0, at - 1)).append("${");
      word.remove_prefix(at + 2);
      continue;
    }
    const std::size_t end = word.find('}', at);
    if (end == std::string_view::npos) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("'{}' has no end: write ${{name}}, or $${{ for the two characters",
                              word.substr(at)));
    }
    text.append(word.substr(0, at)).append(value(std::string(word.substr(at + 2, end - at - 2))));
    word.remove_prefix(end + 1);
  }
}

}  // namespace

std::vector<std::string> filled_pool_words(const std::vector<std::string>& words,
                                           const PoolValues& values) {
  std::vector<std::string> all;
  for (const std::string& word : words) {
    bool is_left_out = false;
    std::string text = filled(word, [&](std::string name) {
      const bool as_word = take(kAsWord, name);
      const bool is_condition = take(kIf, name);
      const auto found = values.find(name);
      if (found == values.end()) {
        throw Error(ErrorCode::kBadInput,
                    fmt::format("'{}': there is no ${{{}}} here", word, name));
      }
      is_left_out = is_left_out || (found->second.empty() && kMayBeLeftOut.contains(name));
      if (is_condition) return std::string();
      return as_word ? shell_word(found->second) : found->second;
    });
    if (!is_left_out) all.push_back(std::move(text));
  }
  return all;
}

void check_pool_words(const std::vector<std::string>& words, const std::string& path,
                      std::vector<Complaint>& complaints) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto complain = [&](std::string message) {
      complaints.push_back({.path = fmt::format("{}/{}", path, i), .message = std::move(message)});
    };
    try {
      filled(words[i], [&](std::string name) {
        if (!take(kAsWord, name)) take(kIf, name);
        if (std::ranges::find(kNames, name) == kNames.end()) {
          complain(fmt::format("there is no ${{{}}}{}", name, did_you_mean(name, kNames)));
        }
        return std::string();
      });
    } catch (const Error& error) {
      complain(error.what());
    }
  }
}

}  // namespace tune
