// The output of yaml-cpp as plain nodes: text, tag and line, nothing resolved yet. Used by
// yaml_tree alone.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tune {

struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  int line = 0;      // 1-based
  std::string tag;   // "?": plain and untagged, "!": quoted; else as written
  std::string text;  // of a scalar
  // Items of a list; of a map: key, value, key, value ... An alias is the node it stands for.
  std::vector<std::shared_ptr<const YamlNode>> children;
  bool complete = false;  // false while it is read: an alias of itself
};

struct YamlProblem {
  int line = 0;
  std::string message;
};

// The only document in the text; null when it is empty. Throws YamlProblem at the first place that
// is not YAML.
std::shared_ptr<const YamlNode> read_yaml_nodes(std::string_view text);

}  // namespace tune
