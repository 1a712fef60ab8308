// SPDX-License-Identifier: Apache-2.0
#include "rules/yaml_document.hpp"

#include <yaml.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <unordered_map>

#include "rules/yaml_text.hpp"

namespace tidegate {
namespace {

/// Behind the last character.
Position EndOf(std::string_view text, const SourceFile& file) {
  const auto lines = std::count(text.begin(), text.end(), '\n');
  const auto last = text.rfind('\n');  // npos + 1 is 0.
  return {static_cast<int>(lines) + 1, static_cast<int>(text.size() - (last + 1)) + 1, file};
}

Problem Mistake(Position at, std::string message) {
  return Problem{.at = at, .where = {}, .message = std::move(message)};
}

std::string_view View(const yaml_char_t* text, std::size_t size) noexcept {
  return {reinterpret_cast<const char*>(text), size};
}

std::string Text(const yaml_char_t* text) {
  return text == nullptr ? std::string{} : reinterpret_cast<const char*>(text);
}

/// libyaml's parser, event by event, over a text that outlives it.
class Events {
 public:
  Events(std::string_view text, const SourceFile& file) : end_(EndOf(text, file)) {
    if (yaml_parser_initialize(&parser_) == 0) throw std::bad_alloc();
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const yaml_char_t*>(text.data()),
                                 text.size());
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  ~Events() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }

  /// The next event, until the next call; nullptr: a mistake.
  const yaml_event_t* Next() {
    yaml_event_delete(&event_);
    return yaml_parser_parse(&parser_, &event_) != 0 ? &event_ : nullptr;
  }

  /// Inside the text: libyaml begins a line where a text without a final newline ends.
  [[nodiscard]] Position At(const yaml_mark_t& mark) const noexcept {
    if (static_cast<int>(mark.line) >= end_.line) return end_;
    return {static_cast<int>(mark.line) + 1, static_cast<int>(mark.column) + 1, end_.file};
  }

  [[nodiscard]] Problem Why() const {
    std::string message = "this is not valid YAML: ";
    if (parser_.context != nullptr) message += std::string{parser_.context} + ", ";
    message += parser_.problem != nullptr ? parser_.problem : "it cannot be read";
    // A quote that never ends is looked for where it begins, not where the file ends.
    const bool unended = message.ends_with("unexpected end of stream");
    return Mistake(At(unended ? parser_.context_mark : parser_.problem_mark), std::move(message));
  }

 private:
  Position end_;
  yaml_parser_t parser_{};
  yaml_event_t event_{};
};

/// What YAML 1.2's core schema takes for null.
bool IsNull(std::string_view text) noexcept {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

/// Builds nodes from events and refuses what is beyond the limits as soon as it is.
class Builder {
 public:
  [[nodiscard]] bool done() const noexcept { return document_.root != nullptr; }
  [[nodiscard]] YamlDocument Take() { return std::move(document_); }

  std::optional<Problem> Handle(const yaml_event_t& event, Position at) {
    switch (event.type) {
      case YAML_DOCUMENT_START_EVENT:
        if (done()) return Mistake(at, "a second document begins here; a configuration is one");
        return std::nullopt;
      case YAML_SCALAR_EVENT:
        return Scalar(event, at);
      case YAML_ALIAS_EVENT:
        return Alias(event, at);
      case YAML_SEQUENCE_START_EVENT:
        return Open(YamlNode::Kind::kList, event.data.sequence_start.tag,
                    event.data.sequence_start.anchor, at);
      case YAML_MAPPING_START_EVENT:
        return Open(YamlNode::Kind::kMap, event.data.mapping_start.tag,
                    event.data.mapping_start.anchor, at);
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT:
        return Close();
      case YAML_NO_EVENT:
      case YAML_STREAM_START_EVENT:
      case YAML_STREAM_END_EVENT:
      case YAML_DOCUMENT_END_EVENT:
        return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  static std::optional<Problem> CheckTag(const yaml_char_t* tag, Position at) {
    if (tag == nullptr) return std::nullopt;
    return Mistake(at, "tags such as `!!int` have no meaning here; remove it");
  }

  std::optional<Problem> Scalar(const yaml_event_t& event, Position at) {
    const auto& scalar = event.data.scalar;
    if (auto problem = CheckTag(scalar.tag, at)) return problem;
    YamlNode& node = Add(YamlNode::Kind::kQuoted, scalar.anchor, at);
    node.text = View(scalar.value, scalar.length);
    if (scalar.style == YAML_PLAIN_SCALAR_STYLE) {
      node.kind = IsNull(node.text) ? YamlNode::Kind::kNull : YamlNode::Kind::kPlain;
    }
    return Attach(node, at);
  }

  std::optional<Problem> Alias(const yaml_event_t& event, Position at) {
    const auto found = anchors_.find(Text(event.data.alias.anchor));
    if (found == anchors_.end()) return Mistake(at, "this alias has no anchor");
    if (found->second->open) return Mistake(at, "this alias stands inside what it stands for");
    return Attach(*found->second, at);
  }

  std::optional<Problem> Open(YamlNode::Kind kind, const yaml_char_t* tag,
                              const yaml_char_t* anchor, Position at) {
    if (auto problem = CheckTag(tag, at)) return problem;
    if (open_.size() >= kMaxYamlDepth) return Mistake(at, "nested more than 64 levels deep");
    YamlNode& node = Add(kind, anchor, at);
    node.open = true;
    open_.push_back(&node);
    return std::nullopt;
  }

  std::optional<Problem> Close() {
    YamlNode& node = *open_.back();
    open_.pop_back();
    node.open = false;
    return Attach(node, node.at);
  }

  YamlNode& Add(YamlNode::Kind kind, const yaml_char_t* anchor, Position at) {
    YamlNode& node = document_.nodes.emplace_back();
    node.kind = kind;
    node.at = at;
    if (anchor != nullptr) anchors_[Text(anchor)] = &node;  // The latest of a name counts.
    return node;
  }

  /// Into what is open around it. Sizes are at most a million each, so sums cannot overflow.
  std::optional<Problem> Attach(const YamlNode& node, Position at) {
    if (open_.empty()) {
      document_.root = &node;
      return std::nullopt;
    }
    YamlNode& around = *open_.back();
    around.size += node.size;
    if (around.size > kMaxYamlNodes ||
        static_cast<std::int64_t>(document_.nodes.size()) > kMaxYamlNodes) {
      return Mistake(at, "more than 1,000,000 values, aliases unfolded");
    }
    around.children.push_back(&node);
    return std::nullopt;
  }

  YamlDocument document_;
  std::vector<YamlNode*> open_;
  std::unordered_map<std::string, const YamlNode*> anchors_;
};

std::expected<YamlDocument, Problem> Parse(std::string_view text, const SourceFile& file) {
  Events events(text, file);
  Builder builder;
  while (true) {
    const yaml_event_t* const event = events.Next();
    if (event == nullptr) return std::unexpected(events.Why());
    if (event->type == YAML_STREAM_END_EVENT) break;
    if (auto problem = builder.Handle(*event, events.At(event->start_mark)))
      return std::unexpected(*std::move(problem));
  }
  if (!builder.done()) {
    return std::unexpected(Mistake({}, "the file is empty; see examples/tidegate.yaml"));
  }
  return builder.Take();
}

}  // namespace

std::expected<YamlDocument, Problem> ParseYaml(std::string_view text, const SourceFile& file) {
  const auto in_file = [&](Problem problem) {
    problem.at.file = file;
    return std::unexpected(std::move(problem));
  };
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // A byte order mark.
  if (auto problem = CheckYamlText(text)) return in_file(*std::move(problem));
  try {
    auto document = Parse(text, file);
    if (!document) return in_file(std::move(document.error()));
    return document;
  } catch (const std::exception& error) {
    return in_file(Mistake({}, std::string{"this cannot be read: "} + error.what()));
  }
}

}  // namespace tidegate
