// RelayFiles: the files of one side of a relay. What reads or writes them is behind this interface,
// so that tests cut it anywhere. Paths are relative to the side's folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/checkpoint_name.h"
#include "core/contract_values.h"
#include "core/error.h"
#include "core/ids.h"
#include "core/relay_contract.h"

namespace tune {

// The names of a folder that is written: it is never half there under its final one.
struct RelayPlace {
  std::string temporary;
  std::string place;
  std::string aside;  // what stood there before, while it is replaced
};
RelayPlace checkpoint_place(const std::string& experiment_id, const CheckpointOrigin& checkpoint);
// Where an agent puts the checkpoint that an attempt begins with: a place of its own, as several
// trials may begin with the same one at once, and so may agents that see one folder.
RelayPlace restored_place(const std::string& experiment_id, TrialNumber trial,
                          AttemptNumber attempt, std::uint32_t node = 0);
// Where the part of one machine of a group stands until all are there.
RelayPlace part_place(const std::string& experiment_id, const CheckpointOrigin& checkpoint,
                      std::uint32_t node);

// The machines of a group have written files of one name that differ.
class PartsDiffer : public Error {
 public:
  PartsDiffer(const std::string& host, const std::string& path);
};

// Where an agent puts the plugin.
inline constexpr const char* kFetchedPlugin = "plugin";

struct RelayPart {
  std::string folder;
  std::string host;
};

// The number of these bytes of output that a file has already, when it had `after` bytes before
// them: a driver may have died in the middle of appending, or after it. Others may have appended
// something else meanwhile: none of them then. `end`: the file from `after` on.
std::size_t already_there(std::string_view end, std::string_view bytes);

// Every call may throw Error (kIo).
class RelayFiles {
 public:
  virtual ~RelayFiles() = default;
  virtual std::vector<RelayFile> list(const std::string& folder) = 0;  // with sums
  virtual std::string read(const std::string& file, std::uint64_t offset, std::size_t bytes) = 0;
  // Makes an empty temporary folder, with the folders among the files.
  virtual void begin(const RelayPlace& place, const std::vector<RelayFile>& files) = 0;
  virtual void write(const std::string& file, std::uint64_t offset, std::string_view bytes) = 0;
  // Checks that the temporary folder holds exactly these files, flushes it and gives it its name.
  virtual void commit(const RelayPlace& place, const std::vector<RelayFile>& files) = 0;
  // Moves the files of all parts to those of the temporary folder, if there are any, and gives that
  // its name. It may have been done before, or begun. Throws PartsDiffer as well.
  virtual void join(const RelayPlace& place, const std::vector<RelayPart>& parts) = 0;
  // Gives a folder another name, which none has.
  virtual void move(const std::string& from, const std::string& to) = 0;
  virtual void remove(const std::string& file_or_folder) noexcept = 0;
  // The entries of a folder; none when it cannot be read.
  virtual std::vector<std::string> names(const std::string& folder) noexcept = 0;
  virtual std::uint64_t size(const std::string& file) = 0;  // 0: there is none
  // Appends what is not there yet, when the file had `after` bytes before: see RelayOutput. Returns
  // its size.
  virtual std::uint64_t append(const std::string& file, std::optional<std::uint64_t> after,
                               std::string_view bytes) = 0;
};

}  // namespace tune
