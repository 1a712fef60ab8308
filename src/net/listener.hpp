// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/list_hook.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "net/buffers.hpp"
#include "net/channel.hpp"
#include "net/descriptor.hpp"
#include "net/endpoint.hpp"
#include "net/http1_parser.hpp"
#include "net/http_exchange.hpp"
#include "net/reactor.hpp"
#include "net/timer.hpp"
#include "net/tls_server.hpp"
#include "tidegate/error.hpp"

namespace tidegate::net {

/// Limits the open connections of each client address. IPv6 addresses count by their prefix,
/// because one client can use all addresses of its network. Thread-safe.
class AddressCounts {
 public:
  /// An address as 16 bytes, IPv4 mapped into IPv6.
  using Bytes = std::array<unsigned char, 16>;

  /// Allows `most` connections per address. `ipv6_prefix` is from 1 to 128.
  AddressCounts(std::size_t most, int ipv6_prefix);

  /// Counts a connection. Returns false, and counts nothing, if the address has `most` already.
  [[nodiscard]] bool Add(const Bytes& address);
  /// Removes a connection that Add counted.
  void Remove(const Bytes& address) noexcept {
    const Bytes key = KeyOf(address);
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(key);
    if (found != counts_.end() && --found->second == 0) counts_.erase(found);
  }
  /// Number of addresses with open connections.
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return counts_.size();
  }

 private:
  struct Hash {
    std::uint64_t seed;
    [[nodiscard]] std::size_t operator()(const Bytes& address) const noexcept;
  };
  [[nodiscard]] Bytes KeyOf(const Bytes& address) const noexcept;

  const std::size_t most_;
  const int ipv6_prefix_;
  mutable std::mutex mutex_;
  /// The seed keeps an attacker from choosing addresses that collide. Guarded by mutex_.
  std::unordered_map<Bytes, std::size_t, Hash> counts_;
};

/// Returns an error if another process listens at `endpoint`. Listen does not detect that, because
/// it shares ports.
[[nodiscard]] Result<void> CheckFree(const Endpoint& endpoint);
/// Returns a listening socket that shares its port with those of the other reactors.
[[nodiscard]] Result<Descriptor> Listen(const Endpoint& endpoint);

/// The reasons why a listener closes a connection right after accepting it.
enum class Shed : std::uint8_t {
  kConnections,  ///< The listener has as many connections as it may have.
  kAddress,      ///< The client's address has as many connections as it may have.
  kDescriptors,  ///< The process is about to run out of file descriptors, or has none left.
};
inline constexpr std::size_t kShedReasons = 3;

/// Counters of a listener. Any thread may read them.
struct HttpStats {
  std::atomic<std::uint64_t> accepted{0};
  std::array<std::atomic<std::uint64_t>, kShedReasons> shed{};  ///< Indexed by Shed.
  std::atomic<std::uint64_t> open{0};                           ///< Connections that are open now.
  std::atomic<std::uint64_t> requests{0};  ///< Requests that the handler received.
  std::atomic<std::uint64_t> refused{0};   ///< Requests that were malformed, too large or too slow.

  /// Increments a counter that only one thread writes, so without a locked instruction.
  static void Add(std::atomic<std::uint64_t>& counter) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
};

/// Counts of responses by the class of their status, 1xx to 5xx. Any thread may read them.
struct AnswerCounts {
  static constexpr std::size_t kClasses = 5;
  std::array<std::atomic<std::uint64_t>, kClasses> by_class{};

  /// REQUIRES: `status` is from 100 to 599.
  void Add(int status) noexcept {
    HttpStats::Add(by_class[static_cast<unsigned>(status) / 100 - 1]);
  }
};

/// A connection that a listener accepted. Owns itself, and calls Listener::OnGone at its end.
class Connection : public Watcher,
                   public boost::intrusive::list_base_hook<
                       boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  virtual void Start() = 0;
  /// Ends the connection after the request in progress, or a moment later if it is idle.
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
  /// The address under which Options::per_address counts the connection if counted_ is true.
  AddressCounts::Bytes counted_address_{};
  bool counted_ = false;
};

/// The reasons why a connection is rejected before the frontend sees it, as far as they concern the
/// peer's identity.
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

class Listener;

/// Returns a connection that reads the PROXY protocol header and performs the TLS handshake, if the
/// listener requires them. It ends with Listener::OnHandshakeDone.
[[nodiscard]] Connection* NewHandshake(Listener& listener, Accepted accepted);

/// Accepts connections for one reactor. All methods but stats() must be called on its thread.
class Listener : public Watcher, public Deadlines::Node {
 public:
  /// The treatment of a new connection at a listener that has max_connections open.
  enum class WhenFull : std::uint8_t {
    kShed,
    /// Closes the oldest idle connection instead, or the oldest with an incomplete head.
    kReplaceOldest,
  };
  /// Pointers must outlive the listener.
  struct Options {
    HttpLimits limits;
    std::size_t max_connections = 20'000;      ///< Shared by all listeners with the same `open`.
    std::atomic<std::size_t>* open = nullptr;  ///< Number of open connections; not nullptr.
    AddressCounts* per_address = nullptr;      ///< nullptr: no limit per address.
    BufferBudget* budget = nullptr;            ///< nullptr: buffers have no common limit.
    /// Connections whose descriptor is not below this number are shed. The system gives the lowest
    /// free number, so a new descriptor shows how many are left.
    int max_descriptor = std::numeric_limits<int>::max();
    WhenFull when_full = WhenFull::kShed;
    /// The deadline for the first byte of a connection.
    Deadlines::Kind silent_deadline = Deadlines::Kind::kHeader;
    /// A client must send or read this many bytes between two deadlines of kBody or kWrite.
    std::size_t min_progress = 1024;
    /// Connections must begin with a PROXY header, from a trusted proxy (SetTrust).
    bool proxy_protocol = false;
  };
  using Trusts = std::function<bool(const Peer& peer)>;
  /// Called on the listener's thread; `peer` is nullptr if the connection was not even accepted.
  using OnShed = std::function<void(Shed why, const Peer* peer)>;
  /// Called on the listener's thread when the connections have fallen below half of a large peak.
  using OnSubsided = std::function<void()>;
  /// Called on the listener's thread. `problem` explains the rejection, or is empty.
  using OnRejected =
      std::function<void(const Peer& peer, Rejection rejection, std::string_view problem)>;

  /// The responses to clients that the frontend never sees, in its protocol. Static texts.
  struct Rejections {
    std::string_view shed;
    std::string_view needs_tls;
  };

  Listener(Reactor& reactor, Descriptor socket, const Options& options,
           const Rejections& rejections);
  ~Listener() override;

  void Start();
  /// Sets the TLS settings of new connections. REQUIRES: a listener that starts without TLS never
  /// gets any, and one with TLS keeps it.
  void SetTls(std::shared_ptr<const TlsServer> tls) { tls_ = std::move(tls); }
  /// Sets the predicate for trusted proxies, which may announce other clients, from now on.
  void SetTrust(Trusts trusts) { trusts_ = std::move(trusts); }
  /// REQUIRES: called before Start.
  void Notify(OnShed on_shed, OnSubsided on_subsided) {
    on_shed_ = std::move(on_shed);
    on_subsided_ = std::move(on_subsided);
  }
  /// Sets the callback for connections that are rejected from now on.
  void SetOnRejected(OnRejected on_rejected) { on_rejected_ = std::move(on_rejected); }
  /// Accepts no more connections, lets each finish its request, and then calls `drained`.
  void Drain(std::function<void()> drained);

  /// Closes all connections at once, even in the middle of requests.
  void CloseAll() {
    for (auto it = connections_.begin(); it != connections_.end();) (it++)->Close();
  }

  [[nodiscard]] const HttpStats& stats() const noexcept { return stats_; }
  [[nodiscard]] HttpStats& stats() noexcept { return stats_; }
  /// Returns the counts of responses; nullptr if the frontend counts them, or if its responses have
  /// no status.
  [[nodiscard]] virtual const AnswerCounts* answers() const noexcept { return nullptr; }
  [[nodiscard]] Reactor& reactor() noexcept { return reactor_; }
  [[nodiscard]] const Options& options() const noexcept { return options_; }
  [[nodiscard]] bool draining() const noexcept { return draining_; }
  /// Called by a connection that has ended. Deletes the connection when nothing can refer to it.
  void OnGone(Connection& connection);
  [[nodiscard]] const std::shared_ptr<const TlsServer>& tls() const noexcept { return tls_; }
  [[nodiscard]] const Trusts& trusts() const noexcept { return trusts_; }
  [[nodiscard]] const OnRejected& on_rejected() const noexcept { return on_rejected_; }
  /// Replaces a finished handshake by the frontend's connection.
  void OnHandshakeDone(Connection& handshake, Accepted accepted);
  [[nodiscard]] const Rejections& rejections() const noexcept { return rejections_; }

 protected:
  [[nodiscard]] virtual Connection* NewConnection(Accepted accepted) = 0;
  /// Deletes all connections. REQUIRES: the reactor has ended.
  void DeleteConnections() noexcept {
    connections_.clear_and_dispose([](Connection* connection) { delete connection; });
  }

 private:
  void OnReady(std::uint32_t events) override;
  void OnDeadline(Deadlines::Kind) override { OnReady(0); }
  /// Accepts a connection. If it fails, returns false, and errno has the cause.
  [[nodiscard]] bool AcceptOne();
  void Adopt(Descriptor socket, const sockaddr_storage& address);
  /// Adds and starts a connection.
  void Add(Connection& connection, bool counted, const AddressCounts::Bytes& address);
  /// Returns why an accepted connection is shed; nullopt: it stays, counted in options_.open.
  [[nodiscard]] std::optional<Shed> Admit(int socket, const Peer& peer, bool& counted);
  void CountShed(Shed why, const Peer* peer);
  /// Closes a connection for WhenFull::kReplaceOldest. Returns false if none may be closed.
  bool CloseOldest();

  Reactor& reactor_;
  Descriptor socket_;
  const Options options_;
  const Rejections rejections_;
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

/// The part that connections of HTTP, the gateway and the Redis protocol share: socket, buffers,
/// one deadline, and the end of the connection. Owns itself: it is deleted after it was closed.
class ServerConnection : public Connection, public Deadlines::Node {
 public:
  void Start() override {
    Arm(idle_deadline());
    if (!owner_.reactor().Watch(channel_.fd(), *this)) Close();
  }
  void Close() final {
    if (std::exchange(life_, Life::kClosed) == Life::kClosed) return;
    Deadlines::Disarm(*this);
    if (OnClosed()) Release();
  }

 protected:
  using Kind = Deadlines::Kind;

  ServerConnection(Listener& owner, Accepted accepted, BufferPool& buffers);

  /// Called once by Close. Returns false if the input is still in use: call Release later.
  [[nodiscard]] virtual bool OnClosed() = 0;
  /// Closes the socket and removes the connection from its listener. REQUIRES: closed().
  void Release() {
    channel_.Close();
    owner_.OnGone(*this);
  }
  [[nodiscard]] bool closed() const noexcept { return life_ == Life::kClosed; }

  /// Ends the connection after the last response. Further input is read and dropped: a close with
  /// unread bytes would reset the connection, and the client might lose the response.
  void Linger() {
    channel_.ShutdownAndDropInput();
    life_ = Life::kLingering;
    Arm(Kind::kLinger);
    DropInput();
  }
  [[nodiscard]] bool lingering() const noexcept { return life_ == Life::kLingering; }
  /// Drops the input that has arrived. Closes the connection if the client has ended it, or if
  /// there is too much input. REQUIRES: lingering().
  void DropInput();

  void Arm(Kind kind) noexcept {
    armed_ = kind;
    active_ = false;
    progress_mark_ = channel_.received() + channel_.sent();
    owner_.reactor().deadlines().Arm(*this, kind, owner_.reactor().now());
  }
  /// Arms a deadline unless it is armed already.
  void Await(Kind kind) noexcept {
    if (kind != armed_ || !Deadlines::IsArmed(*this)) Arm(kind);
  }
  /// Arms the deadline of a connection that waits for a request or, with kHeader and kBody, for the
  /// rest of a request. A request that has begun after an answered request has its own deadline.
  void AwaitRequest(Kind kind) noexcept {
    const bool begun = kind == Kind::kHeader || kind == Kind::kBody;
    if (kind != armed_ || (active_ && begun)) Arm(kind);
  }
  /// Returns the deadline of a connection that has received no byte of its next request.
  [[nodiscard]] Kind idle_deadline() const noexcept {
    return draining_ ? Kind::kLinger : silent_ ? owner_.options().silent_deadline : Kind::kIdle;
  }
  /// Returns the bytes that were received and sent since the deadline was armed.
  [[nodiscard]] std::size_t progress() const noexcept {
    return channel_.received() + channel_.sent() - progress_mark_;
  }
  /// Returns true if the client moved enough bytes to get another deadline.
  [[nodiscard]] bool fast_enough() const noexcept {
    return progress() >= owner_.options().min_progress;
  }
  /// Handles an expired deadline of an HTTP connection. Returns the refusal to send; nothing if the
  /// deadline was armed again or the connection was closed.
  [[nodiscard]] std::optional<HttpRefusal> CheckDeadline(Kind kind);

  const Peer peer_;
  Channel channel_;
  bool silent_ = true;  ///< The client has not sent a byte yet.
  bool draining_ = false;
  bool active_ = false;  ///< A request has arrived since the deadline was armed.

 private:
  enum class Life : std::uint8_t { kOpen, kLingering, kClosed };

  Listener& owner_;
  Life life_ = Life::kOpen;
  Kind armed_ = Kind::kHeader;
  std::size_t progress_mark_ = 0;  ///< Bytes received and sent before the deadline was armed.
};

}  // namespace tidegate::net
