// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tidegate {

/// Changes to the header fields of a message on its way. Names are in lower case. Fields in
/// `remove` are removed before those in `set` are added.
struct HeaderEdits {
  struct Set {
    std::string name = {};
    std::string value = {};
    friend bool operator==(const Set&, const Set&) = default;
  };
  std::vector<Set> set = {};  ///< Each replaces all fields of its name.
  std::vector<std::string> remove = {};

  [[nodiscard]] bool empty() const noexcept { return set.empty() && remove.empty(); }
  friend bool operator==(const HeaderEdits&, const HeaderEdits&) = default;
};

}  // namespace tidegate
