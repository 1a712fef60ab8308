// SPDX-License-Identifier: Apache-2.0
#include "rules/jwt_json.hpp"

#include <algorithm>
#include <array>
#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <compare>
#include <cstring>
#include <limits>
#include <string>

namespace tidegate {
namespace {

constexpr std::size_t kMaxDepth = 16;

namespace json = boost::json;
using JsonError = json::error_code;
using Text = json::string_view;

}  // namespace

/// What Boost.JSON's parser calls. It keeps no tree, since that would let the last of two equal
/// names win in silence.
class JwtJsonHandler {
 public:
  static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_array_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_key_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_string_size = std::numeric_limits<std::size_t>::max();

  JwtJsonHandler(JwtJson& json, std::pmr::memory_resource& memory)
      : json_(json), memory_(memory), keys_(&memory), partial_(&memory) {}

  /// Once the document is complete.
  [[nodiscard]] bool HasEqualKeys() {
    std::sort(keys_.begin(), keys_.end());
    return std::adjacent_find(keys_.begin(), keys_.end()) != keys_.end();
  }
  [[nodiscard]] bool is_object() const noexcept { return is_object_; }

  bool on_document_begin(JsonError&) noexcept { return true; }
  bool on_document_end(JsonError&) noexcept { return true; }
  bool on_object_begin(JsonError&) {
    if (depth_ == 0) is_object_ = true;
    Scalar({.kind = JwtJson::Kind::kOther});
    objects_[++depth_] = ++object_count_;
    return true;
  }
  bool on_object_end(std::size_t, JsonError&) noexcept {
    --depth_;
    return true;
  }
  bool on_array_begin(JsonError&) {
    Scalar({.kind = JwtJson::Kind::kArray, .first_item = json_.items_.size()});
    ++depth_;
    return true;
  }
  bool on_array_end(std::size_t, JsonError&) noexcept {
    --depth_;
    return true;
  }
  bool on_key_part(Text part, std::size_t, JsonError&) { return Append(part); }
  bool on_key(Text part, std::size_t, JsonError&) {
    name_ = Complete(part);
    keys_.push_back({objects_[depth_], name_});
    return true;
  }
  bool on_string_part(Text part, std::size_t, JsonError&) { return Append(part); }
  bool on_string(Text part, std::size_t, JsonError&) {
    Scalar({.kind = JwtJson::Kind::kString, .text = Complete(part)});
    return true;
  }
  bool on_number_part(Text, JsonError&) noexcept { return true; }
  bool on_int64(std::int64_t number, Text, JsonError&) { return Integer(number); }
  bool on_uint64(std::uint64_t number, Text, JsonError&) { return Integer(number); }
  bool on_double(double number, Text, JsonError&) {
    Scalar({.kind = JwtJson::Kind::kNumber, .number = number});
    return true;
  }
  bool on_bool(bool, JsonError&) {
    Scalar({.kind = JwtJson::Kind::kOther});
    return true;
  }
  bool on_null(JsonError&) {
    Scalar({.kind = JwtJson::Kind::kOther});
    return true;
  }
  bool on_comment_part(Text, JsonError&) noexcept { return true; }
  bool on_comment(Text, JsonError&) noexcept { return true; }

 private:
  struct Key {
    std::uint32_t object;
    std::string_view name;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  template <class N>
  bool Integer(N number) {
    std::array<char, 20> digits;  // What -2^63 and 2^64 - 1 need.
    const char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    Scalar({.kind = JwtJson::Kind::kInteger,
            .text = Complete({digits.data(), static_cast<std::size_t>(end - digits.data())}),
            .number = static_cast<double>(number)});
    return true;
  }

  /// A value that begins: a member of the outermost object, or a string in an array of it.
  void Scalar(JwtJson::Member member) {
    if (depth_ == 1 && is_object_) {
      member.name = name_;
      json_.members_.push_back(member);
    } else if (depth_ == 2 && member.kind == JwtJson::Kind::kString && !json_.members_.empty() &&
               json_.members_.back().kind == JwtJson::Kind::kArray) {
      json_.items_.push_back(member.text);
      ++json_.members_.back().item_count;
    }
  }

  bool Append(Text part) {
    partial_.append(part.data(), part.size());
    return true;
  }
  std::string_view Complete(Text part) {
    Append(part);
    char* const copy = static_cast<char*>(memory_.allocate(partial_.size() + 1, 1));
    std::memcpy(copy, partial_.data(), partial_.size());
    const std::string_view whole(copy, partial_.size());
    partial_.clear();
    return whole;
  }

  JwtJson& json_;
  std::pmr::memory_resource& memory_;
  std::pmr::vector<Key> keys_;
  std::pmr::string partial_;
  std::string_view name_;
  std::array<std::uint32_t, kMaxDepth + 2> objects_{};
  std::uint32_t object_count_ = 0;
  std::size_t depth_ = 0;
  bool is_object_ = false;
};

std::optional<JwtJson> JwtJson::Parse(std::string_view text, std::pmr::memory_resource& memory) {
  JwtJson result(memory);
  json::parse_options options;
  options.max_depth = kMaxDepth;
  json::basic_parser<JwtJsonHandler> parser(options, result, memory);
  JsonError error;
  const std::size_t read = parser.write_some(false, text.data(), text.size(), error);
  if (error || read != text.size() || !parser.done()) return std::nullopt;
  if (!parser.handler().is_object() || parser.handler().HasEqualKeys()) return std::nullopt;
  return result;
}

const JwtJson::Member* JwtJson::Find(std::string_view name) const noexcept {
  for (const Member& member : members_) {
    if (member.name == name) return &member;
  }
  return nullptr;
}

bool JwtJson::Holds(std::string_view name, std::string_view value) const noexcept {
  const Member* const member = Find(name);
  if (member == nullptr) return false;
  if (member->kind == Kind::kString) return member->text == value;
  const auto begin = items_.begin() + static_cast<std::ptrdiff_t>(member->first_item);
  const auto end = begin + static_cast<std::ptrdiff_t>(member->item_count);
  return std::find(begin, end, value) != end;
}

}  // namespace tidegate
