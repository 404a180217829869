#include "tune/spec/yaml_nodes.h"

#include <map>
#include <sstream>

#include <fmt/format.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

namespace tune {

namespace {

using Node = std::shared_ptr<YamlNode>;

class NodeBuilder : public YAML::EventHandler {
 public:
  std::shared_ptr<const YamlNode> root() const { return root_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ == 0) return;
    throw YamlProblem{mark.line + 1,
                      "a second document begins here: a sweep is one document (is the "
                      "indentation right?)"};
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(mark, YamlNode::Kind::kNull, "?", anchor)->complete = true;
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    const Node node = add(mark, YamlNode::Kind::kScalar, tag, anchor);
    node->text = text;
    node->complete = true;
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const Node node = anchors_[anchor];
    if (!node || !node->complete) {
      throw YamlProblem{mark.line + 1,
                        "this alias stands for something that holds the alias itself"};
    }
    attach(node);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open_.push_back(add(mark, YamlNode::Kind::kList, tag, anchor));
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open_.push_back(add(mark, YamlNode::Kind::kMap, tag, anchor));
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  Node add(const YAML::Mark& mark, YamlNode::Kind kind, const std::string& tag,
           YAML::anchor_t anchor) {
    auto node = std::make_shared<YamlNode>();
    node->kind = kind;
    node->line = mark.line + 1;
    node->tag = tag;
    attach(node);
    if (anchor != YAML::NullAnchor) anchors_[anchor] = node;
    return node;
  }
  void attach(const Node& node) {
    if (open_.empty()) {
      root_ = node;
    } else {
      open_.back()->children.push_back(node);
    }
  }
  void close() {
    open_.back()->complete = true;
    open_.pop_back();
  }

  int documents_ = 0;
  Node root_;
  std::vector<Node> open_;
  std::map<YAML::anchor_t, Node> anchors_;
};

}  // namespace

std::shared_ptr<const YamlNode> read_yaml_nodes(std::string_view text) {
  std::istringstream stream{std::string(text)};
  NodeBuilder builder;
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::DeepRecursion& error) {
    throw YamlProblem{error.mark.line + 1, "is nested too deeply"};
  } catch (const YAML::Exception& error) {
    throw YamlProblem{error.mark.is_null() ? 0 : error.mark.line + 1,
                      fmt::format("this is not YAML: {}", error.msg)};
  }
  return builder.root();
}

}  // namespace tune
