// SPDX-License-Identifier: Apache-2.0
#include "store/fleet_register.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

namespace tidegate {

std::vector<FleetRegister::Record> FleetRegister::Merge(std::vector<Record> a,
                                                        const std::vector<Record>& b,
                                                        std::size_t most) {
  const auto middle = static_cast<std::ptrdiff_t>(a.size());
  std::ranges::copy(b, std::back_inserter(a));
  std::ranges::inplace_merge(a, a.begin() + middle, std::ranges::greater{}, &Record::time_ms);
  if (a.size() > most) a.resize(most);
  return a;
}

}  // namespace tidegate
