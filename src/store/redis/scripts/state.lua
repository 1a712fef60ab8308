-- SPDX-License-Identifier: Apache-2.0
-- Functions for the entries that the fast path does not take: they read any hash, heal it if it is malformed, and handle
-- reads and writes that fail.

local admits, apply, look, debit, refund, reset, renew, release = 0, 1, 2, 3, 4, 5, 6, 7
local present = {}  -- By key of a list or a healed hash: it existed in Redis and was not reset since.
local failure       -- An error from Redis before anything was written, which the script returns.

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

-- Reads while entries are stepped. An error ends the batch if nothing is written yet.
local function read(...)
  local answer = ask(...)
  if type(answer) == 'table' and answer.err then
    failed(answer)
    return nil
  end
  return answer
end

-- Returns the integer in `text` if it is at least `least` and a double holds it exactly, else nil.
local function whole(text, least)
  local n = tonumber(text)
  if n and n % 1 == 0 and n >= least and n <= largest then
    return n
  end
  return nil
end

-- Reads `time` or `time:rest`.
local function time_and_rest(text)
  local time, rest = whole(text, -largest), 0
  if not time and text then
    time, rest = match(text, '^(-?%d+):(%d+)$')
    time, rest = whole(time, -largest), whole(rest, 0)
  end
  return time, rest
end

local function start_fresh(k)
  local fresh = algorithm == 0 and capacity or algorithm == 4 and now or now - now % period
  states[k] = {fresh, algorithm == 0 and now or 0, -1, 0}
end

local fields = {
  [0] = {'tokens', 'last_refill', 'expires'},
  [2] = {'start', 'current', 'expires', 'previous'},
  [3] = {'start', 'count', 'expires'},
  [4] = {'tat', 'owed', 'expires'},
}

-- Reads a hash under the quota in use, which determines a fresh state. Returns the error if Redis refuses to read.
local function read_hash(k)
  local answer = ask('HMGET', KEYS[k], unpack(fields[algorithm]))
  local a, b, c
  if answer.err then
    if not match(answer.err, 'WRONGTYPE') then
      return answer
    end
  elseif algorithm == 0 then
    a = whole(answer[1], -largest)
    b, c = time_and_rest(answer[2])
  elseif algorithm == 4 then
    a, b = time_and_rest(answer[1])
    c = whole(answer[2] or 0, 0)
  else
    a, b = whole(answer[1], -largest), whole(answer[2], 0)
    c = algorithm == 3 and 0 or whole(answer[4], 0)
  end
  if a and b and c then
    states[k] = {a, b, whole(answer[3], 0) or 0, c}  -- An end of 0 renews the TTL.
  else
    start_fresh(k)
    if answer.err or answer[1] or answer[2] or answer[3] or answer[4] then
      healed = healed + 1
      present[k], deleted[k] = true, true
    end
  end
  kind[k] = algorithm
  local state, at = states[k], 3 * k + 2
  reply[at], reply[at + 1], reply[at + 2] = state[1], state[2], state[4]
  return nil
end
