// SPDX-License-Identifier: Apache-2.0
#include "service/openapi/json_schema.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <functional>
#include <map>

namespace tidegate::openapi_test {
namespace {

namespace json = boost::json;
using Strings = std::vector<std::string>;

bool IsOfType(const json::value& value, std::string_view type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_bool();
  if (type == "integer") return value.is_int64() || value.is_uint64();
  if (type == "number") return value.is_number();
  return type == "null" && value.is_null();
}

class Validator {
 public:
  Validator(const json::value& document, Strings& mistakes)
      : document_(document), mistakes_(mistakes) {}

  void Check(const json::value& value, const json::value& schema, const std::string& at) {
    if (const bool* const any = schema.if_bool()) {
      if (!*any) Add(at, "is forbidden");
      return;
    }
    for (const auto& [keyword, operand] : schema.as_object()) {
      const auto found = Checks().find(keyword);
      if (found == Checks().end()) {
        Add(at, "the schema's keyword '" + std::string(keyword) + "' is not checked");
      } else if (found->second != nullptr) {
        (this->*found->second)(value, operand, schema.get_object(), at);
      }
    }
  }

 private:
  using Keyword = void (Validator::*)(const json::value& value, const json::value& operand,
                                      const json::object& schema, const std::string& at);

  static const std::map<std::string, Keyword, std::less<>>& Checks() {
    static const std::map<std::string, Keyword, std::less<>> checks{
        {"description", nullptr},
        {"title", nullptr},
        {"$ref", &Validator::Reference},
        {"type", &Validator::Type},
        {"enum", &Validator::Enum},
        {"const", &Validator::Const},
        {"required", &Validator::Required},
        {"dependentRequired", &Validator::DependentRequired},
        {"properties", &Validator::Properties},
        {"additionalProperties", &Validator::AdditionalProperties},
        {"items", &Validator::Items},
        {"minItems", &Validator::Least},
        {"maxItems", &Validator::Most},
        {"minLength", &Validator::Least},
        {"maxLength", &Validator::Most},
        {"minimum", &Validator::Least},
        {"maximum", &Validator::Most},
        {"allOf", &Validator::AllOf},
        {"oneOf", &Validator::OneOf},
    };
    return checks;
  }

  void Add(const std::string& at, const std::string& what) {
    mistakes_.push_back((at.empty() ? "/" : at) + ": " + what);
  }

  void Reference(const json::value& value, const json::value& operand, const json::object&,
                 const std::string& at) {
    Check(value, Follow(document_, operand.as_string()), at);
  }

  void Type(const json::value& value, const json::value& operand, const json::object&,
            const std::string& at) {
    if (!IsOfType(value, operand.as_string())) {
      Add(at, "is not of type " + json::value_to<std::string>(operand));
    }
  }

  void Enum(const json::value& value, const json::value& operand, const json::object&,
            const std::string& at) {
    const json::array& known = operand.as_array();
    if (std::ranges::find(known, value) == known.end()) {
      Add(at, json::serialize(value) + " is none of " + json::serialize(operand));
    }
  }

  void Const(const json::value& value, const json::value& operand, const json::object&,
             const std::string& at) {
    if (value != operand) Add(at, json::serialize(value) + " is not " + json::serialize(operand));
  }

  void Required(const json::value& value, const json::value& operand, const json::object&,
                const std::string& at) {
    if (!value.is_object()) return;
    for (const json::value& name : operand.as_array()) {
      if (!value.get_object().contains(name.as_string())) {
        Add(at, "lacks " + json::serialize(name));
      }
    }
  }

  void DependentRequired(const json::value& value, const json::value& operand, const json::object&,
                         const std::string& at) {
    if (!value.is_object()) return;
    for (const auto& [name, others] : operand.as_object()) {
      if (value.get_object().contains(name)) Required(value, others, {}, at);
    }
  }

  void Properties(const json::value& value, const json::value& operand, const json::object&,
                  const std::string& at) {
    if (!value.is_object()) return;
    for (const auto& [name, schema] : operand.as_object()) {
      if (const json::value* const member = value.get_object().if_contains(name)) {
        Check(*member, schema, at + "/" + std::string(name));
      }
    }
  }

  void AdditionalProperties(const json::value& value, const json::value& operand,
                            const json::object& schema, const std::string& at) {
    if (!value.is_object()) return;
    const json::value* const known = schema.if_contains("properties");
    for (const auto& [name, member] : value.get_object()) {
      if (known != nullptr && known->as_object().contains(name)) continue;
      Check(member, operand, at + "/" + std::string(name));
    }
  }

  void Items(const json::value& value, const json::value& operand, const json::object&,
             const std::string& at) {
    if (!value.is_array()) return;
    for (std::size_t i = 0; i < value.get_array().size(); ++i) {
      Check(value.get_array()[i], operand, at + "/" + std::to_string(i));
    }
  }

  /// Returns the size that minimum, maximum, minLength, minItems and the like bound; nothing for
  /// other types.
  static std::optional<std::int64_t> SizeOf(const json::value& value) {
    if (const auto* const array = value.if_array()) return std::ssize(*array);
    if (const auto* const text = value.if_string()) return std::ssize(*text);
    if (const auto* const number = value.if_int64()) return *number;
    return std::nullopt;
  }
  void Least(const json::value& value, const json::value& operand, const json::object&,
             const std::string& at) {
    if (const auto size = SizeOf(value); size && *size < operand.as_int64()) {
      Add(at, "is below " + json::serialize(operand));
    }
  }
  void Most(const json::value& value, const json::value& operand, const json::object&,
            const std::string& at) {
    if (const auto size = SizeOf(value); size && *size > operand.as_int64()) {
      Add(at, "is above " + json::serialize(operand));
    }
  }

  void AllOf(const json::value& value, const json::value& operand, const json::object&,
             const std::string& at) {
    for (const json::value& schema : operand.as_array()) Check(value, schema, at);
  }

  void OneOf(const json::value& value, const json::value& operand, const json::object&,
             const std::string& at) {
    int fitting = 0;
    Strings why;
    for (const json::value& schema : operand.as_array()) {
      const Strings mistakes = Mistakes(value, schema, document_);
      if (mistakes.empty()) ++fitting;
      why.insert(why.end(), mistakes.begin(), mistakes.end());
    }
    if (fitting == 1) return;
    std::string what = "fits " + std::to_string(fitting) + " of the forms instead of one";
    for (const std::string& mistake : why) what += "; " + mistake;
    Add(at, what);
  }

  const json::value& document_;
  Strings& mistakes_;
};

}  // namespace

Strings Mistakes(const json::value& value, const json::value& schema, const json::value& document) {
  Strings mistakes;
  Validator(document, mistakes).Check(value, schema, "");
  return mistakes;
}

const json::value& Follow(const json::value& document, std::string_view reference) {
  return document.at_pointer(reference.substr(1));
}

const json::value& Resolved(const json::value& document, const json::value& value) {
  const json::object* const object = value.if_object();
  if (object == nullptr) return value;
  const json::value* const reference = object->if_contains("$ref");
  return reference == nullptr ? value : Follow(document, reference->as_string());
}

}  // namespace tidegate::openapi_test
