// The two sides of a relay with folders in memory, and a connection that a test cuts.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/agent/relay_client.h"
#include "core/agent/relay_desk.h"
#include "core/crc32c.h"
#include "core/error.h"

namespace tune {

struct Died {};  // the process that wrote, in the middle of it

class MemoryFiles : public RelayFiles {
 public:
  std::map<std::string, std::string> files;
  std::set<std::string> folders;
  std::uint64_t written = 0;  // steps: a byte, or another change
  std::uint64_t dies_at = ~std::uint64_t{0};
  bool is_full = false;

  std::vector<RelayFile> list(const std::string& folder) override {
    if (!folders.contains(folder)) throw Error(ErrorCode::kIo, "there is no " + folder);
    std::vector<RelayFile> found;
    for (const std::string& name : folders) {
      if (name.starts_with(folder + "/")) found.push_back({name.substr(folder.size() + 1), true});
    }
    for (const auto& [name, text] : files) {
      if (!name.starts_with(folder + "/")) continue;
      found.push_back({name.substr(folder.size() + 1), false, text.size(), crc32c(text), 0644});
    }
    return found;
  }
  std::string read(const std::string& file, std::uint64_t offset, std::size_t bytes) override {
    return files.at(file).substr(offset, bytes);
  }
  void begin(const RelayPlace& place, const std::vector<RelayFile>& wanted) override {
    refuse_if_full();
    step();
    remove(place.temporary);
    folders.insert(place.temporary);
    for (const RelayFile& file : wanted) {
      if (file.is_folder) folders.insert(place.temporary + "/" + file.path);
      if (!file.is_folder) files[place.temporary + "/" + file.path];
    }
  }
  void write(const std::string& file, std::uint64_t offset, std::string_view bytes) override {
    refuse_if_full();
    std::string& text = files.at(file);
    bytes = cut(bytes);
    text.resize(std::max<std::size_t>(text.size(), offset + bytes.size()));
    text.replace(offset, bytes.size(), bytes);
    die_if_due();
  }
  void commit(const RelayPlace& place, const std::vector<RelayFile>& wanted) override {
    refuse_if_full();
    step();
    std::vector<RelayFile> found = list(place.temporary);
    for (RelayFile& file : found) file.mode = file.is_folder ? 0 : 0644;
    if (found != wanted) throw Error(ErrorCode::kIo, "it is not whole");
    remove(place.place);
    move(place.temporary, place.place);  // at once, as a rename is
    step();
  }
  void join(const RelayPlace& place, const std::vector<RelayPart>& parts) override {
    refuse_if_full();
    step();
    const auto missing = std::ranges::find_if_not(
        parts, [&](const RelayPart& part) { return folders.contains(part.folder); });
    const bool is_done = folders.contains(place.place) && !folders.contains(place.temporary);
    if (!is_done && missing != parts.end())
      throw Error(ErrorCode::kIo, missing->host + " has sent no part");
    if (!is_done) folders.insert(place.temporary);
    for (const RelayPart& part : parts) {
      for (const RelayFile& file : is_done ? std::vector<RelayFile>() : list(part.folder)) {
        const std::string to = place.temporary + "/" + file.path;
        const std::string from = part.folder + "/" + file.path;
        if (file.is_folder) {
          folders.insert(to);
        } else if (!files.contains(to)) {
          files[to] = files.at(from);
          files.erase(from);
          step();
        } else if (files.at(to) != files.at(from)) {
          throw PartsDiffer(part.host, file.path);
        }
      }
    }
    if (!is_done) move(place.temporary, place.place);
    for (const RelayPart& part : parts) {
      step();
      remove(part.folder);
    }
  }
  void remove(const std::string& folder) noexcept override {
    std::erase_if(files, [&](const auto& one) {
      return one.first == folder || one.first.starts_with(folder + "/");
    });
    std::erase_if(folders,
                  [&](const auto& one) { return one == folder || one.starts_with(folder + "/"); });
  }
  std::vector<std::string> names(const std::string& folder) noexcept override {
    std::vector<std::string> found;
    for (const auto& [name, text] : files) {
      if (name.starts_with(folder + "/")) {
        const std::string rest = name.substr(folder.size() + 1);
        found.push_back(rest.substr(0, rest.find('/')));
      }
    }
    return found;
  }
  std::uint64_t size(const std::string& file) override {
    return files.contains(file) ? files.at(file).size() : 0;
  }
  std::uint64_t append(const std::string& file, std::optional<std::uint64_t> after,
                       std::string_view bytes) override {
    refuse_if_full();
    std::string& text = files[file];
    const std::uint64_t before = std::min<std::uint64_t>(after.value_or(text.size()), text.size());
    bytes.remove_prefix(already_there(std::string_view(text).substr(before), bytes));
    text += cut(bytes);
    die_if_due();
    return text.size();
  }
  // The content of a final folder, as text.
  std::string shown(const std::string& folder) {
    std::string text;
    if (!folders.contains(folder)) return "nothing";
    for (const RelayFile& file : list(folder)) {
      text += file.path + (file.is_folder ? "/" : "=" + files.at(folder + "/" + file.path)) + ";";
    }
    return text;
  }

  void move(const std::string& from, const std::string& to) override {
    if (!folders.contains(from)) throw Error(ErrorCode::kIo, "there is no " + from);
    std::map<std::string, std::string> moved_files;
    std::set<std::string> moved_folders;
    const auto moved = [&](const std::string& name) {
      const bool is_in = name == from || name.starts_with(from + "/");
      return is_in ? to + name.substr(from.size()) : name;
    };
    for (auto& [name, text] : files) moved_files[moved(name)] = std::move(text);
    for (const std::string& name : folders) moved_folders.insert(moved(name));
    files = std::move(moved_files);
    folders = std::move(moved_folders);
  }

 private:
  void step() {
    if (written++ == dies_at) throw Died{};
  }
  // The part of these that is written before the process dies.
  std::string_view cut(std::string_view bytes) {
    bytes = bytes.substr(0, std::min<std::uint64_t>(bytes.size(), dies_at - written));
    written += bytes.size();
    return bytes;
  }
  void die_if_due() {
    if (written == dies_at) step();
  }
  void refuse_if_full() const {
    if (is_full) throw Error(ErrorCode::kIo, "writing: No space left on device: free some space");
  }
};

// One agent and one driver's side; either may die and be there again at once, with its files.
struct RelaySides {
  static constexpr const char* kExperiment = "ab12c";
  MemoryFiles agent_files, driver_files;
  std::unique_ptr<RelayClient> client = std::make_unique<RelayClient>(agent_files, kExperiment);
  std::unique_ptr<RelayDesk> desk = std::make_unique<RelayDesk>(driver_files, kExperiment);
  std::chrono::nanoseconds now{};
  std::uint64_t messages = 0;
  std::function<bool(std::uint64_t message)> loses = [](std::uint64_t) { return false; };
  std::function<void()> client_died = [] {};
  std::vector<RelayOutcome> outcomes;

  // Until nothing is said any more, or for so long.
  void run(std::chrono::seconds time = std::chrono::seconds(60)) {
    for (const auto end = now + time; now < end; now += std::chrono::milliseconds(100)) turn();
  }
  void turn() {
    try {
      client->on_time(now);
      while (exchange()) {
      }
      desk->on_time(now);
      give(desk->take_answers());
    } catch (const Died&) {
      revive();
    }
    for (RelayOutcome& outcome : client->take_outcomes()) outcomes.push_back(std::move(outcome));
  }
  bool exchange() {
    const std::vector<RelayRequest> requests = client->take_requests();
    for (const RelayRequest& request : requests) {
      if (loses(messages++)) continue;
      desk->on_request(now, "a", decoded<RelayRequest>(encoded(request)));
      give(desk->take_answers());
    }
    return !requests.empty();
  }
  void give(const std::vector<std::pair<std::string, RelayAnswer>>& answers) {
    for (const auto& [to, answer] : answers) {
      if (to == "a" && !loses(messages++)) {
        client->on_answer(now, decoded<RelayAnswer>(encoded(answer)));
      }
    }
  }
  // The one that died has lost all but its files; what was on its way is lost as well.
  void revive() {
    if (driver_files.written > driver_files.dies_at) {
      driver_files.dies_at = ~std::uint64_t{0};
      desk = std::make_unique<RelayDesk>(driver_files, kExperiment);
    }
    if (agent_files.written > agent_files.dies_at) {
      agent_files.dies_at = ~std::uint64_t{0};
      client = std::make_unique<RelayClient>(agent_files, kExperiment);
      client_died();
    }
  }
  template <class Kind>
  std::vector<Kind> ended() const {
    std::vector<Kind> found;
    for (const RelayOutcome& outcome : outcomes) {
      if (const auto* one = std::get_if<Kind>(&outcome)) found.push_back(*one);
    }
    return found;
  }
};

}  // namespace tune
