#include "schedulers/fifo.h"

namespace tune {

std::vector<std::string> FifoScheduler::status_lines() const {
  return {"Using FIFO scheduling algorithm."};
}

std::string FifoScheduler::save() const {
  return encoded(std::string("fifo"));
}

void FifoScheduler::restore(std::string_view state) {
  if (decoded<std::string>(state) != "fifo") {
    detail::bad_message("scheduler state of bytes", state.size(), 5);
  }
}

}  // namespace tune
