// SPDX-License-Identifier: Apache-2.0
#include "config/yaml.hpp"

#include <yaml.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <unordered_map>

#include "base/ascii.hpp"
#include "base/utf8.hpp"

namespace tidegate {
namespace {

/// Returns true if YAML 1.1, and so libyaml, ends a line here while most editors do not: at a
/// carriage return alone, U+0085, U+2028 or U+2029. Line numbers would differ from there on.
bool IsOddLineEnd(std::string_view rest) noexcept {
  if (rest.front() == '\r') return !rest.starts_with("\r\n");
  return rest.starts_with("\xc2\x85") || rest.starts_with("\xe2\x80\xa8") ||
         rest.starts_with("\xe2\x80\xa9");
}

Problem Mistake(Position at, std::string message) {
  return Problem{.at = at, .where = {}, .message = std::move(message)};
}

/// Returns the first problem of a text that libyaml should not read: too large, not UTF-8, control
/// characters (NUL among them), a tab in the indentation, a directive.
std::optional<Problem> CheckYamlText(std::string_view text) {
  if (text.size() > kMaxYamlBytes) return Mistake({}, "the file is larger than 16 MiB");
  int line = 1;
  bool indenting = true;
  for (std::size_t i = 0, start = 0; i < text.size();) {
    const char c = text[i];
    const auto mistake = [&](const char* message) {
      return Mistake({line, static_cast<int>(i - start) + 1}, message);
    };
    if (c == '\t' && indenting) {
      return mistake("a tab indents this line; YAML is indented with spaces");
    }
    // libyaml compares each %TAG with all before it: 20,000 of them take it 0.6 s.
    if (c == '%' && i == start) {
      return mistake("directives such as `%YAML` are not supported; remove this line");
    }
    if (c == '\0') return mistake("a NUL byte; this is not a text file");
    if (IsControl(c) && c != '\t' && c != '\r' && c != '\n') {
      return mistake(
          "a control character; write it in double quotes as an escape, as in \"\\x1b\"");
    }
    const std::size_t length = Utf8Length(text.substr(i));
    if (length == 0) return mistake("this is not UTF-8; save the file in that encoding");
    if (IsOddLineEnd(text.substr(i))) {
      return mistake("a line ends here in an unusual way; use plain line feeds");
    }
    i += length;
    indenting = c == '\n' || (indenting && c == ' ');
    if (c != '\n') continue;
    ++line;
    start = i;
  }
  return std::nullopt;
}

/// Returns the position after the last character.
Position EndOf(std::string_view text, const SourceFile& file) {
  const auto lines = std::count(text.begin(), text.end(), '\n');
  const auto last = text.rfind('\n');  // npos + 1 is 0.
  return {static_cast<int>(lines) + 1, static_cast<int>(text.size() - (last + 1)) + 1, file};
}

const char* Chars(const yaml_char_t* text) noexcept { return reinterpret_cast<const char*>(text); }

/// Runs libyaml's parser event by event. The text must outlive this object.
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

  /// Returns the next event, which is valid until the next call; nullptr if the text is invalid.
  const yaml_event_t* Next() {
    yaml_event_delete(&event_);
    return yaml_parser_parse(&parser_, &event_) != 0 ? &event_ : nullptr;
  }

  /// Returns the position of `mark`, at most the end of the text, where libyaml begins a new line.
  [[nodiscard]] Position At(const yaml_mark_t& mark) const noexcept {
    if (static_cast<int>(mark.line) >= end_.line) return end_;
    return {static_cast<int>(mark.line) + 1, static_cast<int>(mark.column) + 1, end_.file};
  }

  [[nodiscard]] Problem Why() const {
    std::string message = "this is not valid YAML: ";
    if (parser_.context != nullptr) message += std::string{parser_.context} + ", ";
    message += parser_.problem != nullptr ? parser_.problem : "the text cannot be parsed";
    // An unclosed quote is reported where it begins, not where the file ends.
    const bool unended = message.ends_with("unexpected end of stream");
    return Mistake(At(unended ? parser_.context_mark : parser_.problem_mark), std::move(message));
  }

 private:
  Position end_;
  yaml_parser_t parser_{};
  yaml_event_t event_{};
};

/// Returns true if YAML 1.2's core schema reads `text` as null.
bool IsNull(std::string_view text) noexcept {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

/// Builds nodes from events, and reports a problem as soon as a limit is exceeded.
class Builder {
 public:
  [[nodiscard]] bool done() const noexcept { return document_.root != nullptr; }
  [[nodiscard]] YamlDocument Take() { return std::move(document_); }

  std::optional<Problem> Handle(const yaml_event_t& event, Position at) {
    switch (event.type) {
      case YAML_DOCUMENT_START_EVENT:
        if (done())
          return Mistake(at, "a second document begins here; a configuration is one document");
        return std::nullopt;
      case YAML_SCALAR_EVENT: return Scalar(event.data.scalar, at);
      case YAML_ALIAS_EVENT: return Alias(Chars(event.data.alias.anchor), at);
      case YAML_SEQUENCE_START_EVENT:
        return Open(YamlNode::Kind::kList, event.data.sequence_start, at);
      case YAML_MAPPING_START_EVENT:
        return Open(YamlNode::Kind::kMap, event.data.mapping_start, at);
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT: return Close();
      default: return std::nullopt;
    }
  }

 private:
  static std::optional<Problem> CheckTag(const yaml_char_t* tag, Position at) {
    if (tag == nullptr) return std::nullopt;
    return Mistake(at, "tags such as `!!int` are not supported; remove the tag");
  }

  template <class Event>
  std::optional<Problem> Scalar(const Event& scalar, Position at) {
    if (auto problem = CheckTag(scalar.tag, at)) return problem;
    YamlNode& node = Add(YamlNode::Kind::kQuoted, scalar.anchor, at);
    node.text = std::string(Chars(scalar.value), scalar.length);
    if (scalar.style == YAML_PLAIN_SCALAR_STYLE) {
      node.kind = IsNull(node.text) ? YamlNode::Kind::kNull : YamlNode::Kind::kPlain;
    }
    return Attach(node, at);
  }

  std::optional<Problem> Alias(const char* anchor, Position at) {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) return Mistake(at, "this alias has no anchor");
    if (found->second->open) return Mistake(at, "this alias is inside its own anchor");
    return Attach(*found->second, at);
  }

  template <class Start>
  std::optional<Problem> Open(YamlNode::Kind kind, const Start& start, Position at) {
    if (auto problem = CheckTag(start.tag, at)) return problem;
    if (open_.size() >= kMaxYamlDepth) return Mistake(at, "nested more than 64 levels deep");
    YamlNode& node = Add(kind, start.anchor, at);
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
    if (anchor != nullptr) anchors_[Chars(anchor)] = &node;  // The latest anchor of a name counts.
    return node;
  }

  /// Adds a node to the innermost open list or map, or makes it the root. Sizes are at most a
  /// million each, so sums cannot overflow.
  std::optional<Problem> Attach(const YamlNode& node, Position at) {
    if (open_.empty()) {
      document_.root = &node;
      return std::nullopt;
    }
    YamlNode& around = *open_.back();
    around.size += node.size;
    if (around.size > kMaxYamlNodes ||
        static_cast<std::int64_t>(document_.nodes.size()) > kMaxYamlNodes) {
      return Mistake(at,
                     "the file has more than 1,000,000 values, where each use of an alias counts");
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
    return in_file(Mistake({}, std::string{"the file cannot be parsed: "} + error.what()));
  }
}

}  // namespace tidegate
