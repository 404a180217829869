#include "tune/view/config_forms.h"

#include <doctest/doctest.h>

#include "core/json.h"

namespace tune::view {
namespace {

Value config(const char* text) {
  return parse_json(text, "config");
}

TEST_CASE("a configuration as YAML: texts that YAML would take for something else are quoted") {
  CHECK(
      as_yaml(config(
          R"({"lr": 0.1, "n": 3, "f": 2.0, "act": "relu", "no": "yes", "model": {"deep": {"layers": 2}, "e": {}},
                           "l": [1, "on", [true]], "z": null, "q": "a: b # c\n\"", "v": "1.0", "o": "0x1f"})")) ==
      "lr: 0.1\n\"n\": 3\nf: 2.0\nact: relu\n\"no\": \"yes\"\nmodel:\n  deep:\n    layers: 2\n  e: "
      "{}\n"
      "l: [1, \"on\", [true]]\nz: null\nq: \"a: b # c\\n\\\"\"\nv: \"1.0\"\no: \"0x1f\"\n");
  CHECK(as_yaml(config("{}")) == "{}\n");
}

TEST_CASE("a configuration as C++") {
  CHECK(
      as_cpp(config(
          R"({"lr": 0.1, "f": 2.0, "act": "a\"\\\n\u0001é", "model": {"layers": 2}, "l": [1, "x"], "b": true, "z": null})")) ==
      "tune::Config{{\"lr\", 0.1}, {\"f\", 2.0}, {\"act\", \"a\\\"\\\\\\n\\001é\"}, {\"model\", "
      "{{\"layers\", 2}}}, "
      "{\"l\", tune::list({1, \"x\"})}, {\"b\", true}, {\"z\", nullptr}}");
  CHECK(as_cpp(config("{}")) == "tune::Config{}");
}

}  // namespace
}  // namespace tune::view
