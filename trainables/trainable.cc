#include "trainables/trainable.h"

#include "core/error.h"
#include "trainables/once_per_node.h"

namespace tune {

void Trainable::save(const std::filesystem::path&) {
  throw Error(ErrorCode::kBadInput,
              "this trainable cannot be saved: it does not override save and load");
}

void Trainable::load(const std::filesystem::path&) {
  throw Error(ErrorCode::kBadInput,
              "this trainable cannot be loaded: it does not override save and load");
}

void Context::once_per_node(const std::string& name, const std::function<void()>& function) const {
  if (once_directory_.empty()) {
    function();  // outside a worker no other process waits
  } else {
    run_once(once_directory_, name, function);
  }
}

void Context::write_beside(std::function<void()> write) const {
  if (later_ != nullptr) {
    later_->push_back(std::move(write));
  } else {
    write();
  }
}

}  // namespace tune
