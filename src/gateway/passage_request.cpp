// SPDX-License-Identifier: Apache-2.0
// Forwards the request from the client to the upstream.
//
// Each direction has one buffer and one rule: nothing is read from one side until the other side
// has accepted the bytes read before. A slow reader thus slows the writer down, in fixed memory.
#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "gateway/fields.hpp"
#include "gateway/gateway.hpp"
#include "gateway/passage.hpp"
#include "gateway/proxy_head.hpp"

namespace tidegate {

using net::Channel;
using net::OutBuffer;

namespace {

/// Returns the protocol that a request asks to upgrade to. REQUIRES: MayUpgrade(head), so there is
/// exactly one.
std::string_view RequestedProtocol(const net::HttpHead& head) noexcept {
  std::string_view protocol;
  for (const net::HttpField& field : head.all()) {
    if (!SameName(field.name, "upgrade")) continue;
    EachElement(field.value, [&protocol](std::string_view element) {
      protocol = element;
      return false;
    });
  }
  return protocol;
}

}  // namespace

void Passage::SendRequest() {
  Channel& channel = upstream_->channel();
  upstream_begun_ = channel.sent();
  sent_at_ = std::max(gateway_.reactor().now(), decided_);
  const RouteSpec& spec = route_->spec;
  const std::string_view host = spec.host == RouteSpec::Host::kTarget  ? member_->authority
                                : spec.host == RouteSpec::Host::kFixed ? spec.host_name
                                : head_.host.empty()                   ? member_->authority
                                                                       : head_.host;
  WriteRequestHead(channel.out(), head_, fields_,
                   {.path = upstream_path_,
                    .host = host,
                    .peer = peer_text_,
                    .scheme = client_->peer().secure ? "https" : "http",
                    .request_id = request_id_,
                    .upgrade = upgrade_},
                   spec.request_headers);
  if (upgrade_) protocol_ = Keep(RequestedProtocol(head_));
  phase_ = Phase::kSending;
  if (const auto whole = client_->WholeBody()) {
    if (!channel.Send(*whole)) request_broken_ = true;
    request_done_ = true;
  } else if (head_.body == net::HttpBody::kLength || head_.body == net::HttpBody::kChunked) {
    KeepHead();
  }
  Pump();
}

void Passage::OnUpstreamReady() { Pump(); }

void Passage::OnClientReady() {
  if (phase_ != Phase::kDeciding && phase_ != Phase::kConnecting) Pump();
}

void Passage::Pump() {
  if (phase_ == Phase::kOrphan) return PumpOrphan();
  if (std::exchange(pumping_, true)) return;
  if (PumpRequest() == Pumped::kOver || PumpResponse() == Pumped::kOver) return;
  pumping_ = false;
  Settle();
}

void Passage::WriteChunk(Channel& channel, std::string_view data) {
  std::array<char, 16> size{};
  const char* const end =
      std::to_chars(size.data(), size.data() + size.size(), data.size(), 16).ptr;
  channel.out() << std::string_view(size.data(), static_cast<std::size_t>(end - size.data()))
                << "\r\n";
  if (!channel.Send(data)) request_broken_ = true;
  channel.out() << "\r\n";
}

void Passage::EndRequest(Channel& channel) {
  request_done_ = true;
  if (phase_ == Phase::kTunnel || head_.body != net::HttpBody::kChunked) return;
  OutBuffer& out = channel.out();
  out << "0\r\n";
  WriteRequestTrailers(out, client_->trailers(), route_->spec.request_headers, FieldPolicy());
  out << "\r\n";
}

Passage::Pumped Passage::PumpRequest() {
  Channel& channel = upstream_->channel();
  for (int turn = 0;; ++turn) {
    // An upstream that accepts no more may still have responded: PumpResponse looks for it.
    if (request_broken_ || (channel.blocked() && !channel.Flush())) {
      request_broken_ = true;
      return Pumped::kWait;
    }
    if (channel.blocked()) return Pumped::kWait;
    if (request_done_) {
      if (phase_ == Phase::kSending) phase_ = Phase::kAwaiting;
      if (phase_ == Phase::kTunnel) channel.ShutdownWrite();
      return Pumped::kWait;
    }
    if (turn == kMaxTurns) {
      gateway_.reactor().Again(*upstream_);
      return Pumped::kWait;
    }
    if (!head_kept_) KeepHead();
    consumed_ = true;
    switch (client_->ReadBody()) {
      case ClientStream::Body::kData: {
        const std::string_view data = client_->body();
        body_bytes_ += data.size();
        if (route_->body_bytes != 0 && phase_ != Phase::kTunnel &&
            body_bytes_ > route_->body_bytes) {
          return RefuseBody({413, "the body is longer than the route allows"});
        }
        if (phase_ != Phase::kTunnel && head_.body == net::HttpBody::kChunked) {
          WriteChunk(channel, data);
        } else if (!channel.Send(data)) {
          request_broken_ = true;
        }
        client_->TakeBody();
        break;
      }
      case ClientStream::Body::kWait:
        if (!channel.Flush()) request_broken_ = true;
        return Pumped::kWait;
      case ClientStream::Body::kEnd:
        EndRequest(channel);
        break;
      case ClientStream::Body::kRefused:
        return RefuseBody(client_->refusal());
      case ClientStream::Body::kGone:
        End(PassageOutcome::kClientGone, ClientStream::Ending::kCut);
        return Pumped::kOver;
    }
  }
}

/// Rejects a body that is malformed, too long or too slow. Closes the upstream's connection, so
/// that the upstream does not take the part that it has received for the whole body.
Passage::Pumped Passage::RefuseBody(const net::HttpRefusal& refusal) {
  ReleaseUpstream(false);
  client_->CloseAfter();
  if (answer_begun_) {
    End(PassageOutcome::kBadRequest, ClientStream::Ending::kCut);
  } else {
    AnswerProblem(refusal.status, refusal.reason, PassageOutcome::kBadRequest);
  }
  return Pumped::kOver;
}

}  // namespace tidegate
