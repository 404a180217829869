#include "schedulers/promotion_rung.h"

#include <algorithm>

#include "core/error.h"

namespace tune {

bool is_better(const RungEntry& a, const RungEntry& b) {
  if (is_worse(b.value, a.value)) return true;
  return !is_worse(a.value, b.value) && a.arrival < b.arrival;
}

namespace {

bool is_worse_entry(const RungEntry& a, const RungEntry& b) {
  return is_better(b, a);
}

// Of two entries, whether the second lies nearer to the heap's top.
using Below = bool (*)(const RungEntry&, const RungEntry&);

void push(std::vector<RungEntry>& heap, const RungEntry& entry, Below below) {
  heap.push_back(entry);
  std::push_heap(heap.begin(), heap.end(), below);
}

RungEntry pop(std::vector<RungEntry>& heap, Below below) {
  std::pop_heap(heap.begin(), heap.end(), below);
  const RungEntry entry = heap.back();
  heap.pop_back();
  return entry;
}

}  // namespace

std::size_t PromotionRung::wanted_places() const {
  return size() < min_size_ ? 0 : position_.whole_part(size());
}

std::optional<double> PromotionRung::cut_off() const {
  if (best_.empty()) return std::nullopt;
  return best_.front().value;
}

void PromotionRung::take_into_best(const RungEntry& entry) {
  push(best_, entry, is_better);
  if (waits_[entry.arrival]) promotable_.insert(entry);
}

void PromotionRung::put_out_the_worst() {
  const RungEntry worst = pop(best_, is_better);
  promotable_.erase(worst);
  push(others_, worst, is_worse_entry);
}

RungEntry PromotionRung::add(double value, TrialNumber trial, bool waits) {
  const RungEntry entry{value, static_cast<std::uint32_t>(size()), trial};
  waits_.push_back(waits);
  ranked_.add(value);
  if (is_among_best(entry)) {
    take_into_best(entry);
  } else {
    push(others_, entry, is_worse_entry);
  }
  const std::size_t wanted = wanted_places();
  while (best_.size() > wanted) put_out_the_worst();
  while (best_.size() < wanted) take_into_best(pop(others_, is_worse_entry));
  return entry;
}

void PromotionRung::leave(const RungEntry& entry) {
  TUNE_CHECK(entry.arrival < waits_.size());
  waits_[entry.arrival] = false;
  promotable_.erase(entry);
}

void PromotionRung::wait_again(const RungEntry& entry) {
  TUNE_CHECK(entry.arrival < waits_.size());
  waits_[entry.arrival] = true;
  if (is_among_best(entry)) promotable_.insert(entry);
}

bool PromotionRung::is_among_best(const RungEntry& entry) const {
  return !best_.empty() && !is_better(best_.front(), entry);
}

bool PromotionRung::restore(std::vector<RungEntry> best, std::vector<RungEntry> others) {
  PromotionRung made(milestone_, position_, min_size_);
  made.best_ = std::move(best);
  made.others_ = std::move(others);
  if (made.best_.size() != made.wanted_places()) return false;
  if (!std::is_heap(made.best_.begin(), made.best_.end(), is_better)) return false;
  if (!std::is_heap(made.others_.begin(), made.others_.end(), is_worse_entry)) return false;
  const bool both = !made.best_.empty() && !made.others_.empty();
  if (both && is_better(made.others_.front(), made.best_.front())) return false;
  std::vector<bool> seen(made.size());
  for (const auto* heap : {&made.best_, &made.others_}) {
    for (const RungEntry& entry : *heap) {
      if (entry.arrival >= seen.size() || seen[entry.arrival]) return false;
      seen[entry.arrival] = true;
      made.ranked_.add(entry.value);
    }
  }
  made.waits_.assign(made.size(), false);
  *this = std::move(made);
  return true;
}

}  // namespace tune
