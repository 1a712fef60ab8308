// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.hpp"
#include "net/descriptor.hpp"

namespace tidegate::cli {

/// A server's response to one request of a bench.
struct BenchResponse {
  bool allowed = false;
  int status = 0;                    ///< The HTTP status; 0 with RESP.
  std::string_view decided_by = {};  ///< Empty if not reported. Valid until the next call.
  std::string fatal_error = {};  ///< Not empty: no decision, and further requests will fail too.
  bool last = false;             ///< The server closes the connection after this response.
};

/// Writes the requests and parses the responses of one connection as bytes. Does no I/O.
class BenchWire {
 public:
  enum class Progress : std::uint8_t { kResponse, kMore, kMalformed };
  virtual ~BenchWire() = default;
  /// Appends the bytes to send before the first request. Next skips the reply to them.
  virtual void AddGreeting(std::string& out) = 0;
  virtual void AddRequest(std::string_view identity, std::string& out) = 0;
  virtual void Feed(std::string_view bytes) = 0;
  [[nodiscard]] virtual Progress Next(BenchResponse& response) = 0;
  /// Drops the state of the old connection, because a new one begins.
  virtual void Reset() = 0;
};

/// Returns a wire whose requests are `POST /v1/decide`.
[[nodiscard]] std::unique_ptr<BenchWire> MakeHttpWire(const ServerAddress& address,
                                                      std::string_view rule,
                                                      std::string_view token);
/// Returns a wire whose requests are `TG.DECIDE`.
[[nodiscard]] std::unique_ptr<BenchWire> MakeRespWire(std::string_view rule,
                                                      std::string_view token);

/// Draws numbers below n by Zipf's law: the k-th number is drawn in proportion to 1/k^exponent.
/// Needs no table, however large n is, because it uses rejection-inversion (Hoermann and
/// Derflinger, 1996), which takes at most 1.1 tries per draw on average.
class ZipfGenerator {
 public:
  /// With exponent 0 all numbers are equally likely. REQUIRES: count >= 1, exponent >= 0.
  ZipfGenerator(std::uint64_t count, double exponent, std::uint64_t seed);
  /// Returns a number from 0 to count - 1; 0 is the most frequent.
  [[nodiscard]] std::uint64_t Next();

 private:
  [[nodiscard]] double Area(double x) const;    ///< The integral of Height.
  [[nodiscard]] double Height(double x) const;  ///< x^-exponent
  [[nodiscard]] double AreaInverse(double area) const;

  std::uint64_t count_;
  double exponent_;
  double area_first_ = 0;
  double area_last_ = 0;
  double shortcut_ = 0;  ///< Values this close to a whole number are accepted.
  std::mt19937_64 random_;
};

/// A histogram of durations. Each is recorded to within 1/32 of its value; the longest is exact.
class LatencyRecord {
 public:
  using Duration = std::chrono::nanoseconds;

  void Add(Duration duration) noexcept;
  void Merge(const LatencyRecord& other) noexcept;

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] Duration max() const noexcept { return max_; }
  /// Returns an upper bound of the quantile `q`, at most 1/32 too long; 0 if the record is empty.
  [[nodiscard]] Duration Quantile(double q) const noexcept;

 private:
  static constexpr unsigned kBits = 5;  ///< 32 buckets per power of two.
  static constexpr unsigned kPowers = 44;
  [[nodiscard]] static std::size_t IndexOf(std::uint64_t ns) noexcept;
  [[nodiscard]] static std::uint64_t EndOf(std::size_t index) noexcept;

  std::array<std::uint64_t, (kPowers + 1) << kBits> counts_{};
  std::uint64_t count_ = 0;
  Duration max_{0};
};

/// The results of a load test.
struct BenchResult {
  std::uint64_t allowed = 0;
  std::uint64_t denied = 0;
  std::uint64_t errors = 0;  ///< Requests without a response, and failed connections.
  double seconds = 0;        ///< The duration of the load; not merged.
  std::map<int, std::uint64_t> statuses = {};
  std::map<std::string, std::uint64_t, std::less<>> sources = {};
  LatencyRecord latency = {};
  std::string fatal_error = {};  ///< Not empty: the server will never answer such requests.
  std::string first_error = {};  ///< The first of `errors`.

  [[nodiscard]] std::uint64_t decisions() const noexcept { return allowed + denied; }
  void Merge(const BenchResult& other);
};

/// Sends requests over the connections of one thread. Without a rate, each connection keeps
/// `pipeline` requests in flight. With a rate, all connections together send that many requests per
/// second, and latencies count from when a request was due, so a stalled server cannot hide its
/// delays.
class BenchLoad {
 public:
  using Clock = std::chrono::steady_clock;

  /// Opens `connections` of all connections, which get the same share of the rate. `seed`
  /// determines the identities. REQUIRES: `options`, `client` and `stop` outlive this object.
  BenchLoad(const BenchOptions& options, const AdminClient& client, int connections,
            std::uint64_t seed, const std::atomic<bool>& stop);

  /// Runs until `end`, `stop` or a fatal error; then waits for the requests in flight.
  void Run(Clock::time_point end);

  [[nodiscard]] const BenchResult& result() const noexcept { return result_; }
  /// Returns the number of decisions so far. Thread-safe.
  [[nodiscard]] std::uint64_t answered() const noexcept {
    return answered_.load(std::memory_order_relaxed);
  }

 private:
  struct Connection {
    net::Descriptor socket;
    std::unique_ptr<BenchWire> wire;
    std::string out;
    std::deque<Clock::time_point> due;  ///< When each request in flight was due.
    Clock::time_point reopen_at;        ///< When to reopen the closed connection.
    bool waits_to_write = false;
  };

  void Open(Connection& connection, Clock::time_point now);
  void Close(Connection& connection, const std::string& why);
  void Send(Connection& connection, Clock::time_point due);
  void Fill(Connection& connection);
  void FillByRate(Clock::time_point now);
  void Flush(Connection& connection);
  void OnReadable(Connection& connection);
  void Count(const BenchResponse& response);
  void Wait(Clock::time_point until);
  void Reopen(Clock::time_point now);

  /// Counts requests without a response, or a failed connection.
  void AddErrors(std::size_t count, const std::string& why);

  const BenchOptions& options_;
  const HttpClient& client_;
  ZipfGenerator numbers_;  ///< Chooses identities.
  const std::size_t pipeline_;
  const double rate_;  ///< Requests per second; 0: as many as the server answers.
  const std::atomic<bool>& stop_;
  net::Descriptor epoll_;
  std::vector<std::unique_ptr<Connection>> connections_;
  BenchResult result_;
  std::atomic<std::uint64_t> answered_{0};
  std::size_t in_flight_ = 0;
  std::size_t next_ = 0;  ///< With a rate: the connection to use next.
  bool sending_ = true;
  Clock::time_point due_;
  std::string chunk_;
};

}  // namespace tidegate::cli
