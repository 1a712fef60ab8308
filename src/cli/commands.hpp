// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admin/admin_call.hpp"
#include "cli/admin_client.hpp"
#include "tidegate/error.hpp"
#include "tidegate/quota.hpp"

namespace tidegate::cli {

// All commands except `serve`. Each returns an exit code.

inline constexpr std::int64_t kMaxDemoRequests = 10'000;

/// `tidegate demo`: one caller sends requests at twice or more the rate of its quota. With the
/// defaults the six algorithms differ within twelve requests.
struct DemoOptions {
  std::optional<Algorithm> algorithm = std::nullopt;  ///< nullopt: all six.
  std::int64_t limit = 3;
  Micros period = std::chrono::seconds{1};
  std::int64_t burst = 0;                         ///< The buckets' burst; 0: the limit.
  Micros every = std::chrono::milliseconds{100};  ///< Time between requests; 0 to 366 days.
  std::int64_t requests = 12;                     ///< 1 to kMaxDemoRequests.
};

/// Writes one table per algorithm. Runs in virtual time: it waits for nothing,
/// and the same options write the same text. Checks every quota before it
/// writes the first line; an Error is always a mistake in the options.
[[nodiscard]] Result<void> RunDemo(const DemoOptions& options, std::ostream& out);

struct DecideOptions {
  ClientOptions client = {};  ///< Connects to the API, not to the admin port.
  std::string rule = {};
  std::string identity = {};
  std::int64_t cost = 0;  ///< 0: the cost of the rule.
  bool peek = false;
};
/// Runs `tidegate decide`. Returns kOk if the request is allowed, kRuntime if it is denied.
[[nodiscard]] int Decide(const DecideOptions& options, const Console& console);

/// The key that a command is about: a rule, and the identity that it counts.
struct KeySelector {
  std::string rule = {};
  std::string identity = {};            ///< The value of the rule's first source.
  std::string key = {};                 ///< Alternative: the key as `hot` and `inspect` show it.
  std::vector<std::string> parts = {};  ///< Alternative: `source=value`, if the rule counts pairs.

  /// Returns the members `rule` and `identity` or `key`; an Error if they do not fit together.
  [[nodiscard]] Result<boost::json::object> Body() const;
  /// Returns a request with Body() and Hints().
  [[nodiscard]] Result<AdminRequest> RequestTo(std::string target) const;
  /// Returns advice for the case that the server cannot find the key.
  [[nodiscard]] std::vector<Hint> Hints() const;
  /// Returns the identity, the key or the parts as readable text.
  [[nodiscard]] std::string Text() const;
};

/// A change that an operator can make to a key. Its name is that of the command and the endpoint.
using Change = AdminAction;

struct ChangeOptions {
  Change change = Change::kReset;
  ClientOptions client = {};
  KeySelector selector = {};
  std::string amount = {};         ///< For kGrant: a whole number.
  std::string id = {};             ///< For kRefund: applied once for each id.
  std::int64_t cost = 0;           ///< For kRefund; 0: the cost of the rule.
  std::optional<Micros> age = {};  ///< For kRefund: how long ago the charge was.
  std::string limit = {};          ///< For kOverride: `5000/s`.
  std::int64_t burst = 0;          ///< For kOverride; 0: as the limit says.
  std::string duration = {};       ///< Empty: in force until it is lifted.
  std::string reason = {};
};
/// Returns the request to send; the Error says what is missing.
[[nodiscard]] Result<AdminRequest> RequestFor(const ChangeOptions& given);
/// `tidegate reset`, `grant`, `refund`, `ban`, `allow`, `override` and `lift`.
[[nodiscard]] int ChangeKey(const ChangeOptions& options, const Console& console);

struct InspectOptions {
  ClientOptions client = {};
  KeySelector selector = {};
};
/// `tidegate inspect`: prints what the store holds for a key.
[[nodiscard]] int Inspect(const InspectOptions& options, const Console& console);

/// The options of `tidegate explain`: a request to explain, or a rule and an identity.
struct ExplainOptions {
  ClientOptions client = {};
  KeySelector selector = {};  ///< If it has no rule, the request is explained.
  std::string method = {};
  std::string host = {};
  std::string path = {};                  ///< The path, with its query if there is one.
  std::vector<std::string> headers = {};  ///< `name: value`
  std::string client_ip = {};
  std::string peer = {};
  bool gateway = false;   ///< Explain it as a request to the gateway.
  std::int64_t cost = 0;  ///< 0: the costs of the rules.
  std::string lease = {};
};
/// Returns the request to send; the Error says what is missing.
[[nodiscard]] Result<AdminRequest> RequestFor(const ExplainOptions& options);
/// `tidegate explain`: prints the decision that a request would get, and why. Charges nothing.
[[nodiscard]] int Explain(const ExplainOptions& options, const Console& console);

struct HotOptions {
  ClientOptions client = {};
  std::string by = "requests";  ///< `requests`, `denials` or `cost`.
  std::int64_t limit = 20;
};
struct AuditOptions {
  ClientOptions client = {};
  std::int64_t limit = 100;
};
[[nodiscard]] int ListRules(const ClientOptions& options, const Console& console);
[[nodiscard]] int ListOverrides(const ClientOptions& options, const Console& console);
[[nodiscard]] int ListHot(const HotOptions& options, const Console& console);
[[nodiscard]] int ListAudit(const AuditOptions& options, const Console& console);

/// `tidegate status`: prints the state of a node since its start.
[[nodiscard]] int Status(const ClientOptions& options, const Console& console);
/// Runs `tidegate reload`. Returns when the configuration is in force; kUsage if it has errors.
[[nodiscard]] int Reload(const ClientOptions& options, const Console& console);

struct TopOptions {
  ClientOptions client = {};  ///< With --json, prints one object per refresh.
  Micros every = std::chrono::seconds{1};
  bool once = false;  ///< Print one view as plain text, or one object, and exit.
};
/// `tidegate top`: a live view of a server, full-screen in a terminal; elsewhere one view as text.
[[nodiscard]] int Top(const TopOptions& options, const Console& console);

struct BenchOptions {
  ClientOptions client = {};  ///< Connects to the API.
  std::string resp = {};      ///< Alternative: the address of the RESP listener.
  std::string rule = {};
  std::int64_t identities = 1000;
  double zipf = 0;         ///< The exponent; 0: all identities are equally likely.
  bool addresses = false;  ///< Identities are IPv4 addresses rather than names.
  int connections = 16;
  int threads = 1;
  int pipeline = 1;  ///< Requests in flight per connection; more than 1 only with RESP.
  Micros duration = std::chrono::seconds{5};
  double rate = 0;  ///< Requests per second; 0: as many as the server answers.
};
/// Runs `tidegate bench`. Returns kUsage or kNoAnswer if there was no decision at all.
[[nodiscard]] int Bench(const BenchOptions& options, const Console& console);

}  // namespace tidegate::cli
