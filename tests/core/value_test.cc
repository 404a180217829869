#include "core/value.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>

#include "core/refusal.h"

namespace tune {
namespace {

using testing::refusal;

// Pointers are not values, so they cannot become a bool by accident.
static_assert(!std::is_convertible_v<int*, Value>);
static_assert(!std::is_convertible_v<const void*, Value>);
static_assert(!std::is_convertible_v<std::shared_ptr<int>, Value>);
static_assert(!ValueLike<int*> && !ValueLike<const double*> && !ValueLike<void (*)()>);
static_assert(ValueLike<const char*> && ValueLike<char[4]> && ValueLike<std::string_view>);
static_assert(ValueLike<std::vector<std::string>> && ValueLike<const std::vector<int>&>);
static_assert(ValueLike<bool> && ValueLike<float> && ValueLike<unsigned long long>);
static_assert(!std::is_convertible_v<Value, Config>, "a list must not pass for a configuration");

TEST_CASE("braces of pairs are a map, nested to any depth, in the order written") {
  const Result result = {{"mean_accuracy", 0.5}, {"loss", {{"train", 0.25}, {"test", 0.5}}}};
  CHECK(result.is_map());
  CHECK(result.dump() == R"({"mean_accuracy":0.5,"loss":{"train":0.25,"test":0.5}})");
  const Config config = {{"z", {{"y", {{"x", {{"w", 1}}}}}}}, {"a", 2}};
  CHECK(config.get<int>("z/y/x/w") == 1);
  CHECK(config.dump() == R"({"z":{"y":{"x":{"w":1}}},"a":2})");
}

TEST_CASE("braces of pairs of strings are a map, never a string") {
  const Value two = {{"a", "b"}, {"c", "d"}};
  CHECK(two.dump() == R"({"a":"b","c":"d"})");
  const Value one = {{"a", "b"}};
  CHECK(one.dump() == R"({"a":"b"})");
  const Value direct{{"a", "b"}, {"c", "d"}};
  CHECK(direct == two);
  const Result nested = {{"names", {{"a", "b"}, {"c", "d"}}}};
  CHECK(nested.dump() == R"({"names":{"a":"b","c":"d"}})");
  const Config single = {{"outer", {{"key", "value"}}}};
  CHECK(single.dump() == R"({"outer":{"key":"value"}})");
  const auto give = []() -> Result { return {{"a", "b"}}; };
  CHECK(give().dump() == R"({"a":"b"})");
}

TEST_CASE("lists are written with tune::list and hold any mix") {
  CHECK(list({1, "a", 2.5, true, nullptr}).dump() == R"([1,"a",2.5,true,null])");
  CHECK(list({}).dump() == "[]");
  CHECK(list({list({1}), list({2, 3})}).dump() == "[[1],[2,3]]");
  CHECK(list({{{"a", 1}}, {{"b", 2}}}).dump() == R"([{"a":1},{"b":2}])");
  const Config config = {{"widths", list({16, 32})}};
  CHECK(config.get<std::vector<int>>("widths") == std::vector<int>{16, 32});
}

TEST_CASE("vectors become lists") {
  CHECK(Value(std::vector<int>{1, 2}).dump() == "[1,2]");
  CHECK(Value(std::vector<std::string>{"a", "b"}).dump() == R"(["a","b"])");
  CHECK(Value(std::vector<bool>{true, false}).dump() == "[true,false]");
  CHECK(Value(std::vector<float>{0.5f}).dump() == "[0.5]");
  CHECK(Value(std::vector<const char*>{"a"}).dump() == R"(["a"])");
  CHECK(Value(std::vector<std::vector<int>>{{1}, {}}).dump() == "[[1],[]]");
  const std::vector<Value> mixed = {1, "a"};
  CHECK(Value(mixed).dump() == R"([1,"a"])");
}

template <class T>
void check_integer_type() {
  const Value low = std::numeric_limits<T>::min();
  CHECK(low.type() == Value::Type::kInt);
  CHECK(low.as<T>() == std::numeric_limits<T>::min());
  if constexpr (sizeof(T) < 8 || std::is_signed_v<T>) {
    const Value high = std::numeric_limits<T>::max();
    CHECK(high.type() == Value::Type::kInt);
    CHECK(high.as<T>() == std::numeric_limits<T>::max());
  }
}

TEST_CASE("every integer type becomes an integer and comes back") {
  check_integer_type<char>();
  check_integer_type<signed char>();
  check_integer_type<unsigned char>();
  check_integer_type<short>();
  check_integer_type<unsigned short>();
  check_integer_type<int>();
  check_integer_type<unsigned>();
  check_integer_type<long>();
  check_integer_type<unsigned long>();
  check_integer_type<long long>();
  check_integer_type<unsigned long long>();
}

TEST_CASE("what is above the largest integer is refused") {
  CHECK(Value(std::uint64_t{INT64_MAX}).integer() == INT64_MAX);
  CHECK_HAS(refusal([] { (void)Value(std::uint64_t{INT64_MAX} + 1); }), "9223372036854775808");
}

TEST_CASE("a literal, a string and a view become a string, a bool stays a bool") {
  const std::string text = "text";
  const char* pointer = "text";
  CHECK(Value("text").string() == "text");
  CHECK(Value(text).string() == "text");
  CHECK(Value(pointer).string() == "text");
  CHECK(Value(std::string_view(text)).string() == "text");
  CHECK(Value(std::string("a\0b", 3)).string().size() == 3);
  CHECK(Value(true).boolean());
  CHECK(Value(std::vector<bool>{true}).list()[0].type() == Value::Type::kBool);
  CHECK(Value(nullptr).is_null());
  CHECK(Value().is_null());
}

TEST_CASE("reading converts only where nothing is lost") {
  const Config config = {{"int", 3},     {"negative", -1}, {"big", 300},
                         {"float", 3.0}, {"text", "3"},    {"flag", true}};
  CHECK(config.get<double>("int") == 3.0);
  CHECK(config.get<float>("int") == 3.0f);
  CHECK(config.get<std::uint64_t>("int") == 3);
  CHECK(config.get<std::uint8_t>("int") == 3);
  CHECK(config.get<Value>("text") == Value("3"));
  CHECK(config.get<bool>("flag"));
}

TEST_CASE("a wrong type is refused with path, wanted type and value found") {
  const Config config = {{"int", 3},
                         {"negative", -1},
                         {"big", 300},
                         {"float", 3.0},
                         {"text", "3"},
                         {"flag", true},
                         {"none", {}},
                         {"list", list({1, "x"})},
                         {"map", {{"inner", 0.5}}}};
  struct Case {
    const char* what;
    std::function<void()> read;
    std::vector<const char*> parts;
  };
  const Case cases[] = {
      {"no integer from a float", [&] { config.get<int>("float"); }, {"'float'", "integer", "3.0"}},
      {"no bool from an integer", [&] { config.get<bool>("int"); }, {"'int'", "bool", "integer 3"}},
      {"no integer from a bool", [&] { config.get<int>("flag"); }, {"'flag'", "bool true"}},
      {"no number from text", [&] { config.get<double>("text"); }, {"'text'", "number", "\"3\""}},
      {"no text from a number", [&] { config.get<std::string>("int"); }, {"'int'", "string"}},
      {"no number from null", [&] { config.get<double>("none"); }, {"'none'", "null"}},
      {"range of uint8", [&] { config.get<std::uint8_t>("big"); }, {"'big'", "0 to 255", "300"}},
      {"range of unsigned", [&] { config.get<std::uint64_t>("negative"); }, {"'negative'", "-1"}},
      {"items of a list", [&] { config.get<std::vector<int>>("list"); }, {"'list'", "\"x\""}},
      {"no list from a map", [&] { config.get<std::vector<int>>("map"); }, {"'map'", "a list"}},
      {"no map from a number", [&] { config.get<Config>("int"); }, {"'int'", "a map"}},
      {"nested path", [&] { config.get<int>("map/inner"); }, {"'map/inner'", "0.5"}},
      {"below a number", [&] { config.get<int>("int/x"); }, {"'int'", "a map", "integer 3"}},
      {"get_or with a wrong type", [&] { config.get_or("text", 1.0); }, {"'text'", "number"}},
      {"a list as a configuration", [] { (void)Config(list({1})); }, {"a map", "list"}},
      {"a number as a result", [] { (void)Result(Value(1)); }, {"a map", "integer"}},
  };
  for (const Case& one : cases) {
    CAPTURE(one.what);
    const std::string text = refusal(one.read);
    for (const char* part : one.parts) CHECK_HAS(text, part);
  }
}

TEST_CASE("a key that is not there is refused with the keys there are, the nearest first") {
  const Config config = {{"batch_size", 1}, {"model", {{"layers", 2}, {"width", 3}}}, {"lr", 0.1}};
  const std::string top = refusal([&] { config.get<double>("learning"); });
  CHECK_HAS(top, "'learning'");
  CHECK_HAS(top, "batch_size, model, lr");
  CHECK_HAS(refusal([&] { config.get<double>("rl"); }), "'rl'");
  CHECK_HAS(refusal([&] { config.get<int>("modle/layers"); }), "model, batch_size, lr");
  const std::string nested = refusal([&] { config.get<int>("model/widht"); });
  CHECK_HAS(nested, "'model/widht'");
  CHECK_HAS(nested, "in 'model'");
  CHECK_HAS(nested, "width, layers");
  CHECK_HAS(refusal([] { Config().at("x"); }), "it is empty");
}

TEST_CASE("get_or gives the fallback only when the path is not there") {
  const Config config = {{"x", 2}, {"name", "adam"}, {"model", {{"act", "relu"}}}};
  CHECK(config.get_or("x", 1.0) == 2.0);
  CHECK(config.get_or("y", 1.0) == 1.0);
  CHECK(config.get_or("model/depth", 7) == 7);
  CHECK(config.get_or("x/deeper", 7) == 7);
  static_assert(std::is_same_v<decltype(config.get_or("name", "sgd")), std::string>);
  CHECK(config.get_or("name", "sgd") == "adam");
  CHECK(config.get_or("nam", "sgd") == "sgd");
  CHECK(config.get_or("model/act", std::string("x")) == "relu");
}

TEST_CASE("keys are not empty, hold no slash and come once") {
  CHECK_HAS(refusal([] { (void)Config{{"a/b", 1}}; }), "'a/b'");
  CHECK_HAS(refusal([] { (void)Config{{"", 1}}; }), "empty");
  CHECK_HAS(refusal([] { (void)Config{{"a", 1}, {"b", 2}, {"a", 3}}; }), "'a' is given twice");
  CHECK_HAS(refusal([] { Config().set("a//b", 1); }), "empty");
  CHECK_HAS(refusal([] { Config().set("", 1); }), "empty");
}

TEST_CASE("set makes the maps on the way, erase takes out one value") {
  Config config;
  config.set("model/layers", 2);
  config.set("lr", 0.5);
  config.set("model/act", "relu");
  config.set("lr", 0.25);
  CHECK(config.dump() == R"({"model":{"layers":2,"act":"relu"},"lr":0.25})");
  CHECK_HAS(refusal([&] { config.set("lr/x", 1); }), "a map above it");
  CHECK(config.erase("model/layers"));
  CHECK_FALSE(config.erase("model/layers"));
  CHECK_FALSE(config.erase("lr/x"));
  CHECK(config.dump() == R"({"model":{"act":"relu"},"lr":0.25})");
}

TEST_CASE("contains and find look below maps only") {
  const Config config = {{"a", {{"b", nullptr}}}, {"list", list({1})}};
  CHECK(config.contains("a"));
  CHECK(config.contains("a/b"));
  CHECK(config.find("a/b")->is_null());
  for (const char* path : {"", "/", "b", "a/", "a/c", "a/b/c", "list/0", "/a"}) {
    CAPTURE(path);
    CHECK_FALSE(config.contains(path));
  }
}

TEST_CASE("equality asks for the same types, values and order") {
  const double nan = std::nan("");
  CHECK(Value(1) == Value(1));
  CHECK_FALSE(Value(1) == Value(1.0));
  CHECK_FALSE(Value(true) == Value(1));
  CHECK_FALSE(Value("1") == Value(1));
  CHECK(Value(nan) == Value(nan));
  CHECK(list({nan, 1}) == list({nan, 1}));
  CHECK(Value{{"a", nan}} == Value{{"a", nan}});
  CHECK_FALSE(Value{{"a", 1}, {"b", 2}} == Value{{"b", 2}, {"a", 1}});
  CHECK_FALSE(Value() == Value::make_map());
}

TEST_CASE("leaves are all values but filled maps, with their paths in order") {
  const Config config = {
      {"b", {{"c", 1}, {"d", {{"e", "x"}}}}}, {"a", list({1})}, {"m", Value::make_map()}};
  std::vector<std::string> paths;
  for (const auto& [path, value] : config.leaves()) paths.push_back(path + "=" + value->dump());
  CHECK(paths == std::vector<std::string>{"b/c=1", "b/d/e=\"x\"", "a=[1]", "m={}"});
}

TEST_CASE("a part of a configuration is a configuration") {
  const Config config = {{"model", {{"layers", 2}}}};
  const auto model = config.get<Config>("model");
  CHECK(model.get<int>("layers") == 2);
  CHECK(config.at("model").get<int>("layers") == 2);
}

}  // namespace
}  // namespace tune
