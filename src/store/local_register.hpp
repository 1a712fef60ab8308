// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>

#include "store/fleet_register.hpp"
#include "tidegate/clock.hpp"

namespace tidegate {

/// The register of a node that is its own fleet: it ends with the process, as the memory store
/// does.
class LocalRegister final : public FleetRegister {
 public:
  /// `on_change` is called for every difference, before the change that made it is answered.
  /// Entries that have expired are reported as removed with the next change. REQUIRES: `clock`
  /// outlives this.
  LocalRegister(const Clock& clock, OnChange on_change, std::size_t most = kMost)
      : clock_(clock), on_change_(std::move(on_change)), most_(most), since_ms_(NowMs()) {}

  void Put(const std::string& field, const std::string& value,
           std::optional<std::chrono::milliseconds> ttl, const std::string& record,
           Done<Change> done) override;
  void Remove(const std::string& field, const std::string& record, Done<Change> done) override;
  void Note(const std::string& record, bool applied, Done<Change> done) override;
  void NoteFailure(const std::string& record, Done<Change> done) override;
  void Records(std::size_t most, Done<Audit> done) override;
  [[nodiscard]] bool local() const noexcept override { return true; }
  [[nodiscard]] std::optional<std::chrono::milliseconds> age() const override {
    return std::chrono::milliseconds{0};
  }

 private:
  [[nodiscard]] std::int64_t NowMs() const;
  /// Removes expired entries and returns a delta that names them.
  [[nodiscard]] Delta RemoveExpired(std::int64_t now);
  void Report(const Delta& delta) const;
  void WriteDown(const std::string& record, bool applied);

  const Clock& clock_;
  const OnChange on_change_;
  const std::size_t most_;
  const std::int64_t since_ms_;
  std::map<std::string, Entry> entries_;
  std::deque<Record> records_;
  std::deque<Record> failures_;
  std::uint64_t dropped_records_ = 0;
  std::uint64_t dropped_failures_ = 0;
};

}  // namespace tidegate
