// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "config/value.hpp"

// The tables by which the configuration is read. One row describes one key: its type and range, the
// member that it sets, its default and its meaning. The reader, the "did you mean" hints,
// docs/config.schema.json and the tables of docs/configuration.md all come from these rows.

namespace tidegate {

struct SectionInfo;

/// The type of a value, for types that several keys share or that need their own reader.
struct ValueType {
  std::string_view schema = {};  ///< The JSON schema of the value.
  std::string_view shown = {};   ///< The type in the documentation: "a text or a list of texts".
  /// The section or type that `schema` refers to, unless every schema has it.
  const SectionInfo* section = nullptr;
  const ValueType* type = nullptr;
  /// The name in `$defs` of the schema; empty: `schema` is repeated inline.
  std::string_view name = {};
};

/// One key of a section, independent of the type of the struct that it is read into.
struct FieldInfo {
  enum class Kind : std::uint8_t {
    kBool,
    kInteger,
    kSize,      ///< `min` and `max` are bytes.
    kDuration,  ///< `min` and `max` are microseconds.
    kWord,
    kSection,
    kOther,   ///< `type` describes it.
    kAbsent,  ///< A key of other versions; `description` completes "this version of tidegate ...".
  };
  using Read = void (*)(const ConfigValue& value, const FieldInfo& field, void* out);

  std::string_view key;
  std::string_view description;
  Kind kind = Kind::kOther;
  Read read = nullptr;
  /// Returns the member's value in a new struct, as YAML.
  std::string (*initial)(const FieldInfo&) = nullptr;
  std::int64_t min = 0;
  std::int64_t max = 0;
  std::span<const Word> words = {};
  const SectionInfo* section = nullptr;
  ValueType type = {};
  std::string_view missing = {};        ///< The error if the key is absent; empty: optional.
  std::string_view default_value = {};  ///< Replaces `initial`.
  std::string_view default_prose = {};  ///< A default that has no fixed value: "the upstream's".
  bool or_off = false;                  ///< The word `off` is allowed too; for a number, it is 0.
};

/// A section, independent of the type of the struct that it is read into.
struct SectionInfo {
  std::string_view name;  ///< The name in `$defs` of the schema and in the documentation.
  std::span<const FieldInfo> fields;
  std::string_view schema = {};  ///< Further members of the section's schema, as JSON.
};

/// A row of a section that is read into a T.
template <class T>
struct Field : FieldInfo {
  /// Makes the key required; `message` is the error if it is absent.
  [[nodiscard]] constexpr Field Required(std::string_view message) {
    missing = message;
    return *this;
  }
  /// Sets a default that is not the initial value of a member.
  [[nodiscard]] constexpr Field Default(std::string_view value) {
    default_value = value;
    return *this;
  }
  /// Describes a default that depends on something else.
  [[nodiscard]] constexpr Field Otherwise(std::string_view prose) {
    initial = nullptr;
    default_prose = prose;
    return *this;
  }
  /// Allows the word `off` too. It is 0 of a number; a section is not read.
  [[nodiscard]] constexpr Field OrOff() {
    or_off = true;
    return *this;
  }
};

/// The rows of a section that is read into a T.
template <class T, std::size_t N>
struct FieldTable {
  std::array<FieldInfo, N> fields;
};
template <class T, std::size_t N>
consteval FieldTable<T, N> Fields(const Field<T> (&fields)[N]) {
  FieldTable<T, N> table{};
  std::copy(std::begin(fields), std::end(fields), table.fields.begin());
  return table;
}

/// A section that is read into a T. `check` reports problems that involve several keys; it is
/// called if the section is a map, even after errors.
template <class T>
struct Section : SectionInfo {
  using Check = void (*)(const ConfigValue& section, T& out);
  template <std::size_t N>
  constexpr Section(std::string_view section_name, const FieldTable<T, N>& table,
                    Check section_check = nullptr, std::string_view more_schema = {})
      : SectionInfo{section_name, table.fields, more_schema}, check(section_check) {}

  Check check;
};

/// Reads the keys of a map into the struct `out`. Reports unknown, repeated and missing keys.
void ReadFields(const ConfigValue& map, const SectionInfo& section, void* out);

template <class T>
void ReadSection(const ConfigValue& value, const Section<T>& section, T& out) {
  ReadFields(value, section, &out);
  if (section.check != nullptr && value.is_map()) section.check(value, out);
}

/// A word of a fixed list and the value that it stands for.
template <class E>
struct Choice {
  std::string_view word;
  E value;
};
template <class E, std::size_t N>
struct WordTable {
  std::array<Word, N> words;
};
template <class E, std::size_t N>
consteval WordTable<E, N> Words(const Choice<E> (&choices)[N]) {
  WordTable<E, N> table{};
  for (std::size_t i = 0; i < N; ++i) {
    table.words[i] = {choices[i].word, static_cast<int>(choices[i].value)};
  }
  return table;
}

/// Reads a value by the kind of its field: a bool as 0 or 1, a duration as microseconds, a word as
/// the number of its enum value.
[[nodiscard]] std::optional<std::int64_t> ReadNumber(const ConfigValue& value,
                                                     const FieldInfo& field);
/// Returns the YAML text that ReadNumber reads as `number`; empty if no word has this number.
[[nodiscard]] std::string YamlText(const FieldInfo& field, std::int64_t number);

// The functions below return rows, as in `Size<&Limits::header_bytes>("header_bytes", ...)`.
// `Member` is a pointer to a member, or a function that returns a reference to a nested member;
// then the caller must name T.

template <class V, class T>
T FindOwner(V T::*);
template <class T>
T FindOwner(void (*)(const ConfigValue&, T&));
/// The struct of a member, or the one that a reader sets members of.
template <auto MemberOrReader>
using OwnerOf = decltype(FindOwner(MemberOrReader));

template <class V>
V WithoutOptional(const V&);
template <class V>
V WithoutOptional(const std::optional<V>&);
template <class T, auto Member>
using MemberType = std::remove_reference_t<std::invoke_result_t<decltype(Member), T&>>;
/// The type of a member, without std::optional.
template <class T, auto Member>
using ValueOf = decltype(WithoutOptional(std::declval<MemberType<T, Member>&>()));

/// Returns the initial value of a member of T, as YAML; empty if its type has no YAML form.
template <class T, auto Member>
std::string InitialText(const FieldInfo& field) {
  static const T kNew{};
  using V = MemberType<T, Member>;
  const V& value = std::invoke(Member, kNew);
  if constexpr (std::is_same_v<V, std::string>) return value;
  if constexpr (std::is_same_v<V, Micros>) return YamlText(field, value.count());
  if constexpr (std::is_integral_v<V> || std::is_enum_v<V>) {
    return YamlText(field, static_cast<std::int64_t>(value));
  }
  return {};
}

template <class T, auto Member>
constexpr Field<T> NumberRow(std::string_view key, std::string_view description,
                             FieldInfo::Kind kind, std::int64_t min, std::int64_t max) {
  const auto read = [](const ConfigValue& v, const FieldInfo& info, void* out) {
    Put(std::invoke(Member, *static_cast<T*>(out)),
        ReadNumber(v, info).transform(
            [](std::int64_t number) { return static_cast<ValueOf<T, Member>>(number); }));
  };
  return {{.key = key,
           .description = description,
           .kind = kind,
           .read = read,
           .initial = &InitialText<T, Member>,
           .min = min,
           .max = max}};
}

template <auto Member, class T = OwnerOf<Member>>
constexpr Field<T> Bool(std::string_view key, std::string_view description) {
  return NumberRow<T, Member>(key, description, FieldInfo::Kind::kBool, 0, 1);
}
template <auto Member, class T = OwnerOf<Member>>
constexpr Field<T> Integer(std::string_view key, std::int64_t min, std::int64_t max,
                           std::string_view description) {
  return NumberRow<T, Member>(key, description, FieldInfo::Kind::kInteger, min, max);
}
template <auto Member, class T = OwnerOf<Member>>
constexpr Field<T> Size(std::string_view key, std::int64_t min, std::int64_t max,
                        std::string_view description) {
  return NumberRow<T, Member>(key, description, FieldInfo::Kind::kSize, min, max);
}
template <auto Member, class T = OwnerOf<Member>>
constexpr Field<T> Duration(std::string_view key, Micros min, Micros max,
                            std::string_view description) {
  return NumberRow<T, Member>(key, description, FieldInfo::Kind::kDuration, min.count(),
                              max.count());
}
template <auto Member, class T = OwnerOf<Member>, class E, std::size_t N>
constexpr Field<T> OneOf(std::string_view key, const WordTable<E, N>& words,
                         std::string_view description) {
  static_assert(std::is_same_v<E, ValueOf<T, Member>>);
  auto field = NumberRow<T, Member>(key, description, FieldInfo::Kind::kWord, 0, 0);
  field.words = words.words;
  return field;
}

/// Returns the row of a value that the section's check reads, since it depends on other keys.
/// `described` is a ValueType or a SectionInfo.
template <class T, class Described>
constexpr Field<T> Later(std::string_view key, const Described& described,
                         std::string_view description) {
  Field<T> field{{.key = key, .description = description}};
  if constexpr (std::is_same_v<Described, ValueType>) {
    field.type = described;
  } else {
    field.kind = FieldInfo::Kind::kSection;
    field.section = &described;
  }
  field.read = [](const ConfigValue&, const FieldInfo&, void*) {};
  return field;
}

/// Returns the row of a section that is read into a member, which may be optional.
template <auto Member, class T = OwnerOf<Member>>
constexpr Field<T> Sub(std::string_view key, const Section<ValueOf<T, Member>>& section,
                       std::string_view description) {
  auto field = Later<T>(key, section, description);
  field.read = [](const ConfigValue& v, const FieldInfo& info, void* out) {
    using V = ValueOf<T, Member>;
    if (info.or_off && v.IsOff()) return;
    const auto& of_value = static_cast<const Section<V>&>(*info.section);
    auto& member = std::invoke(Member, *static_cast<T*>(out));
    if constexpr (std::is_same_v<V, MemberType<T, Member>>) {
      ReadSection(v, of_value, member);
    } else {
      ReadSection(v, of_value, member.emplace(V{}));
    }
  };
  return field;
}

/// Returns the row of a member with its own reader, which may return an optional, empty after
/// errors.
template <auto Member, auto Reader, class T = OwnerOf<Member>, class Described>
constexpr Field<T> Value(std::string_view key, const Described& described,
                         std::string_view description) {
  auto field = Later<T>(key, described, description);
  field.initial = &InitialText<T, Member>;
  field.read = [](const ConfigValue& v, const FieldInfo&, void* out) {
    Put(std::invoke(Member, *static_cast<T*>(out)), std::optional(Reader(v)));
  };
  return field;
}

/// Returns the row of a value whose reader, `void(const ConfigValue&, T&)`, sets any members.
template <auto Reader, class T = OwnerOf<Reader>, class Described>
constexpr Field<T> Custom(std::string_view key, const Described& described,
                          std::string_view description) {
  auto field = Later<T>(key, described, description);
  field.read = [](const ConfigValue& v, const FieldInfo&, void* out) {
    Reader(v, *static_cast<T*>(out));
  };
  return field;
}

/// A key of other versions; `what` completes "this version of tidegate ...".
template <class T>
constexpr Field<T> Absent(std::string_view key, std::string_view what) {
  return {{.key = key, .description = what, .kind = FieldInfo::Kind::kAbsent}};
}

}  // namespace tidegate
