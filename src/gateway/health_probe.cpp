// SPDX-License-Identifier: Apache-2.0
#include "gateway/health_probe.hpp"

#include <utility>

#include "telemetry/log.hpp"

namespace tidegate {

std::optional<bool> HealthCount::Note(bool good, const UpstreamSpec::Health& health) noexcept {
  good_ = good ? good_ + 1 : 0;
  bad_ = good ? 0 : bad_ + 1;
  if (good_ >= health.healthy) {
    good_ = health.healthy;  // Years of good health must not overflow.
    return true;
  }
  if (bad_ >= health.unhealthy) {
    bad_ = health.unhealthy;
    return false;
  }
  return std::nullopt;
}

HealthProbe::HealthProbe(UpstreamPool& pool, std::shared_ptr<Member> member)
    : pool_(pool), member_(std::move(member)), health_(*pool.upstream().spec().health) {}

HealthProbe::~HealthProbe() {
  if (connection_ != nullptr) pool_.Discard(*connection_);
}

void HealthProbe::Ask() {
  if (connection_ != nullptr) return;  // Still waiting for the last one.
  parser_ = net::ResponseParser(pool_.upstream().line_end());
  parse_ = false;
  std::string problem;
  bool ours = false;
  connection_ = pool_.Lend(member_, *this, problem, ours);
  if (connection_ == nullptr && ours) return;  // It says nothing about the target.
  if (connection_ == nullptr) return Finish(false, problem);
  net::Deadlines& deadlines = pool_.reactor().deadlines();
  deadlines.Arm(*this, deadlines.KindFor(health_.timeout));
}

void HealthProbe::OnUpstreamUp() {
  net::Channel& channel = connection_->channel();
  channel.out() << "GET " << health_.path << " HTTP/1.1\r\nHost: "
                << (health_.host.empty() ? member_->authority : health_.host)
                << "\r\nUser-Agent: tidegate-health\r\nConnection: close\r\n\r\n";
  if (!channel.Flush()) Finish(false, "the connection broke off");
}

void HealthProbe::OnUpstreamFailed(const std::string& problem) {
  connection_ = nullptr;
  Finish(false, problem);
}

void HealthProbe::OnUpstreamReady() {
  net::Channel& channel = connection_->channel();
  if (!channel.Flush()) return Finish(false, "the connection broke off");
  while (true) {
    // What is there first: an interim answer may have brought the final one along.
    if (!parse_ || channel.input().empty()) {
      switch (channel.Fill()) {
        case net::Channel::Got::kBytes:
          break;
        case net::Channel::Got::kNothing:
          return;
        case net::Channel::Got::kFull:
          return Finish(false, "response head is longer than the limit");
        default:
          return Finish(false, "the connection ended without an answer");
      }
    }
    parse_ = false;
    switch (parser_.Parse(channel.input(), {}, net::AnswerTo::kOther, head_)) {
      case net::Parsed::kMore:
        continue;
      case net::Parsed::kRefused:
        return Finish(false, std::string(parser_.reason()));
      case net::Parsed::kDone:
        break;
    }
    if (head_.status < 200) {
      channel.Drop(parser_.consumed());
      parser_.Reset();
      parse_ = true;
      continue;
    }
    const bool good = head_.status >= health_.status_from && head_.status <= health_.status_to;
    return Finish(good, "status " + std::to_string(head_.status));
  }
}

void HealthProbe::OnDeadline(net::Deadlines::Kind) { Finish(false, "no answer in time"); }

void HealthProbe::Finish(bool good, const std::string& why) {
  net::Deadlines::Disarm(*this);
  if (connection_ != nullptr) pool_.Discard(*std::exchange(connection_, nullptr));
  const auto healthy = count_.Note(good, health_);
  if (!healthy || member_->healthy.exchange(*healthy) == *healthy) return;
  const std::string& upstream = pool_.upstream().spec().name;
  if (*healthy) {
    Log::Info("a target is back", {{"upstream", upstream}, {"target", member_->text}});
  } else {
    Log::Warning("a target is down: it gets no requests until it answers its health checks",
                 {{"upstream", upstream}, {"target", member_->text}, {"why", why}});
  }
}

}  // namespace tidegate
