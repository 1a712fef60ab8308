// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory_resource>
#include <optional>
#include <string_view>
#include <vector>

namespace tidegate {

/// The outermost members of a JSON object: all that a token's header and claims are read for.
/// All memory comes from the resource that it was read with.
class JwtJson {
 public:
  enum class Kind : std::uint8_t { kString, kInteger, kNumber, kArray, kOther };
  struct Member {
    std::string_view name = {};
    Kind kind = Kind::kOther;
    std::string_view text = {};  ///< kString, kInteger.
    double number = 0;           ///< kInteger, kNumber.
    /// kArray: its strings, as a range of `items`.
    std::size_t first_item = 0;
    std::size_t item_count = 0;
  };

  /// Nothing if it is not one JSON object and nothing else, is nested deeper than 16, or has two
  /// members of one name in any object: two readers could then see different claims.
  [[nodiscard]] static std::optional<JwtJson> Parse(std::string_view text,
                                                    std::pmr::memory_resource& memory);

  [[nodiscard]] const Member* Find(std::string_view name) const noexcept;
  /// Whether the member is that string, or an array that holds it.
  [[nodiscard]] bool Holds(std::string_view name, std::string_view value) const noexcept;

 private:
  friend class JwtJsonHandler;
  explicit JwtJson(std::pmr::memory_resource& memory) : members_(&memory), items_(&memory) {}

  std::pmr::vector<Member> members_;
  std::pmr::vector<std::string_view> items_;
};

}  // namespace tidegate
