#include "core/apart.h"

#include <doctest/doctest.h>

#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/wire.h"

namespace tune {
namespace {

struct Small {
  std::uint32_t number = 0;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.number);
  }
};
struct Large {
  std::string text = "as it is";
  double numbers[100] = {};
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.text);
  }
};
using Bare = std::variant<Large, Small>;
using Lean = std::variant<Apart<Large>, Small>;

static_assert(sizeof(Lean) == 2 * sizeof(void*));
static_assert(std::is_nothrow_move_constructible_v<Lean> &&
              std::is_nothrow_move_assignable_v<Lean>);

TEST_CASE("a value apart is copied as a value") {
  Apart<Large> one(Large{"one"});
  Apart<Large> other = one;
  other->text = "other";
  CHECK(one->text == "one");
  one = other;
  CHECK(&*one != &*other);
  CHECK(one->text == "other");
}

TEST_CASE("a value apart that nothing was written to, or that was moved from, is as a new one") {
  Apart<Large> one;
  const Apart<Large>& read = one;
  CHECK(read->text == "as it is");
  one->text = "written";
  const Apart<Large> other = std::move(one);
  CHECK(other->text == "written");
  CHECK(read->text == "as it is");
  CHECK(Apart<Large>(read)->text == "as it is");
}

TEST_CASE("std::visit finds the overload for a value apart, and may take the value out of it") {
  struct Visitor {
    std::string operator()(Large one) const { return std::move(one.text); }
    std::string operator()(const Small&) const { return "small"; }
  };
  const Lean kept = Large{"kept"};
  CHECK(std::visit(Visitor{}, kept) == "kept");
  CHECK(std::visit(Visitor{}, Lean(Large{"gone"})) == "gone");
  CHECK(std::visit(Visitor{}, Lean(Small{})) == "small");
}

TEST_CASE("a value apart travels as the value does") {
  for (const char* text : {"as it is", "another"}) {
    CHECK(encoded(Lean(Large{text})) == encoded(Bare(Large{text})));
    const Lean back = decoded<Lean>(encoded(Bare(Large{text})));
    CHECK(std::get<Apart<Large>>(back)->text == text);
  }
}

}  // namespace
}  // namespace tune
