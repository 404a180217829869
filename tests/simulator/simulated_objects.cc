#include "simulator/simulated_objects.h"

#include <charconv>

#include <fmt/format.h>

#include "core/crc32c.h"
#include "core/error.h"

namespace tune::simulator {

namespace {

constexpr const char* kExperiment = "0a1b2";
constexpr std::uint64_t kPieceBytes = 8;  // so that a checkpoint has several

using Parts = SimulatedDisk::Parts;

std::uint64_t number_in(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// Of "0a1b2_00003/checkpoint_000010" or "0a1b2_00003/.restored-2...": the trial, and what follows.
std::pair<TrialNumber, std::string> split(const std::string& folder) {
  const std::size_t slash = folder.find('/');
  const std::size_t digits = std::string_view(kExperiment).size() + 1;
  const auto trial = static_cast<std::uint32_t>(number_in(folder.substr(digits, slash - digits)));
  return {TrialNumber{trial}, folder.substr(slash + 1)};
}

}  // namespace

// A file a rank, whose content is its state.
struct SimulatedObjects::Files : RelayFiles {
  Files(World& given, Where folder) : world(given), where(folder) {}

  // Of a checkpoint's name, or that of a temporary one.
  static std::optional<CheckpointId> id_of(const std::string& name) {
    if (const auto id = checkpoint_of_name(name)) return id;
    const auto attempt = attempt_of_temporary(name);
    if (!attempt) return std::nullopt;
    return CheckpointId{number_in(name.substr(name.find('_') + 1)), *attempt};
  }
  const Parts* parts_of(const std::string& folder) const {
    const auto [trial, name] = split(folder);
    const auto id = id_of(name);
    return id ? world.disk.on_node(where, trial, *id) : nullptr;
  }
  static std::string text_of(std::uint64_t state) { return fmt::format("{:020}", state); }

  std::vector<RelayFile> list(const std::string& folder) override {
    const Parts* parts = parts_of(folder);
    if (parts == nullptr) throw Error(ErrorCode::kIo, folder + " is gone");
    std::vector<RelayFile> files;
    for (const auto& [rank, state] : *parts) {
      const std::string text = text_of(state);
      files.push_back({std::to_string(rank), false, text.size(), crc32c(text), 0644});
    }
    return files;
  }
  std::string read(const std::string& file, std::uint64_t offset, std::size_t bytes) override {
    const std::size_t slash = file.rfind('/');
    const Parts* parts = parts_of(file.substr(0, slash));
    if (parts == nullptr) throw Error(ErrorCode::kIo, file + " is gone");
    const auto rank = static_cast<std::uint32_t>(number_in(file.substr(slash + 1)));
    return text_of(parts->at(rank)).substr(offset, bytes);
  }
  void begin(const RelayPlace&, const std::vector<RelayFile>&) override { received.clear(); }
  void write(const std::string& file, std::uint64_t offset, std::string_view bytes) override {
    std::string& text =
        received[static_cast<std::uint32_t>(number_in(file.substr(file.rfind('/') + 1)))];
    text.resize(std::max<std::size_t>(text.size(), offset + bytes.size()));
    text.replace(offset, bytes.size(), bytes);
  }
  void commit(const RelayPlace& place, const std::vector<RelayFile>& files) override {
    Parts parts;
    for (const RelayFile& file : files) {
      const auto rank = static_cast<std::uint32_t>(number_in(file.path));
      if (crc32c(received[rank]) != file.sum) throw Error(ErrorCode::kIo, "it is not whole");
      parts[rank] = number_in(received[rank]);
    }
    put_restored(place.place, std::move(parts));
  }
  void put_restored(const std::string& place, Parts parts) const {
    const auto [trial, name] = split(place);
    const auto attempt = static_cast<std::uint32_t>(number_in(name.substr(name.rfind('-') + 1)));
    const std::size_t dot = name.find('.', 1);
    const std::uint64_t node = dot == name.npos ? 0 : number_in(name.substr(dot + 1));
    world.disk.keep_fetched(attempt_key(trial, AttemptNumber{attempt}),
                            static_cast<std::uint32_t>(node), std::move(parts));
  }
  void join(const RelayPlace&, const std::vector<RelayPart>&) override {}
  // A checkpoint that was kept becomes the one that an attempt begins with.
  void move(const std::string& from, const std::string& to) override {
    const Parts* parts = parts_of(from);
    if (parts == nullptr) throw Error(ErrorCode::kIo, from + " is gone");
    put_restored(to, *parts);
    remove(from);
    ++world.tally.kept;
  }
  void remove(const std::string& folder) noexcept override {
    const auto [trial, name] = split(folder);
    if (const auto id = id_of(name)) world.disk.drop(where, trial, *id);
  }
  std::vector<std::string> names(const std::string&) noexcept override { return {}; }
  std::uint64_t size(const std::string&) override { return 0; }
  std::uint64_t append(const std::string&, std::optional<std::uint64_t>,
                       std::string_view) override {
    return 0;
  }

  World& world;
  Where where;
  std::map<std::uint32_t, std::string> received;  // by rank
};

struct SimulatedObjects::Store : ObjectStore {
  explicit Store(World& given) : world(given) {}

  // An outage is the same for all nodes.
  void answer() {
    using Kind = ObjectError::Kind;
    if (world.queue.now() < world.store_is_away_until) throw ObjectError(Kind::kAway, "away");
    // Rare enough that a checkpoint of several requests gets there between two of them, also where
    // machines live for a few seconds.
    if (!world.chance(world.scenario.rates.promotion_fails / 10 + 1'000)) return;
    world.store_is_away_until = world.queue.now() + world.about(std::chrono::seconds(20));
    ++world.tally.outages;
    throw ObjectError(world.chance(500'000) ? Kind::kAway : Kind::kDenied, "away");
  }
  void put(const std::string& name, std::string_view bytes) override {
    answer();
    world.objects[name] = std::string(bytes);
    if (!name.ends_with("/manifest.json")) return;
    // From now on it counts: the promises about what records need look at the disk.
    const auto [trial, rest] = split(name);
    const auto id = checkpoint_of_name(rest.substr(0, rest.find('/')));
    world.disk.keep(trial, *id, content(name, bytes));
    ++world.tally.relayed;
  }
  // What a reader of this manifest finds.
  Parts content(const std::string& name, std::string_view text) const {
    const std::string folder = name.substr(0, name.rfind('/'));
    std::map<std::uint32_t, std::string> states;
    const ObjectParts all = parts_from(std::string(text), name);
    if (all.size() > 1) ++world.tally.joined_parts;
    for (const ObjectManifest& part : all) {
      for (std::size_t piece = 0; piece < part.pieces.size(); ++piece) {
        const std::string& read = world.objects.at(piece_name(folder, part.pieces[piece]));
        std::size_t at = 0;
        for (const FilePart& lies : parts_of_piece(part.files, part.piece_bytes, piece)) {
          const auto rank = static_cast<std::uint32_t>(number_in(part.files[lies.file].path));
          states[rank] += read.substr(at, lies.bytes);
          at += lies.bytes;
        }
      }
    }
    Parts parts;
    for (const auto& [rank, state] : states) parts[rank] = number_in(state);
    return parts;
  }
  std::string get(const std::string& name) override {
    answer();
    const auto found = world.objects.find(name);
    if (found != world.objects.end()) return found->second;
    throw ObjectError(ObjectError::Kind::kAbsent, name + " is not there");
  }
  std::vector<std::string> list(const std::string&, const std::string&) override { return {}; }
  void remove(const std::string&) override {}

  World& world;
};

SimulatedObjects::SimulatedObjects(World& world, Where where)
    : files_(std::make_unique<Files>(world, where)),
      store_(std::make_unique<Store>(world)),
      carrier_(std::make_unique<ObjectCarrier>(*files_, *store_, kExperiment, kPieceBytes)) {
  if (where != kExperimentFolder) carrier_->keep_stored();
}

SimulatedObjects::~SimulatedObjects() = default;

ObjectCarrier& SimulatedObjects::carrier() {
  return *carrier_;
}

void remove_objects_of(World& world, TrialNumber trial, const CheckpointId& id) {
  const std::string folder =
      trial_id(kExperiment, trial) + "/" + checkpoint_name(id.iteration, id.attempt) + "/";
  std::erase_if(world.objects, [&](const auto& one) { return one.first.starts_with(folder); });
}

}  // namespace tune::simulator
