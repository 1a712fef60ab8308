// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "store/fingerprint.hpp"
#include "store/redis/key_names.hpp"
#include "store/redis/key_state.hpp"
#include "store/redis/place_index.hpp"
#include "store/redis/slot.hpp"
#include "tidegate/call.hpp"

namespace tidegate::redis {

/// Calls that go to Redis together, as one run of the script. No I/O; docs/adr/0013 describes what
/// is sent and what comes back.
///
/// Calls that ask the same become one entry with a count; keys are named once. All keys are of one
/// slot where there are slots. Used again and again: nothing is allocated once it has grown.
class Batch {
 public:
  /// A larger one would keep Redis from everybody else for more than half a millisecond.
  static constexpr std::size_t kMostEntries = 128;
  static constexpr std::size_t kMostKeys = 512;

  Batch(const KeyNames& names, const Fingerprinter& fingerprinter);
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  /// REQUIRES: cleared. `single`: takes one entry only, and those who ask the same.
  void Begin(Slot slot, bool single) noexcept {
    slot_ = slot;
    single_ = single;
  }
  [[nodiscard]] Slot slot() const noexcept { return slot_; }
  [[nodiscard]] bool single() const noexcept { return single_; }
  /// Its first entry is what `call` asks.
  [[nodiscard]] bool Asks(const Call& call) const noexcept {
    return used_ > 0 && entries_.front().kind == Call::Kind::kApply &&
           call.kind == Call::Kind::kApply && entries_.front().request == call.record.request;
  }
  /// How often it was sent on to another node.
  int hops = 0;
  /// How often it has waited for its slot to be served.
  int delays = 0;
  /// It goes to a node that its slot is only on its way to.
  bool asking = false;

  [[nodiscard]] bool empty() const noexcept { return waiting_ == 0; }
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_; }  ///< Calls.
  [[nodiscard]] std::size_t entries() const noexcept { return used_; }
  [[nodiscard]] std::size_t keys() const noexcept { return keys_.size(); }
  /// How often it was sent; once it was, it takes nobody any more.
  [[nodiscard]] int attempts() const noexcept { return attempts_; }
  /// Nothing that asks something new fits any more.
  [[nodiscard]] bool full() const noexcept {
    return used_ >= kMostEntries || keys_.size() + kMaxCharges > kMostKeys;
  }

  /// False: it is full, and nobody in it asks the same. REQUIRES: a checked call whose
  /// `record.request` is set.
  [[nodiscard]] bool Add(Call& call);
  /// Takes a call out that waits no longer; what was sent of it stays sent.
  void Remove(Call& call) noexcept;
  void Clear() noexcept;

  /// The command. `script`: its SHA-1, or its text. Only who still waits is charged; nobody may be
  /// added afterwards.
  enum class Form : std::uint8_t { kSha, kText };
  void Write(std::string& out, Form form, std::string_view script, std::string_view channel);

  struct Summary {
    enum class Verdict : std::uint8_t { kGood, kBadTypes, kBadResponse };
    Verdict verdict = Verdict::kGood;
    std::int64_t repaired = 0;
    std::int64_t healed = 0;
    std::int64_t failed_writes = 0;
  };
  using Answered = std::function<void(Call&)>;
  /// Reads the script's reply, fills the calls and hands each that is complete to `answered`, which
  /// may finish it. Where the reply makes no sense, those that are not answered stay.
  /// `given_back` hears of each key that a refund or a reset of this batch gave something back to,
  /// in the order of the entries: Redis told of it before the reply, and so before the denials that
  /// came before it.
  using GivenBack = std::function<void(std::string_view key)>;
  [[nodiscard]] Summary Read(
      std::string_view packed, const Answered& answered,
      const GivenBack& given_back = [](std::string_view) {});

  /// Hands over all that still wait and takes them out.
  void TakeAll(const std::function<void(Call&)>& take);

 private:
  struct Key {
    Fingerprint fingerprint;
    Algorithm algorithm;
    std::uint32_t text;  ///< Where it begins in texts_.
    std::uint32_t size;
  };
  struct Item {  ///< A charge.
    std::uint32_t key;
    std::uint32_t quota;
    std::int64_t cost;
    Mode mode;
    std::uint32_t lease;  ///< Place in leases_, from 1; 0: none.
  };
  struct Entry {
    std::array<std::uint64_t, 2> request;
    Call::Kind kind;
    std::uint32_t items;  ///< Where they begin in items_.
    std::uint32_t item_count;
    std::uint32_t of_call;      ///< Which of the call's charges the only item is; not of kApply.
    std::uint32_t refund_key;   ///< kRefund only, as the next two; kNone: it has no id.
    std::int64_t charged_kind;  ///< 0 now, 1 so long ago, 2 at a time.
    std::int64_t charged_value;
    std::vector<Call*> waiters;  ///< nullptr: has left.
    std::size_t alive;
  };
  /// What the script says of a list's charge.
  struct ListOutcome {
    std::int64_t admitted;
    Outcome look;
    bool renewed;  ///< A lease that was held before.
  };
  class Replay;

  static constexpr std::uint32_t kNone = PlaceIndex::kNone;

  [[nodiscard]] bool HasRoomFor(const Call& call) const noexcept;
  Entry& AddEntry(const Call& call, Call::Kind kind);
  void Join(Entry& entry, std::uint32_t number, Call& call);
  void AddItem(Entry& entry, const Charge& charge);
  [[nodiscard]] std::uint32_t KeyOf(const Charge& charge);
  [[nodiscard]] std::uint32_t QuotaOf(const Quota& quota);
  void DropThoseWhoLeft();
  /// The script reads, and answers for, no key that nobody charges.
  void DropUnusedKeys();
  void Pack();
  void PackQuota(const Quota& quota);
  void PackEntry(const Entry& entry);

  const KeyNames& names_;
  const Fingerprinter& fingerprinter_;
  std::string texts_;  ///< Of keys, one after the other.
  std::vector<Key> keys_;
  std::vector<Quota> quotas_;  ///< Copies: who asked may leave, and take his rules with him.
  std::vector<std::string> leases_;
  std::size_t lease_count_ = 0;
  std::vector<Item> items_;
  std::vector<Entry> entries_;  ///< The first used_ of them.
  std::size_t used_ = 0;
  std::size_t waiting_ = 0;
  int attempts_ = 0;
  Slot slot_ = 0;
  bool single_ = false;
  PlaceIndex key_places_{1024};   ///< By fingerprint.
  PlaceIndex entry_places_{512};  ///< By request.
  std::vector<std::int64_t> numbers_;
  std::string packed_;
};

}  // namespace tidegate::redis
