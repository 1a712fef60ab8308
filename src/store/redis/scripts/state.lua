-- SPDX-License-Identifier: Apache-2.0
-- Hashes: read, healed, written, and kept for long enough.

-- An integer that a double holds, not below `least`; or nil.
local function whole(text, least)
  local n = tonumber(text)
  if n and n % 1 == 0 and n >= least and n <= largest then
    return n
  end
  return nil
end

-- When a TTL ends; 0, so that it is renewed, where that is not a time.
local function end_of_life(text)
  local ends = tonumber(text)
  return ends and ends >= 0 and ends <= largest and ends or 0
end

-- `time` or `time:rest`
local function time_and_rest(text)
  local time, rest = whole(text, -largest), 0
  if not time and text then
    time, rest = match(text, '^(-?%d+):(%d+)$')
    time, rest = whole(time, -largest), whole(rest, 0)
  end
  return time, rest
end

local function start_fresh(k)
  if algorithm == 0 then
    states[k] = {capacity, now, -1, 0}
  elseif algorithm == 4 then
    states[k] = {now, 0, -1, 0}
  else
    states[k] = {now - now % period, 0, -1, 0}
  end
end

-- A hash that is not plain numbers: absent, with a rest, corrupted, or no hash at all. Answers with
-- what Redis said where it would not let us read.
local function read_with_care(k, answer)
  if answer.err then
    if not match(answer.err, 'WRONGTYPE') then
      return answer
    end
  else
    local missing = true
    for i = 1, #answer do
      missing = missing and not answer[i]
    end
    if missing then
      start_fresh(k)
      return nil
    end
    local a, b, c
    if algorithm == 0 then
      a = whole(answer[1], -largest)
      b, c = time_and_rest(answer[2])
    elseif algorithm == 4 then
      a, c = time_and_rest(answer[1])
      b = whole(answer[2] or 0, 0)
    else
      a, b = whole(answer[1], -largest), whole(answer[2], 0)
      c = algorithm == 3 and 0 or whole(answer[4], 0)
    end
    if a and b and c then
      states[k] = {a, b, end_of_life(answer[3]), c}
      return nil
    end
  end
  healed = healed + 1
  start_fresh(k)
  present[k], deleted[k] = true, true
  return nil
end

-- Reads a hash under the quota in use, which says what a fresh one looks like. The usual state is plain numbers;
-- what is not, nil and NaN included, fails a comparison and is read with care.
local function read_hash(k)
  kind[k] = algorithm
  local state, strange
  if algorithm == 0 then
    state = ask('HMGET', KEYS[k], 'tokens', 'last_refill', 'expires')
    local tokens, last_refill, ends = tonumber(state[1]), tonumber(state[2]), tonumber(state[3])
    if tokens and last_refill and ends and ends >= 0 and ends <= largest and tokens % 1 == 0 and
       last_refill % 1 == 0 and tokens <= largest and tokens >= -largest and last_refill <= largest and
       last_refill >= -largest then
      state[1], state[2], state[3], state[4], states[k] = tokens, last_refill, ends, 0, state
    else
      strange = read_with_care(k, state)
    end
  elseif algorithm == 4 then
    state = ask('HMGET', KEYS[k], 'tat', 'owed', 'expires')
    local tat, ends = tonumber(state[1]), tonumber(state[3])
    if tat and ends and not state[2] and ends >= 0 and ends <= largest and tat % 1 == 0 and tat <= largest and
       tat >= -largest then
      state[1], state[2], state[3], state[4], states[k] = tat, 0, ends, 0, state
    else
      strange = read_with_care(k, state)
    end
  else
    if algorithm == 3 then
      state = ask('HMGET', KEYS[k], 'start', 'count', 'expires')
    else
      state = ask('HMGET', KEYS[k], 'start', 'current', 'expires', 'previous')
    end
    local start, units, ends, before = tonumber(state[1]), tonumber(state[2]), tonumber(state[3]), 0
    if algorithm == 2 then
      before = tonumber(state[4])
    end
    if start and units and ends and before and ends >= 0 and ends <= largest and start % 1 == 0 and
       units % 1 == 0 and before % 1 == 0 and start <= largest and start >= -largest and units >= 0 and
       units <= largest and before >= 0 and before <= largest then
      state[1], state[2], state[3], state[4], states[k] = start, units, ends, before, state
    else
      strange = read_with_care(k, state)
    end
  end
  if strange then
    return strange
  end
  state = states[k]
  local at = 3 * k + 2
  if algorithm == 4 then
    reply[at], reply[at + 1], reply[at + 2] = state[1], state[4], state[2]
  else
    reply[at], reply[at + 1], reply[at + 2] = state[1], state[2], state[4]
  end
  return nil
end

-- After a step: whether the TTL lasts until the key has recovered.
local function note_recovery(k, ends)
  if ends > states[k][3] then
    recovered[k], last_quota[k] = ends, quota
  else
    recovered[k] = nil
  end
end

-- Writes what has changed of a hash, and its TTL where that would end before the key has recovered.
local function write_hash(k)
  local key, algorithm = KEYS[k], kind[k]
  if deleted[k] then
    write('DEL', key)
  end
  local ms, ends
  if recovered[k] and (dirty[k] or states[k][3] >= 0) then
    ms = time_to_live(k)
    ends = now + ms * 1000
    ends = format('%d', ends < largest and ends or largest)  -- Debts of centuries.
  end
  if not dirty[k] then
    if ms then
      write('PEXPIRE', key, lasting(ms))
      write('HSET', key, 'expires', ends)
    end
    return
  end
  local a, b, c = states[k][1], states[k][2], states[k][4]
  local answer
  if algorithm == 0 then
    local tokens = format('%d', a)
    local last_refill = c == 0 and format('%d', b) or format('%d:%d', b, c)
    if ms then
      answer = ask('HSET', key, 'tokens', tokens, 'last_refill', last_refill, 'expires', ends)
    else
      answer = ask('HSET', key, 'tokens', tokens, 'last_refill', last_refill)
    end
  elseif algorithm == 4 then
    local tat = c == 0 and format('%d', a) or format('%d:%d', a, c)
    local owed_before = not deleted[k] and reply[3 * k + 4] ~= 0
    if ms then
      -- Nobody reads an owed of 0 as a debt; most keys never have the field.
      if b ~= 0 or owed_before then
        answer = ask('HSET', key, 'tat', tat, 'owed', format('%d', b), 'expires', ends)
      else
        answer = ask('HSET', key, 'tat', tat, 'expires', ends)
      end
    elseif b ~= 0 or owed_before then
      answer = ask('HSET', key, 'tat', tat, 'owed', format('%d', b))
    else
      answer = ask('HSET', key, 'tat', tat)
    end
  elseif algorithm == 3 then
    if ms then
      answer = ask('HSET', key, 'start', format('%d', a), 'count', format('%d', b), 'expires', ends)
    elseif reply[3 * k + 2] == a then
      answer = ask('HSET', key, 'count', format('%d', b))
    else
      answer = ask('HSET', key, 'start', format('%d', a), 'count', format('%d', b))
    end
  else
    if ms then
      answer = ask('HSET', key, 'start', format('%d', a), 'current', format('%d', b), 'previous',
                   format('%d', c), 'expires', ends)
    elseif reply[3 * k + 2] == a and reply[3 * k + 4] == c then
      answer = ask('HSET', key, 'current', format('%d', b))
    else
      answer = ask('HSET', key, 'start', format('%d', a), 'current', format('%d', b), 'previous',
                   format('%d', c))
    end
  end
  if answer ~= 0 and type(answer) == 'table' then
    failed(answer)
    return
  end
  written = true
  if ms then
    write('PEXPIRE', key, lasting(ms))
  end
end
