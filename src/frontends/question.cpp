// SPDX-License-Identifier: Apache-2.0
#include "frontends/question.hpp"

#include <algorithm>
#include <array>
#include <boost/json/basic_parser_impl.hpp>

#include "base/json_events.hpp"
#include "base/message_text.hpp"

namespace tidegate {
namespace {

using error_code = JsonEvents::JsonError;
using JsonView = JsonEvents::JsonText;

/// The most parts of an identity; no rule has as many. There is a limit because each part is
/// compared with all earlier parts.
constexpr std::size_t kMaxIdentities = 16;
constexpr std::size_t kMaxHeaders = 128;
/// The most bytes of the caller's text that each part of a JSON pointer repeats.
constexpr std::size_t kMaxEcho = 64;

/// The kind of object or array that the reader is inside.
enum class In { kNothing, kBatch, kRequests, kQuestion, kIdentity, kRequest, kHeaders, kHeader };

/// The type of a member.
enum class Takes : std::uint8_t { kText, kWhole, kIdentity, kRequest, kRequests, kHeaders };

struct MemberName {
  constexpr MemberName(std::string_view n, unsigned m, Takes t) : name(n), member(m), takes(t) {}
  constexpr MemberName(std::string_view n, unsigned m, std::string_view Question::*t)
      : name(n), member(m), takes(Takes::kText), text(t) {}
  constexpr MemberName(std::string_view n, unsigned m, std::int64_t Question::*w)
      : name(n), member(m), takes(Takes::kWhole), whole(w) {}

  std::string_view name;
  unsigned member;
  Takes takes;
  std::string_view Question::*text = nullptr;  ///< The member that receives a kText value.
  std::int64_t Question::*whole = nullptr;     ///< The member that receives a kWhole value.
};

constexpr std::array kQuestionMembers{
    MemberName{"rule", Question::kRule, &Question::rule},
    MemberName{"identity", Question::kIdentity, Takes::kIdentity},
    MemberName{"cost", Question::kCost, &Question::cost},
    MemberName{"lease", Question::kLease, &Question::lease},
    MemberName{"id", Question::kId, &Question::id},
    MemberName{"age_ms", Question::kAge, &Question::age_ms},
    MemberName{"request", Question::kRequest, Takes::kRequest},
    MemberName{"key", Question::kKey, &Question::key},
    MemberName{"limit", Question::kLimit, &Question::limit},
    MemberName{"burst", Question::kBurst, &Question::burst},
    MemberName{"algorithm", Question::kAlgorithm, &Question::algorithm},
    MemberName{"amount", Question::kAmount, &Question::amount},
    MemberName{"ttl", Question::kTtl, &Question::ttl},
    MemberName{"reason", Question::kReason, &Question::reason},
    MemberName{"listener", Question::kListener, &Question::listener},
};
constexpr std::array kBatchMembers{
    MemberName{"requests", Question::kRequests, Takes::kRequests},
};
constexpr unsigned kMethod = 1, kHost = 2, kPath = 4, kQuery = 8, kClientIp = 16, kHeaderMap = 32,
                   kPeer = 64;
constexpr std::array kRequestMembers{
    MemberName{"method", kMethod, &Question::method},
    MemberName{"host", kHost, &Question::host},
    MemberName{"path", kPath, &Question::path},
    MemberName{"query", kQuery, &Question::query},
    MemberName{"client_ip", kClientIp, &Question::client_ip},
    MemberName{"peer", kPeer, &Question::peer},
    MemberName{"headers", kHeaderMap, Takes::kHeaders},
};

/// Fills questions from the parser's events.
class Reader : public JsonEvents {
 public:
  Reader(std::pmr::memory_resource& memory, std::string_view json, Question* one,
         std::pmr::vector<Question>* many)
      : JsonEvents(json, memory), memory_(memory), one_(one), many_(many) {}

  [[nodiscard]] Objection TakeProblem() { return {400, std::move(message_), Pointer()}; }
  [[nodiscard]] bool has_problem() const noexcept { return !message_.empty(); }

  bool on_object_begin(error_code& error) {
    switch (in_) {
      case In::kNothing:
        in_ = one_ != nullptr ? In::kQuestion : In::kBatch;
        question_ = one_;
        return true;
      case In::kRequests:
        if (many_->size() == kMaxBatch) {
          return Fail(error, "a batch holds at most " + std::to_string(kMaxBatch) + " requests");
        }
        question_ = &many_->emplace_back(memory_);
        key_ = {};
        in_ = In::kQuestion;
        return true;
      case In::kQuestion:
      case In::kRequest:
        if (member_->takes == Takes::kIdentity) return Enter(In::kIdentity);
        if (member_->takes == Takes::kRequest) return Enter(In::kRequest);
        if (member_->takes == Takes::kHeaders) return Enter(In::kHeaders);
        break;
      default: break;
    }
    return Wrong(error, "an object");
  }

  bool on_object_end(std::size_t, error_code&) {
    switch (in_) {
      case In::kQuestion:
        in_ = many_ != nullptr ? In::kRequests : In::kNothing;
        key_ = {};
        break;
      case In::kHeaders:
        in_ = In::kRequest;
        header_ = {};
        break;
      case In::kBatch: in_ = In::kNothing; break;
      default:
        in_ = In::kQuestion;
        inner_ = {};
        break;
    }
    return true;
  }

  bool on_array_begin(error_code& error) {
    if (in_ == In::kBatch && member_->takes == Takes::kRequests) return Enter(In::kRequests);
    if (in_ == In::kHeaders) return Enter(In::kHeader);
    return Wrong(error, "an array");
  }
  bool on_array_end(std::size_t, error_code&) {
    in_ = in_ == In::kHeader ? In::kHeaders : In::kBatch;
    return true;
  }

  bool on_key(JsonView last, std::size_t, error_code& error) {
    const std::string_view name = Whole(last);
    switch (in_) {
      case In::kBatch: key_ = name; return Member(error, kBatchMembers, name, batch_members_);
      case In::kQuestion:
        key_ = name;
        return Member(error, kQuestionMembers, name, question_->members);
      case In::kRequest:
        inner_ = name;
        return Member(error, kRequestMembers, name, question_->request_members);
      case In::kIdentity:
        inner_ = name;
        if (question_->identity.size() == kMaxIdentities) {
          return Fail(error, "an identity has at most 16 parts");
        }
        for (const NamedValue& known : question_->identity) {
          if (known.source == name) return Fail(error, "this source occurs twice");
        }
        return true;
      default:  // kHeaders: header lines with the same name are an array, or repeated members.
        header_ = name;
        return true;
    }
  }

  bool on_string(JsonView last, std::size_t, error_code& error) {
    const std::string_view text = Whole(last);
    switch (in_) {
      case In::kIdentity: question_->identity.push_back({inner_, text}); return true;
      case In::kHeaders:
      case In::kHeader:
        if (question_->headers.size() == kMaxHeaders) {
          return Fail(error, "a request has at most 128 header lines");
        }
        question_->headers.push_back({header_, text});
        return true;
      case In::kQuestion:
      case In::kRequest:
        if (member_->takes == Takes::kIdentity) {
          question_->identity.push_back({{}, text});
          return true;
        }
        if (member_->takes == Takes::kText) {
          question_->*(member_->text) = text;
          return true;
        }
        break;
      default: break;
    }
    return Wrong(error, "a string");
  }

  bool on_int64(std::int64_t number, JsonView, error_code& error) {
    if (!TakesNumber(error)) return false;
    question_->*(member_->whole) = number;
    return true;
  }
  bool on_uint64(std::uint64_t, JsonView, error_code& error) {
    return TakesNumber(error) && Fail(error, "the number is too large");
  }
  bool on_double(double, JsonView, error_code& error) {
    return TakesNumber(error) &&
           Fail(error, "this must be a whole number, written without a point or exponent");
  }
  bool on_bool(bool, error_code& error) { return Wrong(error, "true or false"); }
  bool on_null(error_code& error) { return Wrong(error, "null"); }

  /// Returns a JSON pointer to the reader's current position.
  [[nodiscard]] std::string Pointer() const {
    std::string pointer;
    const auto add = [&](std::string_view part) {
      pointer += '/';
      for (const char c : part.substr(0, kMaxEcho)) {
        if (c == '~') {
          pointer += "~0";
        } else if (c == '/') {
          pointer += "~1";
        } else {
          pointer += c;
        }
      }
    };
    const bool inside = in_ != In::kNothing && in_ != In::kBatch;
    if (many_ != nullptr && inside) {
      add("requests");
      add(std::to_string(in_ == In::kRequests ? many_->size() : many_->size() - 1));
    }
    if (!key_.empty() && in_ != In::kRequests) add(key_);
    if (!inner_.empty()) add(inner_);
    if (!header_.empty()) add(header_);
    return pointer;
  }

 private:
  bool TakesNumber(error_code& error) {
    return (in_ == In::kQuestion && member_->takes == Takes::kWhole) || Wrong(error, "a number");
  }

  bool Enter(In in) {
    in_ = in;
    return true;
  }

  bool Fail(error_code& error, std::string message) {
    message_ = std::move(message);
    error = boost::system::errc::make_error_code(boost::system::errc::invalid_argument);
    return false;
  }

  bool Wrong(error_code& error, std::string_view got) {
    std::string message = "this must be ";
    if (in_ == In::kNothing) {
      message = "the body must be a JSON object";
    } else if (in_ == In::kRequests) {
      message += "an object with one request";
    } else if (in_ == In::kIdentity || in_ == In::kHeader) {
      message += "a string";
    } else if (in_ == In::kHeaders) {
      message += "a string or an array of strings";
    } else {
      static constexpr std::string_view kNames[] = {"a string",
                                                    "a whole number",
                                                    "a string, or an object of source and value",
                                                    "an object with the request's attributes",
                                                    "an array of requests",
                                                    "an object of names and values"};
      message += kNames[static_cast<std::size_t>(member_->takes)];
    }
    return Fail(error, message + ", not " + std::string(got));
  }

  template <std::size_t N>
  bool Member(error_code& error, const std::array<MemberName, N>& members, std::string_view name,
              unsigned& seen) {
    member_ = std::ranges::find(members, name, &MemberName::name);
    if (member_ == members.end()) {
      std::array<std::string_view, N> names;
      std::ranges::transform(members, names.begin(), &MemberName::name);
      return Fail(error, "unknown member '" + Printable(name) + "'" + DidYouMean(name, names));
    }
    if ((seen & member_->member) != 0) {
      return Fail(error, "member '" + Printable(name) + "' occurs twice");
    }
    seen |= member_->member;
    return true;
  }

  std::pmr::memory_resource& memory_;
  Question* one_;
  std::pmr::vector<Question>* many_;
  Question* question_ = nullptr;
  unsigned batch_members_ = 0;
  In in_ = In::kNothing;
  const MemberName* member_ = nullptr;
  // The position of the reader, from the outermost name to the innermost.
  std::string_view key_;     ///< The member of the question.
  std::string_view inner_;   ///< The member of the object inside the question.
  std::string_view header_;  ///< The name of the header.
  std::string message_;
};

std::optional<Objection> Read(std::string_view json, Question* one,
                              std::pmr::vector<Question>* many, std::pmr::memory_resource& memory) {
  boost::json::parse_options options;
  options.max_depth = 8;
  boost::json::basic_parser<Reader> parser(options, memory, json, one, many);
  error_code error;
  const std::size_t read = parser.write_some(false, json.data(), json.size(), error);
  Reader& reader = parser.handler();
  if (reader.has_problem()) return reader.TakeProblem();
  if (error) {
    return Objection{
        400, "the body is not JSON: " + error.message() + " at byte " + std::to_string(read + 1),
        reader.Pointer()};
  }
  if (read < json.size()) {
    return Objection{
        400, "unexpected text after the end of the JSON, at byte " + std::to_string(read + 1), {}};
  }
  return std::nullopt;
}

}  // namespace

std::string_view Question::NameOf(unsigned member) noexcept {
  for (const MemberName& known : kQuestionMembers) {
    if (known.member == member) return known.name;
  }
  return "requests";
}

std::optional<Objection> ReadQuestion(std::string_view json, Question& question,
                                      std::pmr::memory_resource& memory) {
  return Read(json, &question, nullptr, memory);
}

std::optional<Objection> ReadBatch(std::string_view json, std::pmr::vector<Question>& questions,
                                   std::pmr::memory_resource& memory) {
  if (auto bad = Read(json, nullptr, &questions, memory)) return bad;
  if (questions.empty()) return Objection{400, "a batch needs at least one request", "/requests"};
  return std::nullopt;
}

}  // namespace tidegate
