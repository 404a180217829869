// Messages with a value of its own in every field, so that a field that gets lost is noticed.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "core/wire.h"

namespace tune::testing {

class Filler {
 public:
  template <class... F>
  void operator()(F&... fields) {
    (fill(fields), ...);
  }

  template <class... F>
  void added(F&... fields) {
    (fill(fields), ...);
  }
  template <class F, class Missing>
  void added_or(F& field, const Missing&) {
    fill(field);
  }
  template <class F>
  void contract(F& version, std::uint32_t spoken, const char*) {
    version = spoken;
  }

  template <class T>
  void fill(T& value) {
    ++count_;
    if constexpr (std::is_same_v<T, bool>) {
      value = true;
    } else if constexpr (std::is_enum_v<T>) {
      value = T::kLast;
    } else if constexpr (std::is_floating_point_v<T>) {
      value = count_ + 0.25;
    } else if constexpr (std::is_signed_v<T>) {
      value = static_cast<T>(-count_ * 1000);
    } else if constexpr (std::is_unsigned_v<T>) {
      value = static_cast<T>(count_ * 300);
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = "text " + std::to_string(count_);
    } else if constexpr (std::is_same_v<T, Packed>) {
      value = pack(Value{{"loss", count_ + 0.5}, {"nested", {{"n", count_}}}});
    } else if constexpr (detail::TaggedId<T>) {
      value.value = static_cast<std::uint32_t>(count_);
    } else if constexpr (detail::kIsDuration<T>) {
      value = T(count_ * 1000000007LL);
    } else if constexpr (detail::kIsOptional<T>) {
      fill(value.emplace());
    } else if constexpr (kIsVector<T>) {
      value.resize(2);
      for (auto& item : value) fill(item);
    } else if constexpr (detail::kIsStringMap<T>) {
      fill(value["KEY_A"]);
      fill(value["KEY_B"]);
    } else {
      T::fields(value, *this);
    }
  }

 private:
  int count_ = 0;
};

template <class T>
T filled() {
  T value{};
  Filler().fill(value);
  return value;
}

}  // namespace tune::testing
