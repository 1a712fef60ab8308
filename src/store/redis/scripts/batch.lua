-- SPDX-License-Identifier: Apache-2.0
-- Applies a batch of entries, atomically and at one time. docs/adr/0013 is its contract.
--
-- KEYS     the distinct keys of the batch; a refund's id is a key too
-- ARGV[1]  msgpack, a flat array of integers: version, quotas with 9 numbers each, entries
-- ARGV[2]  the channel on which refunds and resets publish their key; empty: none
-- ARGV[3]  and on: the texts of leases
-- returns  msgpack, a flat array of integers: now, repaired, healed, failed writes; the three numbers of each hash before
--          the batch; for each entry how many were admitted, and six numbers for each of its charges on a list
--          or an error, and then nothing is written: what is wrong with the batch (`TIDEGATE ...`), or the error of
--          Redis for a read or for the first write
--
-- The algorithms are the twins of src/core, with the same names and the same order. All numbers are integers, and a double
-- holds integers up to 2^53 exactly. Sums, products, a % b and (a - a % b) / b are exact too while they stay within 2^53.
-- A product that may exceed 2^53 is only compared with a number that cannot: rounding is monotone, so the comparison is
-- exact.
--
-- The code for each key and for each batch is written to be fast: the usual entries have their own loop, which calls only
-- Redis and the step, a function without upvalues. (Making a closure takes time for each local that it uses: 30 of them
-- cost as much as three keys.) Everything else is made only when an entry needs it.

local ask, tonumber, format, match = redis.pcall, tonumber, string.format, string.match
local KEYS, ARGV = KEYS, ARGV

local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

local largest = 9007199254740992  -- 2^53

local function refuse(what)
  return redis.error_reply('TIDEGATE ' .. what)
end

local function is_whole(n, least, most)
  return type(n) == 'number' and n >= least and n <= most and n % 1 == 0
end

-- Formats milliseconds for Redis.
local function lasting(ms)
  return string.format('%d', ms)
end

local unpacked, batch, more = pcall(cmsgpack.unpack, ARGV[1])
if not unpacked or type(batch) ~= 'table' or more ~= nil then
  return refuse('the batch is not one msgpack array')
end
if batch[1] ~= 2 then
  return refuse('the batch has an unknown version')
end

local quotas = batch[2]
if not is_whole(quotas, 0, #batch / 9) then
  return refuse('the number of quotas is wrong')
end
local has_leases = false
for q = 1, quotas do
  local b = 9 * q - 6
  if not is_whole(batch[b], 0, 5) then
    return refuse('quota ' .. format('%d', q) .. ' has an unknown algorithm')
  end
  for i = b + 1, b + 7 do
    if not is_whole(batch[i], 1, 9007199254740992) then
      return refuse('quota ' .. format('%d', q) .. ' has a number that is not within 1 and 2^53')
    end
  end
  if batch[b + 8] ~= 0 and batch[b + 8] ~= 1 then
    return refuse('quota ' .. format('%d', q) .. ' has an unknown origin')
  end
  -- The bounds of Quota::Make: 2^51 for a full burst, 2^52 for a debt.
  if batch[b + 3] * batch[b + 6] > 2251799813685248 or batch[b + 5] > 2251799813685248 or
     batch[b + 7] * batch[b + 6] > 4503599627370496 then
    return refuse('quota ' .. format('%d', q) .. ' cannot be counted exactly')
  end
  if batch[b] == 5 then
    has_leases = true
  end
end

local entries = batch[9 * quotas + 3]
if not is_whole(entries, 0, #batch) then
  return refuse('the number of entries is wrong')
end

-- The quota in use, and the step of its algorithm; lists have none here.
local quota, step, algorithm, limit, period, capacity, recovery, x, y, saturation, origin

-- By the number of a key in KEYS:
local kind = {}        -- its algorithm, 6 for the id of a refund; nil until it is read
local deleted = {}     -- DEL before it is written: true if it was healed, 2 if it was reset
local dirty = {}       -- it has to be written
local recovered = {}   -- when it will have recovered, if its TTL may end before that,
local recoveries = {}  -- and how long a whole recovery takes, under the last quota that stepped it
-- ... and of hashes: {first, second, expires, third}, the state's numbers as its step names them. expires is when
-- the TTL ends, -1: there is no such key. It is the table that HMGET answers with, which has room for four.
local states = {}

local repairs, healed, failed_writes = 0, 0, 0
local written = false  -- Whether the script has written anything.
local publish          -- The keys that are refunded or reset; nil if there are none.

-- The reply: the states from 3 * key + 2, as if all keys were hashes, then the results of entries, up to `filled`. The
-- table is made in its final size, with the values of `batch`; Lua's stack has room for 7,000 values.
local before_entries = 4 + 3 * #KEYS
local filled = before_entries
local reply = before_entries + entries <= 7000 and {unpack(batch, 1, before_entries + entries)} or {}
reply[1] = now

-- Returns the TTL of a key in milliseconds: twice the time to full recovery, and a second.
local function time_to_live(whole_recovery, left)
  local us = 2 * (left > whole_recovery and left or whole_recovery)
  return (us + -us % 1000) / 1000 + 1000
end
