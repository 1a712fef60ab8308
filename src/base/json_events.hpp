// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/basic_parser.hpp>
#include <cstddef>
#include <cstring>
#include <functional>
#include <limits>
#include <memory_resource>
#include <string_view>
#include <vector>

namespace tidegate {

/// The base of handlers for Boost.JSON's parser: sets no limits, because the size of the document
/// bounds everything, ignores events that no handler needs, and joins texts that come in parts.
/// Handlers build no tree: there, the last of two equal names would silently win.
class JsonEvents {
 public:
  using JsonText = boost::json::string_view;
  using JsonError = boost::json::error_code;

  static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_array_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_key_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_string_size = std::numeric_limits<std::size_t>::max();

  bool on_document_begin(JsonError&) noexcept { return true; }
  bool on_document_end(JsonError&) noexcept { return true; }
  bool on_comment_part(JsonText, JsonError&) noexcept { return true; }
  bool on_comment(JsonText, JsonError&) noexcept { return true; }
  bool on_number_part(JsonText, JsonError&) noexcept { return true; }
  bool on_key_part(JsonText text, std::size_t, JsonError&) { return Append(text); }
  bool on_string_part(JsonText text, std::size_t, JsonError&) { return Append(text); }

 protected:
  /// `json` is the document. It and `memory` must outlive all texts that Whole returns.
  JsonEvents(std::string_view json, std::pmr::memory_resource& memory)
      : json_(json), memory_(memory), parts_(&memory) {}

  /// Returns a whole text: the parts so far, and `last`. Copies only texts with escape sequences.
  [[nodiscard]] std::string_view Whole(JsonText last) {
    if (parts_.empty()) {
      const std::string_view view{last.data(), last.size()};
      if (view.empty()) return "";
      const bool in_document = std::less_equal<>{}(json_.data(), view.data()) &&
                               std::less<>{}(view.data(), json_.data() + json_.size());
      if (in_document) return view;
    }
    Append(last);
    char* const copy = static_cast<char*>(memory_.allocate(parts_.size(), 1));
    std::memcpy(copy, parts_.data(), parts_.size());
    const std::string_view whole(copy, parts_.size());
    parts_.clear();
    return whole;
  }

 private:
  bool Append(JsonText part) {
    parts_.insert(parts_.end(), part.data(), part.data() + part.size());
    return true;
  }

  std::string_view json_;
  std::pmr::memory_resource& memory_;
  std::pmr::vector<char> parts_;
};

}  // namespace tidegate
