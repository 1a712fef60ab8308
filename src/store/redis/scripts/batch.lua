-- SPDX-License-Identifier: Apache-2.0
-- Applies a batch of entries, atomically and at one time. docs/adr/0013 is its contract.
--
-- KEYS     the distinct keys of the batch; a refund's id is a key too
-- ARGV[1]  msgpack, a flat array of integers:
--            1                                  version
--            number of quotas, for each         algorithm, limit, period, capacity, recovery, x, y, saturation
--            number of entries, for each        op, count, number of charges, for each charge
--                                                   key, quota, cost, mode [, lease]
--                                               and for op 4: id key, charged kind, charged value
-- ARGV[2]  the channel on which refunds and resets publish their key; empty: none
-- ARGV[3]  and on: the texts of leases
-- returns  msgpack, a flat array of integers:
--            now, repaired, healed, failed writes
--            for each key of a hash algorithm, in the order of KEYS: its three numbers before the batch
--            for each entry: admitted; for each of its charges of a list algorithm:
--                admitted, remaining, retry_after, more_after, reset_after, never
-- or an error: what is wrong with the batch (`TIDEGATE ...`), or what Redis said to a read or to
-- the first write. Nothing is written then.
--
-- The algorithms are the twins of src/core: same names, same order of thoughts. All numbers are
-- integers, and a double holds those up to 2^53 exactly; so are their sums, their products, a % b and
-- (a - a % b) / b, as long as the result stays within 2^53. A product that may go beyond is only ever
-- compared with something that does not: rounding is monotone, so the comparison stays exact.
--
-- A batch of 128 keys takes about half a millisecond, so what runs for each key is written to be quick:
-- arrays indexed by the key's number in place of tables, no closure, no call that is not needed.

local call, ask = redis.call, redis.pcall
local tonumber, type, format, match = tonumber, type, string.format, string.match
local KEYS, ARGV = KEYS, ARGV

local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

local largest = 9007199254740992  -- 2^53

-- op of an entry, and of a step
local admits, apply, look, debit, refund, reset, renew, release = 0, 1, 2, 3, 4, 5, 6, 7
-- kinds of keys: the algorithm, or
local refund_id = 6
local sliding_log_kind, concurrency_kind = 1, 5

local function refuse(what)
  return redis.error_reply('TIDEGATE ' .. what)
end

local unpacked, batch, more = pcall(cmsgpack.unpack, ARGV[1])
if not unpacked or type(batch) ~= 'table' or more ~= nil then
  return refuse('the batch is not one msgpack array')
end
if batch[1] ~= 1 then
  return refuse('the batch has an unknown version')
end

local function is_whole(n, least, most)
  return type(n) == 'number' and n >= least and n <= most and n % 1 == 0
end

-- The quota in use: batch[8 * q - 5] and on.
local quotas = batch[2]
local quota, algorithm, limit, period, capacity, recovery, x, y, saturation

if not is_whole(quotas, 0, #batch / 8) then
  return refuse('the number of quotas is wrong')
end
local has_leases = false
for q = 1, quotas do
  local b = 8 * q - 5
  if not is_whole(batch[b], 0, 5) then
    return refuse('quota ' .. format('%d', q) .. ' has an unknown algorithm')
  end
  for i = 1, 7 do
    if not is_whole(batch[b + i], 1, largest) then
      return refuse('quota ' .. format('%d', q) .. ' has a number that is not within 1 and 2^53')
    end
  end
  -- The bounds of Quota::Make: 2^51 for a full burst, 2^52 for a debt.
  if batch[b + 3] * batch[b + 6] > 2251799813685248 or batch[b + 5] > 2251799813685248 or
     batch[b + 7] * batch[b + 6] > 4503599627370496 then
    return refuse('quota ' .. format('%d', q) .. ' cannot be counted exactly')
  end
  if batch[b] == concurrency_kind then
    has_leases = true
  end
end

-- By the number of its key, of every key:
local kind = {}       -- nil until it is read
local present = {}    -- it exists in Redis, and was not reset since; of a hash: see expires
local deleted = {}    -- DEL before it is written: it was healed or reset
local dirty = {}      -- it has to be written
local recovered = {}  -- when it will have recovered, where its TTL may end before that ...
local last_quota = {} -- ... under this quota, the last that stepped it
-- ... and of hashes: {first, second, expires, third}, the state's numbers as its algorithm names them. expires is when
-- the TTL ends, -1: there is no such key. It is the table that HMGET answers with, which has room for four:
-- tables and arrays that grow are most of what Lua spends on a key.
local states = {}

local repairs, healed, failed_writes = 0, 0, 0
local written = false  -- Anything at all.
local failure          -- What Redis said, with nothing written yet: to be returned.

local entries = batch[8 * quotas + 3]
if not is_whole(entries, 0, #batch) then
  return refuse('the number of entries is wrong')
end

-- The reply: the states at 3 * key + 2 and on, as if all keys were hashes; then what entries are told, up to `told`.
-- Made as large as it will be, with whatever is at hand; 7,000 values are as many as Lua's stack takes with ease.
local before_entries = 4 + 3 * #KEYS
local told = before_entries
local reply = before_entries + entries <= 7000 and {unpack(batch, 1, before_entries + entries)} or {}
reply[1] = now

local function failed(answer)
  if written then
    failed_writes = failed_writes + 1
  else
    failure = answer
  end
end

local function write(...)
  if failure then
    return nil
  end
  local answer = ask(...)
  if type(answer) == 'table' and answer.err then
    failed(answer)
    return nil
  end
  written = true
  return answer
end

-- A read while entries are stepped. Its failure ends the batch if nothing is written yet.
local function read(...)
  local answer = ask(...)
  if type(answer) == 'table' and answer.err then
    failed(answer)
    return nil
  end
  return answer
end

local function lasting(ms)
  return format('%d', ms)
end

-- For how long a key, or what is remembered of it, is kept: twice the time to full recovery and a second.
local function time_to_live(k)
  local most = batch[8 * last_quota[k] - 1]
  if recovered[k] - now > most then
    most = recovered[k] - now
  end
  local us = 2 * most
  return (us + -us % 1000) / 1000 + 1000
end
