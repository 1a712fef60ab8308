// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "gateway/upstream_pool.hpp"
#include "net/deadlines.hpp"
#include "net/http1_response.hpp"

namespace tidegate {

/// Counts good and bad answers in a row. No I/O.
class HealthCount {
 public:
  /// What the member is from now on; nothing: what it was.
  [[nodiscard]] std::optional<bool> Note(bool good, const UpstreamSpec::Health& health) noexcept;

 private:
  int good_ = 0;
  int bad_ = 0;
};

/// Asks one member how it is, whenever it is told to: one question at a time, each on a connection
/// of its own.
class HealthProbe final : private UpstreamConnection::User, private net::Deadlines::Node {
 public:
  HealthProbe(UpstreamPool& pool, std::shared_ptr<Member> member);
  ~HealthProbe();
  HealthProbe(const HealthProbe&) = delete;
  HealthProbe& operator=(const HealthProbe&) = delete;

  void Ask();
  [[nodiscard]] const std::shared_ptr<Member>& member() const noexcept { return member_; }

 private:
  void OnUpstreamUp() override;
  void OnUpstreamFailed(const std::string& problem) override;
  void OnUpstreamReady() override;
  void OnDeadline(net::Deadlines::Kind kind) override;
  void Finish(bool good, const std::string& why);

  UpstreamPool& pool_;
  const std::shared_ptr<Member> member_;
  const UpstreamSpec::Health& health_;
  UpstreamConnection* connection_ = nullptr;
  net::ResponseParser parser_;
  net::ResponseHead head_;
  bool parse_ = false;  ///< What is there has not been looked at yet.
  HealthCount count_;
};

}  // namespace tidegate
