// SPDX-License-Identifier: Apache-2.0
#include "frontends/question.hpp"

#include <array>
#include <boost/json/basic_parser_impl.hpp>
#include <cstring>
#include <limits>

#include "rules/nearest.hpp"
#include "rules/printable.hpp"

namespace tidegate {
namespace {

using boost::system::error_code;
using JsonView = boost::json::string_view;

/// More parts than any rule has. Each part is compared with all earlier ones, so there is a limit.
constexpr std::size_t kMaxIdentities = 16;
constexpr std::size_t kMaxHeaders = 128;
/// The largest number of bytes of each part of a pointer that repeats the caller's text.
constexpr std::size_t kMaxEcho = 64;

/// The object that the reader is in.
enum class In : std::uint8_t {
  kNothing,
  kBatch,
  kRequests,
  kQuestion,
  kIdentity,
  kRequest,
  kHeaders,
  kHeader
};

/// The type of a member.
enum class Takes : std::uint8_t { kText, kWhole, kIdentity, kRequest, kRequests, kHeaders };

struct MemberName {
  std::string_view name;
  unsigned member;
  Takes takes;
};

constexpr std::array kQuestionMembers{
    MemberName{"rule", Question::kRule, Takes::kText},
    MemberName{"identity", Question::kIdentity, Takes::kIdentity},
    MemberName{"cost", Question::kCost, Takes::kWhole},
    MemberName{"lease", Question::kLease, Takes::kText},
    MemberName{"id", Question::kId, Takes::kText},
    MemberName{"age_ms", Question::kAge, Takes::kWhole},
    MemberName{"request", Question::kRequest, Takes::kRequest},
    MemberName{"key", Question::kKey, Takes::kText},
    MemberName{"limit", Question::kLimit, Takes::kText},
    MemberName{"burst", Question::kBurst, Takes::kWhole},
    MemberName{"algorithm", Question::kAlgorithm, Takes::kText},
    MemberName{"amount", Question::kAmount, Takes::kWhole},
    MemberName{"ttl", Question::kTtl, Takes::kText},
    MemberName{"reason", Question::kReason, Takes::kText},
    MemberName{"door", Question::kDoor, Takes::kText},
};
constexpr std::array kBatchMembers{
    MemberName{"requests", Question::kRequests, Takes::kRequests},
};
constexpr unsigned kMethod = 1, kHost = 2, kPath = 4, kQuery = 8, kClientIp = 16, kHeaderMap = 32,
                   kPeer = 64;
constexpr std::array kRequestMembers{
    MemberName{"method", kMethod, Takes::kText},
    MemberName{"host", kHost, Takes::kText},
    MemberName{"path", kPath, Takes::kText},
    MemberName{"query", kQuery, Takes::kText},
    MemberName{"client_ip", kClientIp, Takes::kText},
    MemberName{"peer", kPeer, Takes::kText},
    MemberName{"headers", kHeaderMap, Takes::kHeaders},
};

template <std::size_t N>
const MemberName* Find(const std::array<MemberName, N>& members, std::string_view name) noexcept {
  for (const MemberName& member : members) {
    if (member.name == name) return &member;
  }
  return nullptr;
}

/// Handles the parser's events. Text without escape sequences is not copied.
class Reader {
 public:
  // Required by Boost.JSON's parser. Unlimited, because the body's size bounds everything already.
  static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_array_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_key_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_string_size = std::numeric_limits<std::size_t>::max();

  Reader(std::pmr::memory_resource& memory, std::string_view json, Question* one,
         std::pmr::vector<Question>* many)
      : memory_(memory), json_(json), one_(one), many_(many), parts_(&memory) {}

  [[nodiscard]] BadQuestion TakeProblem() { return {std::move(message_), Pointer()}; }
  [[nodiscard]] bool has_problem() const noexcept { return !message_.empty(); }

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_comment_part(JsonView, error_code&) { return true; }
  bool on_comment(JsonView, error_code&) { return true; }
  bool on_number_part(JsonView, error_code&) { return true; }

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
        if (member_->takes == Takes::kIdentity) return Enter(In::kIdentity);
        if (member_->takes == Takes::kRequest) return Enter(In::kRequest);
        break;
      case In::kRequest:
        if (member_->takes == Takes::kHeaders) return Enter(In::kHeaders);
        break;
      default:
        break;
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
      case In::kBatch:
        in_ = In::kNothing;
        break;
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

  bool on_key_part(JsonView text, std::size_t, error_code&) { return Part(text); }
  bool on_key(JsonView last, std::size_t, error_code& error) {
    const std::string_view name = Whole(last);
    switch (in_) {
      case In::kBatch:
        key_ = name;
        return Member(error, kBatchMembers, name, batch_members_);
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
      default:  // kHeaders: lines of one name may be an array, or repeated members.
        header_ = name;
        return true;
    }
  }

  bool on_string_part(JsonView text, std::size_t, error_code&) { return Part(text); }
  bool on_string(JsonView last, std::size_t, error_code& error) {
    const std::string_view text = Whole(last);
    switch (in_) {
      case In::kIdentity:
        question_->identity.push_back({inner_, text});
        return true;
      case In::kHeaders:
      case In::kHeader:
        if (question_->headers.size() == kMaxHeaders) {
          return Fail(error, "a request has at most 128 header lines");
        }
        question_->headers.push_back({header_, text});
        return true;
      case In::kQuestion:
        if (member_->takes == Takes::kIdentity) {
          question_->identity.push_back({{}, text});
          return true;
        }
        if (member_->takes == Takes::kText) return SetText(text);
        break;
      case In::kRequest:
        if (member_->takes == Takes::kText) return SetRequestText(text);
        break;
      default:
        break;
    }
    return Wrong(error, "a string");
  }

  bool on_int64(std::int64_t number, JsonView, error_code& error) {
    if (in_ != In::kQuestion || member_->takes != Takes::kWhole) return Wrong(error, "a number");
    switch (member_->member) {
      case Question::kCost:
        question_->cost = number;
        return true;
      case Question::kBurst:
        question_->burst = number;
        return true;
      case Question::kAmount:
        question_->amount = number;
        return true;
      default:
        question_->age_ms = number;
        return true;
    }
  }
  bool on_uint64(std::uint64_t, JsonView, error_code& error) {
    if (in_ != In::kQuestion || member_->takes != Takes::kWhole) return Wrong(error, "a number");
    return Fail(error, "the number is too large");
  }
  bool on_double(double, JsonView, error_code& error) {
    if (in_ != In::kQuestion || member_->takes != Takes::kWhole) return Wrong(error, "a number");
    return Fail(error, "this must be a whole number, written without a point or exponent");
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
      message += "an object, one question";
    } else if (in_ == In::kIdentity || in_ == In::kHeader) {
      message += "a string";
    } else if (in_ == In::kHeaders) {
      message += "a string or an array of strings";
    } else {
      static constexpr std::string_view kNames[] = {"a string",
                                                    "a whole number",
                                                    "a string, or an object of source and value",
                                                    "an object with the request's attributes",
                                                    "an array of questions",
                                                    "an object of names and values"};
      message += kNames[static_cast<std::size_t>(member_->takes)];
    }
    return Fail(error, message + ", not " + std::string(got));
  }

  template <std::size_t N>
  bool Member(error_code& error, const std::array<MemberName, N>& members, std::string_view name,
              unsigned& seen) {
    member_ = Find(members, name);
    if (member_ == nullptr) {
      std::array<std::string_view, N> names;
      for (std::size_t i = 0; i < N; ++i) names[i] = members[i].name;
      return Fail(error, "unknown member '" + Printable(name) + "'" + DidYouMean(name, names));
    }
    if ((seen & member_->member) != 0) {
      return Fail(error, "member '" + Printable(name) + "' occurs twice");
    }
    seen |= member_->member;
    return true;
  }

  bool SetText(std::string_view text) {
    switch (member_->member) {
      case Question::kRule:
        question_->rule = text;
        break;
      case Question::kLease:
        question_->lease = text;
        break;
      case Question::kId:
        question_->id = text;
        break;
      case Question::kKey:
        question_->key = text;
        break;
      case Question::kTtl:
        question_->ttl = text;
        break;
      case Question::kDoor:
        question_->door = text;
        break;
      case Question::kReason:
        question_->reason = text;
        break;
      case Question::kLimit:
        question_->limit = text;
        break;
      default:
        question_->algorithm = text;
    }
    return true;
  }

  bool SetRequestText(std::string_view text) {
    switch (member_->member) {
      case kMethod:
        question_->method = text;
        break;
      case kHost:
        question_->host = text;
        break;
      case kPath:
        question_->path = text;
        break;
      case kQuery:
        question_->query = text;
        break;
      case kPeer:
        question_->peer = text;
        break;
      default:
        question_->client_ip = text;
    }
    return true;
  }

  bool Part(JsonView text) {
    parts_.insert(parts_.end(), text.data(), text.data() + text.size());
    return true;
  }

  /// Returns the whole text: the parts collected so far, and `last`.
  std::string_view Whole(JsonView last) {
    const std::string_view view{last.data(), last.size()};
    if (parts_.empty()) {
      if (view.empty()) return "";
      const bool in_body = std::less_equal<>{}(json_.data(), view.data()) &&
                           std::less<>{}(view.data(), json_.data() + json_.size());
      if (in_body) return view;
    }
    const std::size_t size = parts_.size() + view.size();
    char* const copy = static_cast<char*>(memory_.allocate(size, 1));
    if (!parts_.empty()) std::memcpy(copy, parts_.data(), parts_.size());
    if (!view.empty()) std::memcpy(copy + parts_.size(), view.data(), view.size());
    parts_.clear();
    return {copy, size};
  }

  std::pmr::memory_resource& memory_;
  std::string_view json_;
  Question* one_;
  std::pmr::vector<Question>* many_;
  Question* question_ = nullptr;
  unsigned batch_members_ = 0;
  In in_ = In::kNothing;
  const MemberName* member_ = nullptr;
  // The position of the reader, from the outermost name to the innermost.
  std::string_view key_;     ///< The member of the question.
  std::string_view inner_;   ///< The member of the object in it.
  std::string_view header_;  ///< The header's name.
  std::pmr::vector<char> parts_;
  std::string message_;
};

std::optional<BadQuestion> Read(std::string_view json, Question* one,
                                std::pmr::vector<Question>* many,
                                std::pmr::memory_resource& memory) {
  boost::json::parse_options options;
  options.max_depth = 8;
  boost::json::basic_parser<Reader> parser(options, memory, json, one, many);
  error_code error;
  const std::size_t read = parser.write_some(false, json.data(), json.size(), error);
  Reader& reader = parser.handler();
  if (reader.has_problem()) return reader.TakeProblem();
  if (error) {
    return BadQuestion{
        "the body is not JSON: " + error.message() + " at byte " + std::to_string(read + 1),
        reader.Pointer()};
  }
  if (read < json.size()) {
    return BadQuestion{
        "unexpected text after the end of the JSON, at byte " + std::to_string(read + 1), {}};
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

std::optional<BadQuestion> ReadQuestion(std::string_view json, Question& question,
                                        std::pmr::memory_resource& memory) {
  return Read(json, &question, nullptr, memory);
}

std::optional<BadQuestion> ReadBatch(std::string_view json, std::pmr::vector<Question>& questions,
                                     std::pmr::memory_resource& memory) {
  if (auto bad = Read(json, nullptr, &questions, memory)) return bad;
  if (questions.empty()) return BadQuestion{"a batch needs at least one question", "/requests"};
  return std::nullopt;
}

}  // namespace tidegate
