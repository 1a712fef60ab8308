-- SPDX-License-Identifier: Apache-2.0
-- A small table that the nodes of a fleet share, and a record of who changed it.
--
-- KEYS[1]  hash: `v` names the version, `<milliseconds>.<what nobody else has>`, and a later one has the larger number; every other field is `<since> <expires> <value>`, both in
--          milliseconds, an end of 0 is none
-- KEYS[2]  list of records, the latest first: `<time> <applied> <text>`
-- ARGV[1]  `poll`: ARGV[2] the version that is known, [3] the most fields. Returns the time, the version, and where that is another one
--                  all fields with their values, one after the other.
--          `put`: ARGV[2] field, [3] value, [4] milliseconds to live or 0, [5] what nobody else has, [6] the record, [7] the channel, [8] the
--                 most fields, [9] the most records, [10] the number of the version that is known. Returns 1 or -1 (full), and the end.
--          `remove`: as `put`, without value and end. Returns 1 or 0.
--          `restore`: ARGV[2] the version that is known, then fields and their whole values. Where there is none, or an earlier one, all of
--                     it is put back under that version, so that whoever knows it has nothing to read. Returns 1, or 0: it is not needed.
--          `note`: ARGV[2] 1 or 0: applied, [3] the record, [4] the most records.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local op = ARGV[1]

local function whole(number)
  return string.format('%d', number)
end

local function number_of(version)
  return tonumber(string.match(version or '', '^(%d+)%.')) or 0
end

local function record(applied, text, most)
  redis.call('LPUSH', KEYS[2], whole(now) .. ' ' .. applied .. ' ' .. text)
  redis.call('LTRIM', KEYS[2], '0', whole(most - 1))
  redis.call('PEXPIRE', KEYS[2], '31536000000')
end

-- What has ended, and what is nothing of ours, goes; how many are left?
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

local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'hash' and kind ~= 'none' then redis.call('DEL', KEYS[1]) end
kind = redis.call('TYPE', KEYS[2]).ok
if kind ~= 'list' and kind ~= 'none' then redis.call('DEL', KEYS[2]) end

if op == 'poll' then
  local version = redis.call('HGET', KEYS[1], 'v') or ''
  if version == ARGV[2] then return {whole(now), version} end
  -- Somebody else wrote into it: rather none than all of that.
  if redis.call('HLEN', KEYS[1]) > 2 * tonumber(ARGV[3]) then
    return redis.error_reply('TIDEGATE there are too many fields in ' .. KEYS[1])
  end
  local reply = redis.call('HGETALL', KEYS[1])
  table.insert(reply, 1, version)
  table.insert(reply, 1, whole(now))
  return reply
end
if op == 'restore' then
  if number_of(redis.call('HGET', KEYS[1], 'v')) >= number_of(ARGV[2]) then return 0 end
  redis.call('DEL', KEYS[1])
  for i = 3, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
  redis.call('HSET', KEYS[1], 'v', ARGV[2])
  redis.call('PEXPIRE', KEYS[1], '315360000000')
  return 1
end
if op == 'note' then
  record(ARGV[2], ARGV[3], tonumber(ARGV[4]))
  return 1
end

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
-- Later than what there is and than what its maker knows, whatever this clock says.
local before = math.max(number_of(redis.call('HGET', KEYS[1], 'v')), tonumber(ARGV[10]))
redis.call('HSET', KEYS[1], 'v', whole(math.max(now, before + 1)) .. '.' .. ARGV[5])
redis.call('PEXPIRE', KEYS[1], '315360000000')
record(applied, ARGV[6], tonumber(ARGV[9]))
-- Who may not publish is found out by those who ask.
redis.pcall('PUBLISH', ARGV[7], KEYS[1])
return {applied, whole(ends)}
