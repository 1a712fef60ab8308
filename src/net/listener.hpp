// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/list_hook.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>

#include "net/address_counts.hpp"
#include "net/buffer_budget.hpp"
#include "net/deadlines.hpp"
#include "net/descriptor.hpp"
#include "net/endpoint.hpp"
#include "net/http1_parser.hpp"
#include "net/http_exchange.hpp"
#include "net/reactor.hpp"
#include "net/tls_server.hpp"
#include "tidegate/error.hpp"

namespace tidegate::net {

/// Whether nobody else listens there; the sockets themselves share the port and could not tell.
[[nodiscard]] Result<void> CheckFree(const Endpoint& endpoint);
/// A listening socket that shares its port with those of the other reactors.
[[nodiscard]] Result<Descriptor> Listen(const Endpoint& endpoint);

/// Why a listener closes a connection right after accepting it.
enum class Shed : std::uint8_t {
  kConnections,  ///< The listener has as many connections as it may have.
  kAddress,      ///< The client's address has as many connections as it may have.
  kDescriptors,  ///< The process is about to run out of file descriptors, or has none left.
};
inline constexpr std::size_t kShedReasons = 3;

/// Counters of a listener. Any thread may read them.
struct HttpStats {
  std::atomic<std::uint64_t> accepted{0};
  std::array<std::atomic<std::uint64_t>, kShedReasons> shed{};  ///< By Shed.
  std::atomic<std::uint64_t> open{0};                           ///< Connections that are open now.
  std::atomic<std::uint64_t> requests{0};  ///< Requests that the handler received.
  std::atomic<std::uint64_t> refused{0};   ///< Requests that were malformed, too large or too slow.

  /// One writer, so no locked instruction.
  static void Add(std::atomic<std::uint64_t>& counter) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
};

/// Answers by the class of their status, 1xx to 5xx; read from any thread.
struct AnswerCounts {
  static constexpr std::size_t kClasses = 5;
  std::array<std::atomic<std::uint64_t>, kClasses> by_class{};

  /// REQUIRES: 100 to 599.
  void Add(int status) noexcept {
    HttpStats::Add(by_class[static_cast<unsigned>(status) / 100 - 1]);
  }
};

/// A connection that a listener accepted. Owns itself, and tells the listener when it has ended.
class Connection : public Watcher,
                   public boost::intrusive::list_base_hook<
                       boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  virtual void Start() = 0;
  /// Ends the connection after the request in progress; an idle connection a moment later, in case
  /// a request is on its way already.
  virtual void Drain() = 0;
  /// Closes the connection at once, even in the middle of a request.
  virtual void Close() = 0;
  /// The progress of a connection, which would be lost if it were closed now.
  enum class Stage : std::uint8_t {
    kIdle,     ///< No byte of a request has arrived, and all responses are sent.
    kHead,     ///< The head of a request is incomplete.
    kRequest,  ///< A request or its response is in progress.
  };
  [[nodiscard]] virtual Stage stage() const noexcept { return Stage::kRequest; }

 private:
  friend class Listener;
  /// The address under which Options::per_address counts the connection, if it does.
  AddressCounts::Bytes counted_address_{};
  bool counted_ = false;
};

/// Why a connection is rejected before the frontend sees it. Only reasons that concern the peer's
/// identity: a client that speaks no TLS at all is refused without one.
enum class Rejection : std::uint8_t {
  kMissingCertificate,  ///< The client presented no certificate, and the listener requires one.
  kCertificate,         ///< The client's certificate is invalid, or it does not have the key.
  kUntrustedProxy,      ///< The PROXY protocol is required, and the peer is not a trusted proxy.
  kProxyHeader,         ///< A trusted proxy sent a malformed PROXY protocol header.
};

/// An accepted connection after the handshake, ready for the frontend's protocol.
struct Accepted {
  Descriptor socket;
  Peer peer;
  std::unique_ptr<TlsSession> tls;  ///< nullptr: the connection has no TLS.
};

/// Accepts connections for one reactor. Everything but stats() on its thread.
class Listener : public Watcher, public Deadlines::Node {
 public:
  /// The treatment of a new connection at a listener that has max_connections open.
  enum class WhenFull : std::uint8_t {
    kShed,
    /// The listener closes its oldest idle connection instead, or else the oldest connection whose
    /// request has an incomplete head.
    kReplaceOldest,
  };
  /// Pointers must outlive the listener.
  struct Options {
    HttpLimits limits;
    std::size_t max_connections = 20'000;      ///< Shared by all listeners with the same `open`.
    std::atomic<std::size_t>* open = nullptr;  ///< Must not be nullptr.
    AddressCounts* per_address = nullptr;      ///< nullptr: no limit per address.
    BufferBudget* budget = nullptr;            ///< nullptr: buffers have no common limit.
    /// Connections whose descriptor is not below this number are shed. The system always gives the
    /// lowest free number, so the number tells how many descriptors the process has left.
    int max_descriptor = std::numeric_limits<int>::max();
    WhenFull when_full = WhenFull::kShed;
    /// The deadline for the first byte of a connection.
    Deadlines::Kind silent_deadline = Deadlines::Kind::kHeader;
    /// Bytes that a client must at least send of a body, or read of an answer, between two
    /// deadlines of Kind::kBody or Kind::kWrite.
    std::size_t min_progress = 1024;
    /// Every connection begins with a header of the PROXY protocol, and comes from somebody whom
    /// Trust accepts; others are closed.
    bool proxy_protocol = false;
  };
  using Trusts = std::function<bool(const Peer& peer)>;
  /// Called on the listener's thread for every connection that is shed; `peer` is nullptr if the
  /// connection could not even be accepted.
  using OnShed = std::function<void(Shed why, const Peer* peer)>;
  /// Called on the listener's thread when half of many connections have ended.
  using OnSubsided = std::function<void()>;
  /// Called on the listener's thread. `problem` explains the rejection, or is empty.
  using OnRejected =
      std::function<void(const Peer& peer, Rejection rejection, std::string_view problem)>;

  Listener(Reactor& reactor, Descriptor socket, const Options& options);
  ~Listener() override;

  void Start();
  /// TLS for connections from now on. REQUIRES: there always was some, or never.
  void Use(std::shared_ptr<const TlsServer> tls) { tls_ = std::move(tls); }
  /// Who may speak for others, from now on.
  void Trust(Trusts trusts) { trusts_ = std::move(trusts); }
  /// Before Start.
  void Notify(OnShed on_shed, OnSubsided on_subsided) {
    on_shed_ = std::move(on_shed);
    on_subsided_ = std::move(on_subsided);
  }
  /// Sets the callback for connections that are rejected from now on.
  void SetOnRejected(OnRejected on_rejected) { on_rejected_ = std::move(on_rejected); }
  /// Accepts no more, ends all connections in good order, then calls `drained`.
  void Drain(std::function<void()> drained);

  /// Ends all connections at once, whatever they are doing.
  void CloseAll();

  [[nodiscard]] const HttpStats& stats() const noexcept { return stats_; }
  [[nodiscard]] HttpStats& stats() noexcept { return stats_; }
  /// nullptr: the door counts its answers itself, or they have no status.
  [[nodiscard]] virtual const AnswerCounts* answers() const noexcept { return nullptr; }
  [[nodiscard]] Reactor& reactor() noexcept { return reactor_; }
  [[nodiscard]] const Options& options() const noexcept { return options_; }
  [[nodiscard]] bool draining() const noexcept { return draining_; }
  /// A connection is over: it is deleted when nothing can refer to it any more.
  void OnGone(Connection& connection);
  [[nodiscard]] const std::shared_ptr<const TlsServer>& tls() const noexcept { return tls_; }
  [[nodiscard]] const Trusts& trusts() const noexcept { return trusts_; }
  [[nodiscard]] const OnRejected& on_rejected() const noexcept { return on_rejected_; }
  /// Replaces a finished handshake by the frontend's connection.
  void OnHandshakeDone(Connection& handshake, Accepted accepted);

  /// What a client is told, in the door's own protocol, before it is sent away: that there are too
  /// many,
  [[nodiscard]] virtual std::string_view shed_text() const noexcept = 0;
  /// or that it should have spoken TLS.
  [[nodiscard]] virtual std::string_view needs_tls_text() const noexcept = 0;

 protected:
  [[nodiscard]] virtual Connection* NewConnection(Accepted accepted) = 0;

 private:
  void OnReady(std::uint32_t events) override;
  void OnDeadline(Deadlines::Kind kind) override;
  void Adopt(Descriptor socket, const sockaddr_storage& address);
  /// Returns the reason to shed a connection that has been accepted; nullopt: it may stay, and has
  /// been counted in options_.open.
  [[nodiscard]] std::optional<Shed> Admit(int socket, const Peer& peer, bool& counted);
  void CountShed(Shed why, const Peer* peer);
  /// Closes a connection for WhenFull::kReplaceOldest. Returns false if all connections have
  /// requests in progress, and with WhenFull::kShed.
  bool CloseOldest();

  Reactor& reactor_;
  Descriptor socket_;
  const Options options_;
  std::shared_ptr<const TlsServer> tls_;
  Trusts trusts_;
  OnRejected on_rejected_;
  HttpStats stats_;
  OnShed on_shed_;
  OnSubsided on_subsided_;
  std::size_t open_ = 0;
  std::size_t peak_ = 0;  ///< Most connections since the last call of on_subsided_.
  bool draining_ = false;
  std::function<void()> drained_;
  boost::intrusive::list<Connection, boost::intrusive::constant_time_size<false>> connections_;
};

}  // namespace tidegate::net
