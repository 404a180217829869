#include "tune/results/object_checkpoints.h"

#include <unistd.h>

#include <chrono>
#include <random>
#include <thread>

#include <fmt/format.h>

#include "core/agent/relay_folder.h"
#include "core/aws_settings.h"
#include "core/object_folder.h"

namespace tune {

namespace {

constexpr int kObjectTries = 4;  // 1, 2, 4 s between them

template <class What>
auto tried_again(What what) {
  for (int tries = 1;; ++tries) {
    try {
      return what();
    } catch (const ObjectError& error) {
      if (error.kind() != ObjectError::Kind::kAway || tries == kObjectTries) throw;
    }
    std::this_thread::sleep_for(std::chrono::seconds(1 << (tries - 1)));
  }
}

}  // namespace

void ObjectCheckpoints::prove() {
  std::random_device random;
  const std::string name =
      fmt::format(".proof-{:08x}{:08x}", random(), static_cast<std::uint32_t>(::getpid()));
  try {
    tried_again([&] { tune::prove(store_, name); });
  } catch (const ObjectError& error) {
    if (error.kind() == ObjectError::Kind::kSkewed) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("keeping checkpoints in {}: {}", address_, error.what()));
    }
    throw Error(ErrorCode::kBadInput,
                fmt::format("keeping checkpoints in {}: {}: check the bucket, AWS_ENDPOINT_URL and "
                            "the credentials (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
                            "~/.aws/credentials), or store them in a folder: --storage DIR",
                            address_, error.what()));
  }
}

std::set<std::string> ObjectCheckpoints::names(const std::string& trial_id) {
  return tried_again([&] { return complete_folders(store_, trial_id); });
}

void ObjectCheckpoints::fetch(const std::string& trial_id, const std::string& name,
                              const std::filesystem::path& trial_directory) {
  const std::string folder = trial_id + "/" + name;
  const ObjectParts parts = parts_from(
      tried_again([&] { return store_.get(manifest_name(folder)); }), manifest_name(folder));
  RelayFolder files(trial_directory);
  const std::string own = fmt::format(".fetched-{}", ::getpid());
  const RelayPlace place{own + ".tmp", name, own + ".old"};
  try {
    files.begin(place, files_of(parts));
    const auto write = [&](const std::string& path, std::uint64_t offset, std::string_view bytes) {
      files.write(place.temporary + "/" + path, offset, bytes);
    };
    for (ObjectPosition at; !is_end(parts, at);) {
      tried_again([&] { read_next(store_, folder, parts, at, write); });
    }
    files.commit(place, files_of(parts));
  } catch (...) {
    files.remove(place.temporary);
    throw;
  }
}

ObjectPlace object_place(const std::string& address) {
  const AwsSettings settings = read_aws_settings();
  return {address, settings.endpoint, settings.region};
}

}  // namespace tune
