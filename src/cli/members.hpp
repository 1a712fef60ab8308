// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace tidegate::cli {

/// Members of what a server answered. A newer or an older one may leave any of them out or mean
/// something else by it: what is not there, or is of another type, is 0, empty or false.
class Members {
 public:
  Members() = default;
  explicit Members(const boost::json::object& object) : object_(&object) {}
  explicit Members(const boost::json::value& value) : object_(value.if_object()) {}

  [[nodiscard]] bool Has(std::string_view name) const { return Find(name) != nullptr; }
  [[nodiscard]] std::int64_t Whole(std::string_view name) const;
  [[nodiscard]] double Number(std::string_view name) const;
  [[nodiscard]] std::string Text(std::string_view name) const;  ///< Of a number and a bool too.
  [[nodiscard]] bool Yes(std::string_view name) const;
  [[nodiscard]] std::chrono::milliseconds Ms(std::string_view name) const;
  [[nodiscard]] Members Of(std::string_view name) const;  ///< Empty where it is no object.
  [[nodiscard]] const boost::json::array& Array(std::string_view name) const;
  [[nodiscard]] bool empty() const { return object_ == nullptr || object_->empty(); }
  /// nullptr: there is none, or it is null.
  [[nodiscard]] const boost::json::value* Find(std::string_view name) const;

  [[nodiscard]] auto begin() const { return All().begin(); }
  [[nodiscard]] auto end() const { return All().end(); }

 private:
  [[nodiscard]] const boost::json::object& All() const;
  const boost::json::object* object_ = nullptr;
};

/// A number of any kind; 0 of anything else.
[[nodiscard]] double NumberOf(const boost::json::value& value);
[[nodiscard]] std::int64_t WholeOf(const boost::json::value& value);
/// What a person would write: a string without quotes, a list with commas.
[[nodiscard]] std::string TextOf(const boost::json::value& value);

}  // namespace tidegate::cli
