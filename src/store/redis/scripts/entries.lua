-- SPDX-License-Identifier: Apache-2.0
-- Steps entries of any kind, from the first one that the fast path did not take.

local lists = {}  -- By algorithm: the functions for its keys, made when they are needed.
local act         -- Steps a key under the quota in use and records what has to be written.

-- Steps a hash. Returns how many are admitted, and when the key will have recovered.
local function act_on_hash(op, k, cost, count, extra)
  local admitted, ends, effect = step(states[k], op, cost, count, extra, now, limit, period, capacity, recovery,
                                      x, y, saturation, origin)
  if op == admits then
    return admitted
  end
  if effect > 0 then
    dirty[k] = true
    if effect == 2 then
      repairs = repairs + 1
    end
  end
  recovered[k] = nil
  if ends > states[k][3] or states[k][3] - now > 4 * (recovery + ends - now) + 10000000 then
    recovered[k], recoveries[k] = ends, recovery
  end
  return admitted, ends
end

local function use(q)
  if not is_whole(q, 1, quotas) then
    return false
  end
  local b = 9 * q - 6
  quota, algorithm, limit, period, capacity = q, batch[b], batch[b + 1], batch[b + 2], batch[b + 3]
  recovery, x, y, saturation, origin = batch[b + 4], batch[b + 5], batch[b + 6], batch[b + 7], batch[b + 8]
  step = steps[algorithm]
  if step then
    act = act_on_hash
  else
    if not lists[algorithm] then
      lists[algorithm] = algorithm == 1 and SlidingLogs() or Concurrency()
    end
    act = lists[algorithm].act
  end
  return true
end

local used_ids = {}  -- By key of a refund id: whether the id has been used; nil: not known.
local new_ids = {}   -- By key of a refund id that has to be written: its TTL in milliseconds.

-- Reads a key for the first time, or checks that it is used as before.
local function open(k)
  if not KEYS[k] then
    return refuse('a charge names no key')
  end
  if kind[k] == nil then
    if lists[algorithm] then
      return lists[algorithm].load(k)
    end
    return read_hash(k)
  end
  if kind[k] ~= algorithm then
    return refuse('a key is used by two algorithms')
  end
  return nil
end

-- Returns what is wrong with a charge under the quota in use, or nil.
local function check_charge(op, cost, mode, lease)
  if not is_whole(cost, 1, 2147483647) then
    return 'a cost is not within 1 and 2^31 - 1'
  end
  if mode ~= 0 and mode ~= 1 then
    return 'a charge has an unknown mode'
  end
  if algorithm ~= 5 then
    return op >= renew and 'only concurrency has leases' or nil
  end
  if op == debit or op == refund then
    return 'concurrency has nothing to debit or to refund'
  end
  if lease == 0 and (op == look or op == reset) then
    return nil
  end
  if not is_whole(lease, 3, #ARGV) or ARGV[lease] == '' or match(ARGV[lease], '^#') then
    return 'a charge names no lease'
  end
  return nil
end

local function check_entry(op, count, charges)
  if not is_whole(op, apply, release) then
    return 'an entry has an unknown op'
  end
  if not is_whole(count, 1, 2147483647) then
    return 'a count is not within 1 and 2^31 - 1'
  end
  if not is_whole(charges, 1, #batch) then
    return 'an entry has no charges'
  end
  if op ~= apply and (count > 1 or charges > 1) then
    return 'only an apply has several charges or a count'
  end
  return nil
end

local function tell(k, admitted, cost, lease)
  local list = lists[algorithm]
  if list then
    reply[filled + 1] = admitted
    reply[filled + 2], reply[filled + 3], reply[filled + 4], reply[filled + 5], reply[filled + 6] =
      list.tell(k, cost, lease)
    filled = filled + 6
  end
end

-- Returns whether there is nothing to give back.
local function has_recovered(k)
  if lists[algorithm] then
    lists[algorithm].note_recovery(k)
    return recovered[k] <= now
  end
  -- Step and restore the state: a refund that does nothing must not write a repair.
  local state, before, known = states[k], dirty[k], repairs
  local a, b, c = state[1], state[2], state[4]
  local _, ends = act(apply, k, 1, 0, now)
  state[1], state[2], state[4], dirty[k], repairs = a, b, c, before, known
  return ends <= now
end

local function give_back(k, cost, p)
  local id, since, value = batch[p], batch[p + 1], batch[p + 2]
  if used_ids[id] or has_recovered(k) then
    return 0
  end
  local charged_at = since == 0 and now or since == 1 and now - value or value
  local admitted, ends = act(refund, k, cost, 1, charged_at)
  if admitted > 0 then
    local most = ends - now > recovery and ends - now or recovery
    if id ~= 0 then
      used_ids[id], new_ids[id] = true, (most + -most % 1000) / 1000 + 1000
    end
    publish = publish or {}
    publish[k] = true
  end
  return admitted
end

local function open_id(p)
  local id, since, value = batch[p], batch[p + 1], batch[p + 2]
  if id ~= 0 and (not KEYS[id] or kind[id] and kind[id] ~= 6) then
    return refuse('a refund names no id')
  end
  if not is_whole(since, 0, 2) or not is_whole(value, -largest, largest) then
    return refuse('a refund does not say when it was charged')
  end
  if id ~= 0 and kind[id] == nil then
    local answer = ask('EXISTS', KEYS[id])
    if type(answer) == 'table' then
      return answer
    end
    kind[id], used_ids[id] = 6, answer == 1
  end
  return nil
end

local function forget(k)
  local existed = present[k] or dirty[k]
  if lists[algorithm] then
    lists[algorithm].forget(k)
    deleted[k] = deleted[k] or present[k]
  else
    local there = states[k][3] >= 0
    existed = existed or there
    deleted[k] = deleted[k] or there and 2
    -- The client replays a reset only if it did something. So a reset that does nothing keeps the state.
    if existed then
      start_fresh(k)
    end
  end
  present[k], dirty[k], recovered[k] = nil, nil, nil
  publish = publish or {}
  publish[k] = true
  return existed and 1 or 0
end

-- Carries out an entry that is not an apply: it has one charge.
local function act_alone(op, k, cost, lease, p)
  local admitted = 0
  if op == look then
    act(apply, k, cost, 0, lease)
  elseif op == refund then
    admitted = give_back(k, cost, p)
  elseif op == reset then
    admitted = forget(k)
  else
    admitted = act(op, k, cost, 1, op == debit and batch[p] or lease)
  end
  filled = filled + 1
  reply[filled] = admitted
  tell(k, admitted, op == look and cost or 1, lease)
end

local named = {}  -- By key: the last entry that charges it.

-- Checks the entry that begins at p, reads its keys and, unless `dry`, carries it out. Returns where the next entry begins,
-- or nil and the error that the script returns.
local function take(p, number, dry)
  local op, count, charges = batch[p], batch[p + 1], batch[p + 2]
  local wrong = check_entry(op, count, charges)
  if wrong then
    return nil, refuse(wrong)
  end
  local begin, admitted = p + 3, count
  p = begin
  for _ = 1, charges do
    local k, q, cost, mode, lease = batch[p], batch[p + 1], batch[p + 2], batch[p + 3], batch[p + 4]
    wrong = not use(q) and 'a charge names no quota' or check_charge(op, cost, mode, lease)
    if wrong then
      return nil, refuse(wrong)
    end
    wrong = open(k)
    if wrong then
      return nil, wrong
    end
    p = p + (algorithm == 5 and 5 or 4)
    if named[k] == number then
      return nil, refuse('two charges of one entry name the same key')
    end
    named[k] = number
    -- A single charge is tested and charged in one step, below.
    if op == apply and mode == 0 and charges > 1 and not dry then
      local few = act(admits, k, cost, count, ARGV[lease])
      if few < admitted then
        admitted = few
      end
    end
  end
  if op == refund then
    wrong = open_id(p)
    if wrong then
      return nil, wrong
    end
    p = p + 3
  elseif op == debit then
    if not is_whole(batch[p], 0, saturation) then
      return nil, refuse('a debit has a max_debt that is not within 0 and the saturation of its quota')
    end
    p = p + 1
  end
  if dry then
    return p
  end
  if op ~= apply then
    act_alone(op, batch[begin], batch[begin + 2], ARGV[batch[begin + 4]], begin + 4)
    return p
  end
  filled = filled + 1
  local place = filled
  reply[place] = admitted
  for _ = 1, charges do
    local k, cost, lease = batch[begin], batch[begin + 2], ARGV[batch[begin + 4]]
    use(batch[begin + 1])
    local done = act(apply, k, cost, admitted, lease)
    if charges == 1 and batch[begin + 3] == 0 then
      reply[place] = done
    end
    tell(k, done, cost, lease)
    begin = begin + (algorithm == 5 and 5 or 4)
  end
  return p
end

-- Takes all remaining entries. Returns the error that the script returns, or nil.
local function take_all(dry)
  local at = p
  for number = e, entries do
    local instead
    at, instead = take(at, dry and -number or number, dry)
    if not at then
      return instead
    end
    if failure then
      return failure
    end
  end
  if at ~= #batch + 1 then
    return refuse('the batch does not end with its last entry')
  end
  return nil
end

-- Leases are written as they are taken, so all entries of such a batch are checked and read first.
local instead = has_leases and take_all(true) or take_all(false)
if instead then
  return instead
end
p = #batch + 1

-- Write ids first: a refund that is applied twice is worse than one that is lost.
for id, ms in pairs(new_ids) do
  write('SET', KEYS[id], '1', 'PX', lasting(ms))
end
for k = 1, #KEYS do
  local list = lists[kind[k]]
  if list then
    local was_there = present[k] and not deleted[k]
    if list.save(k) and recovered[k] then
      local left = recovered[k] - now
      local ttl = was_there and read('PTTL', KEYS[k]) or -1
      if ttl * 1000 < left then
        write('PEXPIRE', KEYS[k], lasting(time_to_live(recoveries[k], left)))
      end
    end
  end
end
if failure then
  return failure
end

end  -- Of the block that begins at the end of fast_path.lua.
