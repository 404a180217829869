// A value that stands on the heap, for a rare and large alternative of a std::variant: without it
// each of the others would be as large. It behaves as the value does: copies are deep, and it
// travels as the value alone. One that is default-constructed, or was moved from, is a
// default-constructed value, for which nothing is allocated until it is written to.
#pragma once

#include <memory>
#include <utility>

namespace tune {

template <class T>
class Apart {
 public:
  Apart() = default;
  Apart(T value) : value_(std::make_unique<T>(std::move(value))) {}
  Apart(const Apart& other) : value_(other.value_ ? std::make_unique<T>(*other) : nullptr) {}
  Apart(Apart&&) noexcept = default;
  Apart& operator=(Apart other) noexcept {
    value_ = std::move(other.value_);
    return *this;
  }

  T& operator*() {
    if (!value_) value_ = std::make_unique<T>();
    return *value_;
  }
  const T& operator*() const {
    static const T kDefault{};
    return value_ ? *value_ : kDefault;
  }
  T* operator->() { return &**this; }
  const T* operator->() const { return &**this; }
  operator const T&() const& { return **this; }  // overloads for T are found in std::visit
  operator T&&() && { return std::move(**this); }

  template <class Self, class F>
  static void fields(Self& s, F& f) {
    T::fields(*s, f);
  }

 private:
  std::unique_ptr<T> value_;
};

}  // namespace tune
