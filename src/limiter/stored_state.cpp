// SPDX-License-Identifier: Apache-2.0
#include "limiter/stored_state.hpp"

#include <string>
#include <utility>

#include "store/redis/greeting.hpp"
#include "store/redis/key_names.hpp"

namespace tidegate {
namespace {

using redis::Reply;

constexpr std::size_t kMostItems = 100;

bool IsList(const Quota& quota) noexcept {
  return quota.algorithm() == Algorithm::kSlidingLog ||
         quota.algorithm() == Algorithm::kConcurrency;
}

/// Reads a hash's fields and values in turn, or a sorted set's members and scores, in turn or in
/// pairs.
void ReadFields(const Reply& reply, bool list, StoredState& to) {
  const auto add = [&](std::string_view name, std::string_view value) {
    to.fields.push_back({std::string(name), std::string(value)});
  };
  for (std::size_t i = 0; i < reply.elements.size(); ++i) {
    const Reply& element = reply.elements[i];
    if (list && element.elements.size() == 2) {
      add(element.elements[0].text, element.elements[1].text);
    } else if (i + 1 < reply.elements.size()) {
      add(element.text, reply.elements[i + 1].text);
      ++i;
    }
  }
}

}  // namespace

Result<StoredState> ReadStored(Store& store, const Charge& charge) {
  auto inspection = store.Inspect(charge);
  if (!inspection) return std::unexpected(std::move(inspection.error()));
  if (IsList(*charge.quota) && inspection->state.size() > kMostItems) {
    inspection->state.resize(kMostItems);
  }
  return StoredState{inspection->tracked, std::move(inspection->state)};
}

void ReadStored(redis::Client& client, const Charge& charge,
                std::function<void(Result<StoredState>)> done) {
  const bool list = IsList(*charge.quota);
  std::string key;
  client.names().AppendKey(key, charge);
  std::string command;
  if (list) {
    const std::string last = std::to_string(kMostItems - 1);  // ZRANGE includes the last index.
    redis::AppendCommand(command, {"ZRANGE", key, "0", last, "WITHSCORES"});
  } else {
    redis::AppendCommand(command, {"HGETALL", key});
  }
  client.Run(redis::KeyNames::SlotOf(charge), command,
             [list, done = std::move(done)](const Reply* reply) {
               if (reply == nullptr || reply->is(Reply::Type::kError)) {
                 std::string why = "cannot read the stored state from Redis";
                 if (reply != nullptr) why += ": `" + std::string(reply->text.substr(0, 200)) + "`";
                 return done(std::unexpected(Error{ErrorCode::kNetwork, std::move(why)}));
               }
               StoredState state;
               ReadFields(*reply, list, state);
               state.tracked = !state.fields.empty();
               done(std::move(state));
             });
}

}  // namespace tidegate
