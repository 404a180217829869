// CallbackExport: tells a user's Callback what stands in an experiment's folder.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tune/export/cursor.h"
#include "tune/export/exporter.h"
#include "tune/export/follower.h"
#include "tune/results/callback.h"

namespace tune {

class CallbackExport : public Exporter, private FolderListener {
 public:
  // `cursor` is the file that keeps how far the callback has been told.
  CallbackExport(std::shared_ptr<Callback> callback, std::filesystem::path experiment,
                 std::filesystem::path cursor);

  void write_news(const std::function<bool()>& ends) override;
  void finish() override;
  std::vector<std::string> take_problems() override;

 private:
  void result(const FollowedTrial& trial, std::string_view line, const std::string& where) override;
  void trial_is_read(const FollowedTrial& trial) override;
  void tell_start(const CallbackTrial& trial, Cursor::Place& place);
  void tell_checkpoints(const CallbackTrial& trial, Cursor::Place& place);
  void tell(const std::function<void(Callback&)>& what);

  std::shared_ptr<Callback> callback_;
  std::filesystem::path experiment_;
  Follower follower_;
  Cursor cursor_;
  std::vector<std::string> problems_;
  bool has_thrown_ = false;
  std::size_t told_problems_ = 0;  // of the follower
};

}  // namespace tune
