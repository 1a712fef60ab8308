-- SPDX-License-Identifier: Apache-2.0
-- A small table that the nodes of a fleet share, and the records of who changed it.
--
-- KEYS[1]  hash: `v` is the version, `<milliseconds>.<unique text>`, and a later version has a larger number; any other
--          field has the value `<since> <expires> <value>`, times in milliseconds, with an `expires` of 0 for no end
-- KEYS[2]  list of the records of changes, `<time> <applied> <text>`, the latest first
-- KEYS[3]  list of the records of failed authentications, likewise
-- KEYS[4]  hash, the history of both lists: `changes` and `failures` count all records ever written, `since` is the time
--          of the first record that can be there, `lost` the time when a node last found that Redis had lost records
-- ARGV[1]  the operation:
--   poll          ARGV[2] the known version, [3] the most fields, [4] and [5] the highest `changes` and `failures` that
--                 the caller has seen. Returns the time, the version, `since`, `lost` or 0, `changes`, `failures`, and,
--                 if the version differs, each field and its value.
--   records       ARGV[2] and [3] like [4] and [5] of `poll`. Returns `since`, `lost` or 0, `changes`, `failures`, and
--                 both lists.
--   put           ARGV[2] field, [3] value, [4] milliseconds to live or 0, [5] a unique text, [6] the record, [7] the
--                 channel, [8] the most fields, [9] the most records, [10] the number of the known version. Returns 1,
--                 or -1 if the table is full, and `expires`.
--   remove        Like `put`, without value and time to live. Returns 1 or 0, and 0.
--   restore       ARGV[2] the known version, then fields and their whole values. Writes all of them under that version
--                 if the table has none or an earlier one; nodes that know it need not read. Returns 1, or 0: not needed.
--   note          ARGV[2] 1 or 0: applied, [3] the record, [4] the most records. Returns `changes`.
--   note_failure  Like `note`, for a failed authentication. Returns `failures`.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local op = ARGV[1]

local function whole(number)
  return string.format('%d', number)
end

local function number_of(version)
  return tonumber(string.match(version or '', '^(%d+)%.')) or 0
end

local function record(list, field, applied, text, most)
  local length = redis.call('LPUSH', list, whole(now) .. ' ' .. applied .. ' ' .. text)
  redis.call('LTRIM', list, '0', whole(most - 1))
  redis.call('PEXPIRE', list, '31536000000')
  -- Nodes of an older version of Tidegate write records without counting them.
  local count = math.max((tonumber(redis.call('HGET', KEYS[4], field)) or 0) + 1, length)
  redis.call('HSET', KEYS[4], field, whole(count))
  redis.call('PEXPIRE', KEYS[4], '315360000000')
  return count
end

-- Returns the history. A caller that has seen more records than Redis counts has seen some that Redis lost.
local function history(seen_changes, seen_failures)
  local held = redis.call('HMGET', KEYS[4], 'since', 'lost', 'changes', 'failures')
  local since, lost = tonumber(held[1]), tonumber(held[2]) or 0
  local changes, failures = tonumber(held[3]) or 0, tonumber(held[4]) or 0
  local write = false
  if not since then
    -- The fleet is new or of an older version, or all was lost; then the present records were written after that.
    since = now
    for i, list in ipairs({KEYS[2], KEYS[3]}) do
      local kept = redis.call('LRANGE', list, '0', '-1')
      since = math.min(since, tonumber(string.match(kept[#kept] or '', '^(%d+) ')) or now)
      if i == 1 then changes = math.max(changes, #kept) else failures = math.max(failures, #kept) end
    end
    if seen_changes + seen_failures > 0 then
      lost = now
      changes, failures = changes + seen_changes, failures + seen_failures
    end
    write = true
  elseif seen_changes > changes or seen_failures > failures then
    lost = now
    changes, failures = math.max(changes, seen_changes), math.max(failures, seen_failures)
    write = true
  end
  if write then
    -- A Redis that refuses to write must still answer a poll.
    redis.pcall('HSET', KEYS[4], 'since', whole(since), 'lost', whole(lost), 'changes', whole(changes), 'failures', whole(failures))
    redis.pcall('PEXPIRE', KEYS[4], '315360000000')
  end
  return whole(since), whole(lost), whole(changes), whole(failures)
end

-- Deletes fields that have expired or are malformed. Returns how many are left.
local function tidy()
  local all = redis.call('HGETALL', KEYS[1])
  local left = 0
  for i = 1, #all, 2 do
    if all[i] ~= 'v' then
      local ends = tonumber(string.match(all[i + 1], '^%d+ (%d+) '))
      if not ends or (ends > 0 and ends <= now) then
        redis.call('HDEL', KEYS[1], all[i])
      else
        left = left + 1
      end
    end
  end
  return left
end

for i, wanted in ipairs({'hash', 'list', 'list', 'hash'}) do
  local kind = redis.call('TYPE', KEYS[i]).ok
  if kind ~= wanted and kind ~= 'none' then redis.call('DEL', KEYS[i]) end
end

if op == 'poll' then
  local version = redis.call('HGET', KEYS[1], 'v') or ''
  local reply = {whole(now), version, history(tonumber(ARGV[4]), tonumber(ARGV[5]))}
  if version == ARGV[2] then return reply end
  -- Another client has written many fields: return none of them.
  if redis.call('HLEN', KEYS[1]) > 2 * tonumber(ARGV[3]) then
    return redis.error_reply('TIDEGATE there are too many fields in ' .. KEYS[1])
  end
  for _, word in ipairs(redis.call('HGETALL', KEYS[1])) do reply[#reply + 1] = word end
  return reply
end
if op == 'records' then
  local since, lost, changes, failures = history(tonumber(ARGV[2]), tonumber(ARGV[3]))
  return {since, lost, changes, failures, redis.call('LRANGE', KEYS[2], '0', '-1'), redis.call('LRANGE', KEYS[3], '0', '-1')}
end
if op == 'restore' then
  if number_of(redis.call('HGET', KEYS[1], 'v')) >= number_of(ARGV[2]) then return 0 end
  redis.call('DEL', KEYS[1])
  for i = 3, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
  redis.call('HSET', KEYS[1], 'v', ARGV[2])
  redis.call('PEXPIRE', KEYS[1], '315360000000')
  return 1
end
if op == 'note' then return record(KEYS[2], 'changes', ARGV[2], ARGV[3], tonumber(ARGV[4])) end
if op == 'note_failure' then return record(KEYS[3], 'failures', ARGV[2], ARGV[3], tonumber(ARGV[4])) end

local field, ttl = ARGV[2], tonumber(ARGV[4])
local left = tidy()
local ends = 0
local applied = 1
if op == 'put' then
  if left >= tonumber(ARGV[8]) and not redis.call('HGET', KEYS[1], field) then return {-1, '0'} end
  if ttl > 0 then ends = now + ttl end
  redis.call('HSET', KEYS[1], field, whole(now) .. ' ' .. whole(ends) .. ' ' .. ARGV[3])
else
  applied = redis.call('HDEL', KEYS[1], field)
end
-- The version must be later than the present one and than the one that the caller knows, whatever this clock says.
local before = math.max(number_of(redis.call('HGET', KEYS[1], 'v')), tonumber(ARGV[10]))
redis.call('HSET', KEYS[1], 'v', whole(math.max(now, before + 1)) .. '.' .. ARGV[5])
redis.call('PEXPIRE', KEYS[1], '315360000000')
record(KEYS[2], 'changes', applied, ARGV[6], tonumber(ARGV[9]))
-- Without the permission to publish, the other nodes see the change at their next poll.
redis.pcall('PUBLISH', ARGV[7], KEYS[1])
return {applied, whole(ends)}
