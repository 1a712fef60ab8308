// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace tidegate {

/// What kind of mistake an Error reports, for programs that branch on it.
enum class ErrorCode : std::uint8_t {
  kBadQuota,      ///< The quota cannot work; the message says why and how to correct it.
  kBadCharge,     ///< A cost, count, identity or lease id is outside its range.
  kUnsupported,   ///< The algorithm has no such operation, such as a debit on `concurrency`.
  kUnknownRule,   ///< The configuration has no rule of that name.
  kTooManyRules,  ///< More rules match one request than it may be charged for.
  kExhausted,     ///< The store has no room to apply the operation safely.
  kNetwork,       ///< A listener could not be opened on an address, or a connection to it failed.
  kBadConfig,     ///< A configuration, key or certificate that cannot work.
  kUnavailable,   ///< The call was not sent to the store, or the store rejected it: nothing was
                  ///< changed.
  kBadArgument,   ///< A text that cannot be parsed as a number, duration or size.
  kBadAddress,    ///< A text that is not an IP address or network.
};

/// A mistake of the caller or a limit of the machine. A denied request is not
/// an Error: it is a Decision.
struct Error {
  ErrorCode code;
  std::string message;  ///< One sentence for the person who has to act.
};

/// True for types that hold an Error and never a value, such as std::unexpected<Error>.
template <class U>
concept HoldsError = requires(U&& failure) {
  { std::forward<U>(failure).error() } -> std::convertible_to<Error>;
} && !requires(const std::remove_cvref_t<U>& result) { result.has_value(); };

/// A value or an Error: std::expected<T, Error> for C++20. value() throws std::logic_error with the
/// Error's message if there is no value; `*` and `->` do not check.
template <class T>
class [[nodiscard]] Result {
 public:
  Result()
    requires std::default_initializable<T>
  = default;
  template <class U = T>
    requires(std::constructible_from<T, U &&> && !HoldsError<U &&> &&
             !std::same_as<std::remove_cvref_t<U>, Result> &&
             !std::same_as<std::remove_cvref_t<U>, Error>)
  Result(U&& value)  // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
      : state_(std::in_place_index<0>, std::forward<U>(value)) {}
  Result(Error error)  // NOLINT(google-explicit-constructor)
      : state_(std::in_place_index<1>, std::move(error)) {}
  template <HoldsError U>
  Result(U&& failure)  // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
      : Result(Error(std::forward<U>(failure).error())) {}

  [[nodiscard]] bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  [[nodiscard]] T& operator*() & noexcept { return *std::get_if<0>(&state_); }
  [[nodiscard]] const T& operator*() const& noexcept { return *std::get_if<0>(&state_); }
  [[nodiscard]] T&& operator*() && noexcept { return std::move(*std::get_if<0>(&state_)); }
  [[nodiscard]] T* operator->() noexcept { return std::get_if<0>(&state_); }
  [[nodiscard]] const T* operator->() const noexcept { return std::get_if<0>(&state_); }

  [[nodiscard]] T& value() & { return Checked(), **this; }
  [[nodiscard]] const T& value() const& { return Checked(), **this; }
  [[nodiscard]] T&& value() && { return Checked(), *std::move(*this); }
  template <class U>
  [[nodiscard]] T value_or(U&& other) const& {
    return has_value() ? **this : static_cast<T>(std::forward<U>(other));
  }

  /// REQUIRES: !has_value().
  [[nodiscard]] Error& error() & noexcept { return *std::get_if<1>(&state_); }
  [[nodiscard]] const Error& error() const& noexcept { return *std::get_if<1>(&state_); }
  [[nodiscard]] Error&& error() && noexcept { return std::move(*std::get_if<1>(&state_)); }

  friend bool operator==(const Result& result, const T& value)
    requires std::equality_comparable<T>
  {
    return result.has_value() && *result == value;
  }

 private:
  void Checked() const {
    if (!has_value()) throw std::logic_error(error().message);
  }

  std::variant<T, Error> state_;
};

/// The result of an operation that returns no value: success or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  template <HoldsError U>
  Result(U&& failure)  // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
      : Result(Error(std::forward<U>(failure).error())) {}

  [[nodiscard]] bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }
  /// Throws std::logic_error with the message of the Error if there is one.
  void value() const {
    if (!has_value()) throw std::logic_error(error().message);
  }
  /// REQUIRES: !has_value().
  [[nodiscard]] Error& error() noexcept { return *std::get_if<1>(&state_); }
  [[nodiscard]] const Error& error() const noexcept { return *std::get_if<1>(&state_); }

 private:
  std::variant<std::monostate, Error> state_;
};

}  // namespace tidegate
