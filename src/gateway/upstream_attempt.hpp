// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "gateway/upstream_pool.hpp"
#include "net/http1_body.hpp"
#include "net/http1_parser.hpp"

namespace tidegate {

class Gateway;

/// One attempt to get the response to a request from one target of an upstream, over HTTP/1.1:
/// connects, writes the request, reads the response, and reports how it failed and whether the
/// target is to blame. The exchange drives it; no function blocks. An object serves one attempt
/// after another, each from Begin to Finish or Abandon.
///
/// The exchange uses an attempt as a stream: it accepts the head, body and end of the request,
/// provides the head, body and end of the response, and limits how much may be sent (blocked). Only
/// this class handles the HTTP/1.1 form of request and response.
class UpstreamAttempt final {
 public:
  using Clock = net::Deadlines::Clock;

  /// `exchange` is called when the connection is up, has failed, or can be read or written.
  UpstreamAttempt(Gateway& gateway, UpstreamConnection::User& exchange) noexcept
      : gateway_(gateway), exchange_(exchange) {}

  /// Sets the upstream of the next attempts, its counters' slot, and the limits of response heads.
  void Use(std::shared_ptr<UpstreamPool> pool, std::uint32_t slot,
           const net::HttpLimits& limits) noexcept {
    pool_ = std::move(pool);
    slot_ = slot;
    limits_ = limits;
  }
  [[nodiscard]] UpstreamPool& pool() noexcept { return *pool_; }
  [[nodiscard]] const UpstreamSpec& spec() const noexcept { return pool_->upstream().spec(); }

  enum class Begun : std::uint8_t {
    kUp,          ///< The connection was idle: send the request.
    kConnecting,  ///< The exchange will be called when the connection is up or has failed.
    kFailed,      ///< There is no connection: call Abandon.
    kDown,        ///< No target is up. There is no attempt.
    kFull,        ///< All targets have `max_requests` requests. There is no attempt.
  };
  /// Chooses a target, preferably one that is not in `tried`, adds it to `tried`, and gets a
  /// connection to it.
  [[nodiscard]] Begun Begin(TriedTargets& tried, Clock::time_point now);
  /// Called when the connection could not be established and is closed: call Abandon next.
  void LoseConnection(const std::string& problem) {
    connection_ = nullptr;  // The pool has already taken it back.
    SetFailure(AttemptFailure::kConnect, problem);
  }
  /// Returns the target of the last attempt; nullptr if there was no attempt.
  [[nodiscard]] const Member* target() const noexcept { return member_.get(); }

  // --- The request ---
  /// Returns the buffer for the head of the request. The response time counts from now, or from
  /// `earliest` if that is later.
  [[nodiscard]] net::OutBuffer& BeginRequest(Clock::time_point earliest);
  /// Returns true if the upstream accepts no more for now. The exchange is called when that
  /// changes.
  [[nodiscard]] bool blocked() const noexcept { return connection_->channel().blocked(); }
  void SendBody(std::string_view data) {
    if (!connection_->channel().Send(data)) state_ = State::kBroken;
  }
  void SendChunk(std::string_view data) {
    net::WriteChunkSize(out(), data.size());
    SendBody(data);
    out() << "\r\n";
  }
  /// Returns the output buffer, for bytes after the last chunk.
  [[nodiscard]] net::OutBuffer& out() { return connection_->channel().out(); }
  /// Call when all of the request has been written.
  void EndRequest() noexcept {
    if (state_ == State::kSending) state_ = State::kSent;
  }
  [[nodiscard]] bool sent() const noexcept { return state_ == State::kSent; }
  void Flush() {
    if (!connection_->channel().Flush()) state_ = State::kBroken;
  }
  /// Returns true if the upstream accepts no more of the request. It may have responded
  /// nevertheless.
  [[nodiscard]] bool broken() const noexcept { return state_ == State::kBroken; }

  // --- The response ---
  enum class Got : std::uint8_t {
    kData,
    kWait,    ///< More will come: the exchange is called.
    kEnd,     ///< The body is complete.
    kFailed,  ///< Call Abandon.
  };
  /// Reads the next head, interim or final. With kData it is in head().
  [[nodiscard]] Got ReadHead(net::AnswerTo to);
  [[nodiscard]] const net::ResponseHead& head() const noexcept { return head_; }
  /// Continues with the next head after an interim response.
  void DropInterim() {
    connection_->channel().Drop(parser_.consumed());
    parser_.Reset();
  }
  /// Records the time until the final head.
  void CountResponse() noexcept;
  /// Records that the target did well (kGood), or failed or responded with 502, 503 or 504 (kBad).
  void NoteResult(AttemptResult result);
  /// Begins the body of the response, after the final head.
  void BeginBody() {
    problem_.clear();  // The problem may be from an earlier attempt.
    reading_ = Reading::kBody;
    body_.Begin(head_.body, head_.content_length, pool_->upstream().line_end());
    connection_->channel().Drop(parser_.consumed());
  }
  /// Reads the next part of the body. With kData and kEnd it is in data(), which may be empty at
  /// the end. Call TakeBody next.
  [[nodiscard]] Got ReadBody();
  [[nodiscard]] std::string_view data() const noexcept { return body_.data(); }
  void TakeBody() noexcept { connection_->channel().Drop(body_.eaten()); }
  [[nodiscard]] std::span<const net::HttpField> trailers() const noexcept {
    return body_.trailers();
  }

  // --- Tunnels ---
  /// After a 101: both directions carry raw bytes until their sender ends them.
  void BeginTunnel() {
    reading_ = Reading::kTunnel;
    if (state_ == State::kSent) state_ = State::kSending;
    body_.Begin(net::BodyFraming::kUntilClose, 0);
    connection_->channel().Drop(parser_.consumed());
  }
  /// Tells the upstream that no more bytes will follow.
  void EndSending() noexcept { connection_->channel().ShutdownWrite(); }
  [[nodiscard]] bool reset() const noexcept { return connection_->channel().reset(); }

  // --- The end ---
  /// Call when the response is complete. Keeps the connection for another request if the request
  /// and the response are complete.
  void Finish() {
    if (body_.done()) TakeBody();
    const bool whole = state_ == State::kSent && reading_ != Reading::kTunnel;
    Release(whole && head_.keep_alive ? Reuse::kYes : Reuse::kNo);
  }
  /// Tells whether a failure counts against the target.
  enum class Blame : std::uint8_t { kTarget, kUnknown };
  /// Sets the failure that the next Abandon records.
  void SetFailure(AttemptFailure failure, std::string_view problem, Blame blame = Blame::kTarget) {
    failure_ = failure;
    problem_ = problem;
    blame_ = blame;
  }
  /// Records the failure and closes the connection. Returns false if any of the request was sent.
  [[nodiscard]] bool Abandon();
  /// Records that another attempt follows.
  void CountRetry() noexcept;
  [[nodiscard]] AttemptFailure failure() const noexcept { return failure_; }
  /// Returns why the last attempt failed, for logs; empty if it did not fail.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  void SetProblem(std::string_view problem) { problem_ = problem; }
  /// Closes the connection, if there still is one, without a failure.
  void Close() { Release(Reuse::kNo); }
  /// Forgets everything about the last attempts, at the end of the exchange.
  void Forget() noexcept {
    pool_.reset();
    member_.reset();
    problem_.clear();
    sent_at_ = {};
  }

  [[nodiscard]] bool connected() const noexcept { return connection_ != nullptr; }
  [[nodiscard]] std::uint64_t received() const noexcept {
    return connection_->channel().received();
  }
  [[nodiscard]] std::uint64_t sent_bytes() const noexcept { return connection_->channel().sent(); }
  /// Returns the time at which the last request was sent; zero if no request was sent.
  [[nodiscard]] Clock::time_point sent_at() const noexcept { return sent_at_; }
  /// Makes the exchange continue in the next round of the reactor.
  void Yield();

 private:
  enum class State : std::uint8_t {
    kIdle,  ///< There is no attempt.
    kConnecting,
    kSending,  ///< Sends the request, or the client's bytes through a tunnel.
    kSent,
    kBroken,
  };
  enum class Reading : std::uint8_t { kHead, kBody, kTunnel };
  enum class Reuse : std::uint8_t { kNo, kYes };

  /// Reads more. Returns kData if bytes have arrived, or if the buffer has room for more now.
  [[nodiscard]] Got Fill();
  [[nodiscard]] Got Fail(AttemptFailure failure, std::string_view problem) {
    SetFailure(failure, problem);
    return Got::kFailed;
  }
  void Count(std::size_t column) noexcept;
  void Release(Reuse reuse);

  Gateway& gateway_;
  UpstreamConnection::User& exchange_;
  std::shared_ptr<UpstreamPool> pool_;
  std::uint32_t slot_ = 0;
  net::HttpLimits limits_;
  std::shared_ptr<Member> member_;
  UpstreamConnection* connection_ = nullptr;
  State state_ = State::kIdle;
  Reading reading_ = Reading::kHead;
  AttemptFailure failure_ = AttemptFailure::kConnect;
  Blame blame_ = Blame::kTarget;
  std::string problem_;
  net::ResponseParser parser_;
  net::ResponseHead head_;
  net::BodyReader body_;
  int interims_ = 0;
  std::uint64_t sent_before_ = 0;  ///< Bytes that the connection had sent before this request.
  Clock::time_point sent_at_{};
};

}  // namespace tidegate
