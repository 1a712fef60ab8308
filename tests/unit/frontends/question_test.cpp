// SPDX-License-Identifier: Apache-2.0
#include "frontends/question.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory_resource>
#include <string>

namespace tidegate {
namespace {

using testing::HasSubstr;

class DecideRequestParserTest : public testing::Test {
 protected:
  std::optional<Objection> Read(std::string_view json) {
    text_ = json;
    question_.emplace(memory_);
    return ReadQuestion(text_, *question_, memory_);
  }
  /// Returns the pointer and the message of the error; empty if `json` is valid.
  std::string Wrong(std::string_view json) {
    const auto bad = Read(json);
    return bad ? bad->pointer + ": " + bad->message : "";
  }

  std::pmr::monotonic_buffer_resource memory_;
  std::string text_;
  std::optional<Question> question_;
};

TEST_F(DecideRequestParserTest, ReadsAllMembers) {
  ASSERT_EQ(Wrong(R"({"rule":"r","identity":"i","cost":2,"lease":"l","id":"x","age_ms":5,
                      "key":"k","limit":"1/s","burst":3,"algorithm":"gcra"})"),
            "");
  EXPECT_EQ(question_->rule, "r");
  ASSERT_EQ(question_->identity.size(), 1u);
  EXPECT_EQ(question_->identity[0].source, "");
  EXPECT_EQ(question_->identity[0].value, "i");
  EXPECT_EQ(question_->cost, 2);
  EXPECT_EQ(question_->lease, "l");
  EXPECT_EQ(question_->id, "x");
  EXPECT_EQ(question_->age_ms, 5);
  EXPECT_EQ(question_->key, "k");
  EXPECT_EQ(question_->limit, "1/s");
  EXPECT_EQ(question_->burst, 3);
  EXPECT_EQ(question_->algorithm, "gcra");
}

TEST_F(DecideRequestParserTest, ReadsRequestAttributes) {
  ASSERT_EQ(Wrong(R"({"request":{"method":"PUT","host":"h","path":"/p","query":"q=1",
      "client_ip":"::1","headers":{"A":"1","b":["2","3"],"a":"4","c":[]}}})"),
            "");
  EXPECT_EQ(question_->method, "PUT");
  EXPECT_EQ(question_->host, "h");
  EXPECT_EQ(question_->path, "/p");
  EXPECT_EQ(question_->query, "q=1");
  EXPECT_EQ(question_->client_ip, "::1");
  std::string headers;
  for (const HeaderField& field : question_->headers) {
    headers.append(field.name).append("=").append(field.value).append(";");
  }
  EXPECT_EQ(headers, "A=1;b=2;b=3;a=4;");
  EXPECT_FALSE(question_->Has(Question::kCost));
}

TEST_F(DecideRequestParserTest, ReadsIdentityWithSources) {
  ASSERT_EQ(Wrong(R"({"identity":{"client_ip":"1.2.3.4","header:x":"y"}})"), "");
  ASSERT_EQ(question_->identity.size(), 2u);
  EXPECT_EQ(question_->identity[1].source, "header:x");
  EXPECT_EQ(question_->identity[1].value, "y");
}

TEST_F(DecideRequestParserTest, DecodesEscapes) {
  ASSERT_EQ(Wrong(R"({"rul\u0065":"a\"\\\/\n\u00e9\ud83d\ude00z"})"), "");
  EXPECT_EQ(question_->rule, "a\"\\/\n\xC3\xA9\xF0\x9F\x98\x80z");
  ASSERT_EQ(Wrong(R"({"identity":"\u0000"})"), "");
  EXPECT_EQ(question_->identity[0].value, std::string_view("\0", 1));
}

TEST_F(DecideRequestParserTest, TreatsEmptyStringAsPresent) {
  ASSERT_EQ(Wrong(R"({"rule":"","identity":""})"), "");
  EXPECT_TRUE(question_->Has(Question::kRule));
  ASSERT_EQ(question_->identity.size(), 1u);
  EXPECT_EQ(question_->identity[0].value, "");
}

TEST_F(DecideRequestParserTest, AcceptsOnlyWholeNumbersThatFit64Bits) {
  EXPECT_EQ(Wrong(R"({"cost":9223372036854775807})"), "");
  EXPECT_EQ(question_->cost, INT64_MAX);
  EXPECT_EQ(Wrong(R"({"cost":-9223372036854775808})"), "");
  EXPECT_EQ(question_->cost, INT64_MIN);
  for (const std::string_view number :
       {"9223372036854775808", "18446744073709551615", "18446744073709551616", "1.0", "1e0", "1E3",
        "-0.0", "1e309", "1e-400", "99999999999999999999999999999999"}) {
    EXPECT_THAT(Wrong(R"({"cost":)" + std::string(number) + "}"), HasSubstr("/cost: ")) << number;
  }
  for (const std::string_view word : {"NaN", "Infinity", "-Infinity", "nan", "0x10", "01", "+1",
                                      ".5", "1.", "1_000", "--1", "-"}) {
    EXPECT_NE(Wrong(R"({"cost":)" + std::string(word) + "}"), "") << word;
  }
}

TEST_F(DecideRequestParserTest, RejectsWrongTypesWithPointer) {
  EXPECT_THAT(Wrong(R"({"cost":"1"})"), HasSubstr("/cost: this must be a whole number"));
  EXPECT_THAT(Wrong(R"({"cost":true})"), HasSubstr("/cost: "));
  EXPECT_THAT(Wrong(R"({"cost":null})"), HasSubstr("/cost: "));
  EXPECT_THAT(Wrong(R"({"cost":[1]})"), HasSubstr("/cost: "));
  EXPECT_THAT(Wrong(R"({"cost":{}})"), HasSubstr("/cost: "));
  EXPECT_THAT(Wrong(R"({"rule":1})"), HasSubstr("/rule: this must be a string"));
  EXPECT_THAT(Wrong(R"({"identity":1})"), HasSubstr("/identity: "));
  EXPECT_THAT(Wrong(R"({"identity":["a"]})"), HasSubstr("/identity: "));
  EXPECT_THAT(Wrong(R"({"identity":{"a":1}})"), HasSubstr("/identity/a: "));
  EXPECT_THAT(Wrong(R"({"identity":{"a":{}}})"), HasSubstr("/identity/a: "));
  EXPECT_THAT(Wrong(R"({"request":"x"})"), HasSubstr("/request: "));
  EXPECT_THAT(Wrong(R"({"request":{"path":1}})"), HasSubstr("/request/path: "));
  EXPECT_THAT(Wrong(R"({"request":{"headers":[]}})"), HasSubstr("/request/headers: "));
  EXPECT_THAT(Wrong(R"({"request":{"headers":{"a":1}}})"), HasSubstr("a string or an array"));
  EXPECT_THAT(Wrong(R"({"request":{"headers":{"a":[1]}}})"), HasSubstr("a string"));
  EXPECT_THAT(Wrong(R"({"request":{"headers":{"a":[["1"]]}}})"), HasSubstr("must be"));
}

/// RFC 6901: the pointer leads to the invalid value through every level of the document.
TEST_F(DecideRequestParserTest, PointsAtInvalidHeader) {
  EXPECT_THAT(Wrong(R"({"request":{"headers":{"x-a":1}}})"), HasSubstr("/request/headers/x-a: "));
  EXPECT_THAT(Wrong(R"({"request":{"headers":{"a/b~c":1}}})"),
              HasSubstr("/request/headers/a~1b~0c: "));
}

TEST_F(DecideRequestParserTest, PointsAtInvalidMemberNotAtThePrecedingOne) {
  EXPECT_THAT(Wrong(R"({"request":{"path":"/"},"cost":"1"})"), testing::StartsWith("/cost: "));
  EXPECT_THAT(Wrong(R"({"identity":{"a":"b"},"cost":"1"})"), testing::StartsWith("/cost: "));
  EXPECT_THAT(Wrong(R"({"request":{"headers":{"a":"b"},"path":1}})"),
              testing::StartsWith("/request/path: "));
}

TEST_F(DecideRequestParserTest, RejectsUnknownMembersWithHint) {
  EXPECT_THAT(Wrong(R"({"ruel":"x"})"), HasSubstr("rule"));
  EXPECT_THAT(Wrong(R"({"ruel":"x"})"), HasSubstr("/ruel: "));
  EXPECT_THAT(Wrong(R"({"request":{"clientip":"x"}})"), HasSubstr("client_ip"));
  EXPECT_THAT(Wrong(R"({"":1})"), HasSubstr("unknown member"));
  EXPECT_THAT(Wrong(R"({"Rule":"x"})"), HasSubstr("unknown member"));
  EXPECT_EQ(Read("{\"a\\r\\nb\":1}")->message.find('\n'), std::string::npos);
}

TEST_F(DecideRequestParserTest, RejectsDuplicateMembers) {
  EXPECT_THAT(Wrong(R"({"cost":1,"cost":1})"), HasSubstr("/cost: "));
  EXPECT_THAT(Wrong(R"({"cost":1,"co\u0073t":1})"), HasSubstr("/cost: "));
  EXPECT_NE(Wrong(R"({"identity":{"a":"1","a":"2"}})"), "");
  EXPECT_NE(Wrong(R"({"identity":"a","identity":{"a":"2"}})"), "");
  EXPECT_NE(Wrong(R"({"request":{"path":"/","path":"/"}})"), "");
}

TEST_F(DecideRequestParserTest, RejectsInvalidJson) {
  for (const std::string_view bad : {"",
                                     " ",
                                     "{",
                                     "{]",
                                     "}",
                                     "[",
                                     "nul",
                                     "null",
                                     "true",
                                     "7",
                                     "\"x\"",
                                     "[]",
                                     "[{}]",
                                     R"({"rule")",
                                     R"({"rule":)",
                                     R"({"rule":"x)",
                                     R"({"rule":"x")",
                                     R"({"rule":"x",})",
                                     R"({rule:"x"})",
                                     R"({'rule':'x'})",
                                     R"({"rule":"x"} x)",
                                     R"({"rule":"x"}{"rule":"x"})",
                                     R"({"rule":"x"},)",
                                     "{\"rule\":\"\xFF\"}",
                                     "{\"rule\":\"\xC0\x80\"}",
                                     "{\"rule\":\"\xED\xA0\x80\"}",
                                     "{\"rule\":\"a\nb\"}",
                                     R"({"rule":"\ud800"})",
                                     R"({"rule":"\x"})",
                                     R"({"rule":"\u12"})",
                                     "\xEF\xBB\xBF{}",
                                     "// x\n{}",
                                     "/* */{}"}) {
    EXPECT_NE(Wrong(bad), "") << bad;
  }
  EXPECT_NE(Wrong(std::string_view("{}\0", 3)), "");
  EXPECT_NE(Wrong(std::string_view("{\"rule\":\"a\0b\"}", 14)), "");
  EXPECT_EQ(Wrong(" \t\r\n{ } \n"), "");
}

TEST_F(DecideRequestParserTest, RejectsDeepNesting) {
  EXPECT_NE(Wrong(std::string(100'000, '[')), "");
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += R"({"request":)";
  EXPECT_NE(Wrong(deep), "");
}

TEST_F(DecideRequestParserTest, RejectsEveryTruncatedDocument) {
  const std::string whole =
      R"({"rule":"r\u00e9","identity":{"client_ip":"1.2.3.4"},"cost":12,"request":{"headers":{"a":["b"]}}})";
  ASSERT_EQ(Wrong(whole), "");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(Wrong(whole.substr(0, size)), "") << whole.substr(0, size);
  }
}

class BatchRequestParserTest : public testing::Test {
 protected:
  std::string Wrong(std::string_view json) {
    questions_.clear();
    const auto bad = ReadBatch(json, questions_, memory_);
    return bad ? bad->pointer + ": " + bad->message : "";
  }
  std::pmr::monotonic_buffer_resource memory_;
  std::pmr::vector<Question> questions_{&memory_};
};

TEST_F(BatchRequestParserTest, KeepsTheOrderOfRequests) {
  ASSERT_EQ(Wrong(R"({"requests":[{"rule":"a"},{"rule":"b","cost":2},{}]})"), "");
  ASSERT_EQ(questions_.size(), 3u);
  EXPECT_EQ(questions_[0].rule, "a");
  EXPECT_EQ(questions_[0].cost, 1);
  EXPECT_EQ(questions_[1].cost, 2);
  EXPECT_EQ(questions_[2].members, 0u);
}

TEST_F(BatchRequestParserTest, PointsAtTheInvalidRequest) {
  EXPECT_THAT(Wrong(R"({"requests":[{"rule":"a"},{"cost":"x"}]})"),
              testing::StartsWith("/requests/1/cost: "));
  EXPECT_THAT(Wrong(R"({"requests":[{"rule":"a"},{"cots":1}]})"),
              testing::StartsWith("/requests/1/cots: "));
  EXPECT_THAT(Wrong(R"({"requests":[]})"), testing::StartsWith("/requests: "));
  EXPECT_THAT(Wrong(R"({"requests":{}})"), testing::StartsWith("/requests: "));
  EXPECT_THAT(Wrong(R"({"requests":[1]})"), testing::StartsWith("/requests/0: "));
  EXPECT_THAT(Wrong(R"({"requests":[{},[]]})"), testing::StartsWith("/requests/1: "));
  EXPECT_NE(Wrong("{}"), "");
  EXPECT_NE(Wrong("[]"), "");
  EXPECT_NE(Wrong(R"({"rule":"a"})"), "");
  EXPECT_NE(Wrong(R"({"requests":[{}],"requests":[{}]})"), "");
}

}  // namespace
}  // namespace tidegate
