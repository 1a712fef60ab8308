// SPDX-License-Identifier: Apache-2.0
#include "rules/yaml_document.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <spanstream>

#include "rules/yaml_text.hpp"

namespace tidegate {
namespace {

Position At(const YAML::Mark& mark) noexcept {
  if (mark.is_null()) return {};
  return {mark.line + 1, mark.column + 1};
}

Problem Mistake(Position at, std::string message) {
  return Problem{.at = at, .where = {}, .message = std::move(message)};
}

/// Leaves yaml-cpp's parser from within an event; never leaves this file.
struct Refused {
  Problem problem;
};

[[noreturn]] void Refuse(Position at, const char* message) { throw Refused{Mistake(at, message)}; }

/// Builds nodes from the parser's events. yaml-cpp's own Node is not used: it costs several
/// allocations a node, knows no limits, and finds a map's keys one by one.
class Builder : public YAML::EventHandler {
 public:
  [[nodiscard]] bool done() const noexcept { return document_.root != nullptr; }
  [[nodiscard]] YamlDocument Take() { return std::move(document_); }
  /// Where the last scalar begins, if it is quoted: in bytes; else -1.
  [[nodiscard]] int last_quote() const noexcept { return last_quote_; }
  [[nodiscard]] Position last_at() const noexcept { return last_at_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (done()) Refuse(At(mark), "a second document begins here; a configuration is one");
    anchors_.assign(1, nullptr);  // yaml-cpp counts anchors from 1.
  }
  void OnDocumentEnd() override {}
  void OnAnchor(const YAML::Mark&, const std::string&) override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Attach(Add(mark, anchor, YamlNode::Kind::kNull), At(mark));
    last_quote_ = -1;
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    CheckTag(mark, tag);
    const bool plain = tag == "?";
    YamlNode& node = Add(mark, anchor, plain ? YamlNode::Kind::kPlain : YamlNode::Kind::kQuoted);
    node.text = value;
    Attach(node, At(mark));
    last_quote_ = plain ? -1 : mark.pos;
    last_at_ = At(mark);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const YamlNode* const node = anchor < anchors_.size() ? anchors_[anchor] : nullptr;
    if (node == nullptr) Refuse(At(mark), "this alias has no anchor");
    if (node->open) Refuse(At(mark), "this alias stands inside what it stands for");
    Attach(*node, At(mark));
    last_quote_ = -1;
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, YamlNode::Kind::kList);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, YamlNode::Kind::kMap);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapEnd() override { Close(); }

 private:
  static void CheckTag(const YAML::Mark& mark, const std::string& tag) {
    if (tag != "?" && tag != "!" && !tag.empty()) {
      Refuse(At(mark), "tags such as `!!int` have no meaning here; remove it");
    }
  }

  YamlNode& Add(const YAML::Mark& mark, YAML::anchor_t anchor, YamlNode::Kind kind) {
    YamlNode& node = document_.nodes.emplace_back();
    node.kind = kind;
    node.at = At(mark);
    if (anchor != 0) {
      if (anchor >= anchors_.size()) anchors_.resize(anchor + 1, nullptr);
      anchors_[anchor] = &node;
    }
    return node;
  }

  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            YamlNode::Kind kind) {
    CheckTag(mark, tag);
    if (open_.size() >= kMaxYamlDepth) {
      Refuse(At(mark), "nested more than 64 levels deep");
    }
    YamlNode& node = Add(mark, anchor, kind);
    node.open = true;
    open_.push_back(&node);
    last_quote_ = -1;
  }

  void Close() {
    YamlNode& node = *open_.back();
    open_.pop_back();
    node.open = false;
    Attach(node, node.at);
  }

  /// Into what is open around it. Sizes are at most a million each, so sums cannot overflow.
  void Attach(const YamlNode& node, Position at) {
    if (open_.empty()) {
      document_.root = &node;
      return;
    }
    YamlNode& around = *open_.back();
    around.size += node.size;
    if (around.size > kMaxYamlNodes ||
        static_cast<std::int64_t>(document_.nodes.size()) > kMaxYamlNodes) {
      Refuse(at, "more than 1,000,000 values, aliases unfolded");
    }
    around.children.push_back(&node);
  }

  YamlDocument document_;
  std::vector<YamlNode*> open_;
  std::vector<const YamlNode*> anchors_;
  int last_quote_ = -1;
  Position last_at_;
};

/// yaml-cpp 0.7 takes a quoted text that never ends for one that ends with the file, if the
/// file ends with a line. It can only be the last scalar.
bool EndsUnquoted(std::string_view text, int begin) noexcept {
  if (begin < 0 || static_cast<std::size_t>(begin) >= text.size()) return false;
  const char quote = text[static_cast<std::size_t>(begin)];
  if (quote != '"' && quote != '\'') return false;  // A block, or an anchor before the quote.
  for (auto i = static_cast<std::size_t>(begin) + 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      if (quote == '"' || i + 1 >= text.size() || text[i + 1] != quote) return false;
      ++i;
    }
  }
  return true;
}

/// yaml-cpp goes on counting where the file has ended.
Position Inside(std::string_view text, Position at) noexcept {
  std::size_t start = 0;
  int line = 1;
  for (; line < at.line; ++line) {
    const auto end = text.find('\n', start);
    if (end == std::string_view::npos) break;
    start = end + 1;
  }
  const auto length = static_cast<int>(std::min(text.find('\n', start), text.size()) - start);
  if (line < at.line) return {line, length + 1};
  return {line, std::min(at.column, length + 1)};
}

/// yaml-cpp's words, with what people mostly did where they see them.
std::string Explain(const std::string& words) {
  std::string text = "this is not valid YAML: ";
  if (words == YAML::ErrorMsg::BAD_FILE) return text + "it is nested too deeply";
  text += words;
  if (words == YAML::ErrorMsg::MAP_VALUE || words == YAML::ErrorMsg::END_OF_MAP) {
    return text + "; look for a wrong indentation, or a `: ` in a text without quotes";
  }
  if (words == YAML::ErrorMsg::END_OF_MAP_FLOW || words == YAML::ErrorMsg::END_OF_SEQ_FLOW) {
    return text + "; look for a missing `}` or `]`, or braces in a text without quotes";
  }
  return text;
}

std::expected<YamlDocument, Problem> Parse(std::string_view text) {
  std::ispanstream in(std::span<const char>(text.data(), text.size()));
  YAML::Parser parser(in);
  Builder builder;
  while (parser.HandleNextDocument(builder)) {
  }
  if (!builder.done()) {
    return std::unexpected(Mistake({}, "the file is empty; see examples/tidegate.yaml"));
  }
  if (EndsUnquoted(text, builder.last_quote())) {
    return std::unexpected(Mistake(builder.last_at(), "this quoted text never ends"));
  }
  return builder.Take();
}

}  // namespace

std::expected<YamlDocument, Problem> ParseYaml(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // A byte order mark.
  if (auto problem = CheckYamlText(text)) return std::unexpected(*std::move(problem));
  try {
    return Parse(text);
  } catch (Refused& refused) {
    return std::unexpected(std::move(refused.problem));
  } catch (const YAML::Exception& error) {
    return std::unexpected(Mistake(Inside(text, At(error.mark)), Explain(error.msg)));
  } catch (const std::exception& error) {
    return std::unexpected(Mistake({}, std::string{"this cannot be read: "} + error.what()));
  }
}

}  // namespace tidegate
