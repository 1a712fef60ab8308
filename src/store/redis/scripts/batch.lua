-- SPDX-License-Identifier: Apache-2.0
-- Applies a batch of entries, atomically and at one time. docs/adr/0013 is its contract.
--
-- KEYS     the distinct keys of the batch; a refund's id is a key too
-- ARGV[1]  msgpack, a flat array of integers: version, quotas with 9 numbers each, entries
-- ARGV[2]  the channel on which refunds and resets publish their key; empty: none
-- ARGV[3]  and on: the texts of leases
-- returns  msgpack, a flat array of integers: now, repaired, healed, failed writes; the three numbers of each hash before
--          the batch; for each entry how many were admitted, and six numbers for each of its charges on a list
-- or an error: what is wrong with the batch (`TIDEGATE ...`), or what Redis said to a read or to
-- the first write. Nothing is written then.
--
-- The algorithms are the twins of src/core: same names, same order of thoughts. All numbers are
-- integers, and a double holds those up to 2^53 exactly; so are their sums, their products, a % b and
-- (a - a % b) / b, as long as the result stays within 2^53. A product that may go beyond is only ever
-- compared with something that does not: rounding is monotone, so the comparison stays exact.
--
-- What runs for each key, or once for each batch, is written to be quick: the usual entries have a loop of their own that
-- calls nothing but Redis and the step, which is a function without upvalues. (A closure pays for each local that
-- it sees when it is made: 30 of them cost as much as three keys.) The rest is made only when an entry needs it.

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

-- Milliseconds, as Redis takes them.
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

-- By the number of its key, of every key:
local kind = {}        -- its algorithm, 6 for the id of a refund; nil until it is read
local deleted = {}     -- DEL before it is written: true where it was healed, 2 where it was reset
local dirty = {}       -- it has to be written
local recovered = {}   -- when it will have recovered, where its TTL may end before that,
local recoveries = {}  -- and how long a whole recovery takes, under the last quota that stepped it
-- ... and of hashes: {first, second, expires, third}, the state's numbers as its step names them. expires is when
-- the TTL ends, -1: there is no such key. It is the table that HMGET answers with, which has room for four.
local states = {}

local repairs, healed, failed_writes = 0, 0, 0
local written = false  -- Anything at all.
local publish          -- Keys that are refunded or reset, if there are any.

-- The reply: the states at 3 * key + 2 and on, as if all keys were hashes; then the results of entries, up to `filled`.
-- Made as large as it will be, with whatever is at hand; 7,000 values are as many as Lua's stack takes with ease.
local before_entries = 4 + 3 * #KEYS
local filled = before_entries
local reply = before_entries + entries <= 7000 and {unpack(batch, 1, before_entries + entries)} or {}
reply[1] = now

-- For how long a key is kept: twice the time to full recovery and a second, in milliseconds.
local function time_to_live(whole_recovery, left)
  local us = 2 * (left > whole_recovery and left or whole_recovery)
  return (us + -us % 1000) / 1000 + 1000
end
