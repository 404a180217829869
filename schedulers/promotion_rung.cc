#include "schedulers/promotion_rung.h"

#include <algorithm>
#include <utility>

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
  if (is_open_) return size();
  return size() < min_size_ ? 0 : position_.whole_part(size());
}

std::optional<double> PromotionRung::cut_off() const {
  if (best_.empty() || has_merits()) return std::nullopt;
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
  fill_places();
  return entry;
}

void PromotionRung::fill_places() {
  const std::size_t wanted = wanted_places();
  while (best_.size() > wanted) put_out_the_worst();
  while (best_.size() < wanted) take_into_best(pop(others_, is_worse_entry));
}

void PromotionRung::open() {
  is_open_ = true;
  if (has_merits()) {
    rank_anew();
  } else {
    fill_places();
  }
}

RungEntry PromotionRung::add(const Merit& merit, TrialNumber trial, bool waits) {
  const RungEntry entry{0, static_cast<std::uint32_t>(size()), trial};
  waits_.push_back(waits);
  fronts_.add(merit);
  others_.push_back(entry);
  rank_anew();
  return entry;
}

// Of merits: the best get their places as values, counted backwards.
void PromotionRung::rank_anew() {
  std::vector<RungEntry> all(size());
  for (const auto* part : {&best_, &others_}) {
    for (const RungEntry& entry : *part) all[entry.arrival] = entry;
  }
  const Fronts::Members best = fronts_.best(wanted_places());
  for (RungEntry& entry : all) entry.value = -static_cast<double>(all.size());
  for (std::size_t i = 0; i < best.size(); ++i) all[best[i]].value = -static_cast<double>(i);
  best_.clear();
  others_.clear();
  promotable_.clear();
  for (const std::uint32_t arrival : best) {
    best_.push_back(all[arrival]);
    if (waits_[arrival]) promotable_.insert(all[arrival]);
  }
  for (const RungEntry& entry : all) {
    if (entry.value == -static_cast<double>(all.size())) others_.push_back(entry);
  }
}

void PromotionRung::leave(const RungEntry& entry) {
  TUNE_CHECK(entry.arrival < waits_.size());
  waits_[entry.arrival] = false;
  if (!has_merits()) return void(promotable_.erase(entry));
  std::erase_if(promotable_, [&](const RungEntry& one) { return one.arrival == entry.arrival; });
}

void PromotionRung::wait_again(const RungEntry& entry) {
  TUNE_CHECK(entry.arrival < waits_.size());
  waits_[entry.arrival] = true;
  if (!is_among_best(entry)) return;
  promotable_.insert(has_merits() ? *among_best(entry) : entry);
}

std::vector<RungEntry>::const_iterator PromotionRung::among_best(const RungEntry& entry) const {
  return std::ranges::find(best_, entry.arrival, &RungEntry::arrival);
}

bool PromotionRung::is_among_best(const RungEntry& entry) const {
  if (has_merits()) return among_best(entry) != best_.end();
  return !best_.empty() && !is_better(best_.front(), entry);
}

bool PromotionRung::are_heaps() const {
  if (!std::is_heap(best_.begin(), best_.end(), is_better)) return false;
  if (!std::is_heap(others_.begin(), others_.end(), is_worse_entry)) return false;
  const bool both = !best_.empty() && !others_.empty();
  return !both || !is_better(others_.front(), best_.front());
}

bool PromotionRung::arrivals_fit() const {
  std::vector<bool> seen(size());
  for (const auto* part : {&best_, &others_}) {
    for (const RungEntry& entry : *part) {
      if (entry.arrival >= seen.size() || seen[entry.arrival]) return false;
      seen[entry.arrival] = true;
    }
  }
  return true;
}

bool PromotionRung::restore(std::vector<RungEntry> best, std::vector<RungEntry> others,
                            Fronts fronts) {
  PromotionRung made(milestone_, position_, min_size_);
  made.best_ = std::move(best);
  made.others_ = std::move(others);
  made.fronts_ = std::move(fronts);
  made.is_open_ = is_open_;
  if (made.best_.size() != made.wanted_places() || !made.arrivals_fit()) return false;
  made.waits_.assign(made.size(), false);
  if (made.has_merits()) {
    if (made.fronts_.size() != made.size()) return false;
    made.rank_anew();
  } else if (!made.are_heaps()) {
    return false;
  } else {
    for (const auto* heap : {&made.best_, &made.others_}) {
      for (const RungEntry& entry : *heap) made.ranked_.add(entry.value);
    }
  }
  *this = std::move(made);
  return true;
}

}  // namespace tune
