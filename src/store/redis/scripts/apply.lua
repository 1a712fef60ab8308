-- SPDX-License-Identifier: Apache-2.0
-- The entries, in order; then the writes, each key once; then who has to hear of it.

local steps = {[0] = token_bucket, [2] = sliding_window, [3] = fixed_window, [4] = gcra}
local lists = {}  -- By algorithm, once it is needed.
local act         -- The step of the quota in use,
local quick       -- and whether it may be taken at once: on a hash, when its entry is not only to be checked.
local dry = false

local function use(q)
  if not is_whole(q, 1, quotas) then
    return false
  end
  local b = 8 * q - 5
  quota, algorithm, limit, period = q, batch[b], batch[b + 1], batch[b + 2]
  capacity, recovery, x, y, saturation = batch[b + 3], batch[b + 4], batch[b + 5], batch[b + 6], batch[b + 7]
  act = steps[algorithm]
  quick = act and not dry
  if not act then
    if not lists[algorithm] then
      lists[algorithm] = algorithm == sliding_log_kind and SlidingLogs() or Concurrency()
    end
    act = lists[algorithm].act
  end
  return true
end

local publish = {}    -- keys to be published
local used_ids = {}   -- refund ids: nil unknown, else whether they have been used
local new_ids = {}    -- ids to be remembered, and for how long

-- Reads a key for the first time, or sees that it is used as before.
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

-- What is wrong with a charge under the quota in use, or nil.
local function check_charge(op, k, cost, mode, lease)
  if not is_whole(cost, 1, 2147483647) then
    return 'a cost is not within 1 and 2^31 - 1'
  end
  if mode ~= 0 and mode ~= 1 then
    return 'a charge has an unknown mode'
  end
  if algorithm ~= concurrency_kind then
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
    reply[told + 1] = admitted
    reply[told + 2], reply[told + 3], reply[told + 4], reply[told + 5], reply[told + 6] =
      list.tell(k, cost, lease)
    told = told + 6
  end
end

-- A step that changes things, and what follows from it for the TTL.
local function step(op, k, cost, count, more)
  local admitted, ends = act(op, k, cost, count, more)
  if ends then
    note_recovery(k, ends)
  end
  return admitted, ends or recovered[k]
end

-- Whether there is nothing to give back.
local function has_recovered(k)
  if lists[algorithm] then
    lists[algorithm].note_recovery(k)
    return recovered[k] <= now
  end
  -- A look, taken back: a repair is not written for a refund that does nothing.
  local state, before, known = states[k], dirty[k], repairs
  local a, b, c = state[1], state[2], state[4]
  local _, ends = step(apply, k, 1, 0)
  state[1], state[2], state[4], dirty[k], repairs = a, b, c, before, known
  return ends <= now
end

local function give_back(k, cost, p)
  local id, since, value = batch[p], batch[p + 1], batch[p + 2]
  if used_ids[id] or has_recovered(k) then
    return 0
  end
  local charged_at = now
  if since == 1 then
    charged_at = now - value
  elseif since == 2 then
    charged_at = value
  end
  local admitted, ends = step(refund, k, cost, 1, charged_at)
  if admitted > 0 then
    local most = ends - now > recovery and ends - now or recovery
    used_ids[id], new_ids[id] = true, (most + -most % 1000) / 1000 + 1000
    publish[k] = true
  end
  return admitted
end

local function open_id(p)
  local id, since, value = batch[p], batch[p + 1], batch[p + 2]
  if not KEYS[id] or kind[id] and kind[id] ~= refund_id then
    return refuse('a refund names no id')
  end
  if not is_whole(since, 0, 2) or not is_whole(value, -largest, largest) then
    return refuse('a refund does not say when it was charged')
  end
  if kind[id] == nil then
    local answer = ask('EXISTS', KEYS[id])
    if type(answer) == 'table' then
      return answer
    end
    kind[id], used_ids[id] = refund_id, answer == 1
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
    deleted[k] = deleted[k] or there
    start_fresh(k)
  end
  present[k], dirty[k], recovered[k] = nil, nil, nil
  publish[k] = true
  return existed and 1 or 0
end

-- Ops with one charge, but apply.
local function act_alone(op, k, cost, lease, p)
  local admitted = 0
  if op == look then
    step(apply, k, cost, 0, lease)
  elseif op == refund then
    admitted = give_back(k, cost, p)
  elseif op == reset then
    admitted = forget(k)
  else
    admitted = step(op, k, cost, 1, lease)
  end
  told = told + 1
  reply[told] = admitted
  tell(k, admitted, op == look and cost or 1, lease)
end

local named = {}  -- by key: the last entry that charges it

-- Any entry. `dry`: it is only checked, and its keys are read. Answers with where the next one begins, or
-- with what is to be returned instead.
local function step_entry(p, e)
  local op, count, charges = batch[p], batch[p + 1], batch[p + 2]
  local wrong = check_entry(op, count, charges)
  if wrong then
    return nil, refuse(wrong)
  end
  local begin = p + 3
  p = begin
  local admitted, mark = count, dry and -e or e
  for _ = 1, charges do
    local k, q, cost, mode, lease = batch[p], batch[p + 1], batch[p + 2], batch[p + 3], batch[p + 4]
    if not use(q) then
      return nil, refuse('a charge names no quota')
    end
    wrong = check_charge(op, k, cost, mode, lease)
    if wrong then
      return nil, refuse(wrong)
    end
    wrong = open(k)
    if wrong then
      return nil, wrong
    end
    p = p + 4
    if algorithm == concurrency_kind then
      p = p + 1
    end
    if op == apply then
      if named[k] == mark then
        return nil, refuse('two charges of one entry name the same key')
      end
      named[k] = mark
      if mode == 0 and not dry then
        local few = act(admits, k, cost, count, ARGV[lease])
        if few < admitted then
          admitted = few
        end
      end
    end
  end
  if op == refund then
    wrong = open_id(p)
    if wrong then
      return nil, wrong
    end
    p = p + 3
  end
  if dry then
    return p
  end

  if op ~= apply then
    act_alone(op, batch[begin], batch[begin + 2], ARGV[batch[begin + 4]], begin + 4)
    return p
  end
  told = told + 1
  reply[told] = admitted
  local at = begin
  for _ = 1, charges do
    local k, cost, lease = batch[at], batch[at + 2], ARGV[batch[at + 4]]
    use(batch[at + 1])
    local done = step(apply, k, cost, admitted, lease)
    tell(k, done, cost, lease)
    at = at + (algorithm == concurrency_kind and 5 or 4)
  end
  return p
end

-- Leases are written as they are taken: then all is checked and read first, in a pass of its own.
for pass = has_leases and 1 or 2, 2 do
  dry = pass == 1
  quota = nil  -- So that `use` looks at dry.
  local p = 8 * quotas + 4
  for e = 1, entries do
    local k, q, cost, count = batch[p + 3], batch[p + 4], batch[p + 5], batch[p + 1]
    if q ~= quota and not use(q) then
      return refuse('a charge names no quota')
    end
    -- The usual entry: an apply with one enforcing charge on a hash.
    if quick and batch[p] == 1 and batch[p + 2] == 1 and batch[p + 6] == 0 and
       (cost == 1 or is_whole(cost, 1, 2147483647)) and (count == 1 or is_whole(count, 1, 2147483647)) then
      if kind[k] ~= algorithm then
        local wrong = open(k)
        if wrong then
          return wrong
        end
      end
      local admitted, ends = act(apply, k, cost, count)
      if ends > states[k][3] or recovered[k] then
        note_recovery(k, ends)
      end
      told = told + 1
      reply[told] = admitted
      p = p + 7
    else
      local next_entry, instead = step_entry(p, e)
      if not next_entry then
        return instead
      end
      if failure then
        return failure
      end
      p = next_entry
    end
  end
  if p ~= #batch + 1 then
    return refuse('the batch does not end with its last entry')
  end
end

-- Ids first: a refund that is applied twice is worse than one that is lost.
for id, ms in pairs(new_ids) do
  write('SET', KEYS[id], '1', 'PX', lasting(ms))
end
local others = false  -- keys that are no hashes
for k = 1, #KEYS do
  local of = kind[k]
  if of == 0 and dirty[k] and not recovered[k] then
    -- The usual key: a token bucket that has changed, with a TTL that lasts.
    local state = states[k]
    local rest = state[4]
    local last_refill = rest == 0 and format('%d', state[2]) or format('%d:%d', state[2], rest)
    local answer = ask('HSET', KEYS[k], 'tokens', format('%d', state[1]), 'last_refill', last_refill)
    if answer == 0 then
      written = true
    else
      failed(answer)
    end
  elseif steps[of] then
    if dirty[k] or recovered[k] or deleted[k] then
      write_hash(k)
    end
  else
    others = true
    local list = lists[of]
    if list then
      local was_there = present[k] and not deleted[k]
      if list.save(k) and recovered[k] then
        local ttl = was_there and read('PTTL', KEYS[k]) or -1
        if ttl * 1000 < recovered[k] - now then
          write('PEXPIRE', KEYS[k], lasting(time_to_live(k)))
        end
      end
    end
  end
  if failure then
    return failure
  end
end
if ARGV[2] ~= '' then
  for k in pairs(publish) do
    write('PUBLISH', ARGV[2], KEYS[k])
  end
end

-- The states of hashes move up to where lists and ids would have had theirs.
if others then
  local all, n = reply, 4
  reply = {now, 0, 0, 0}
  for k = 1, #KEYS do
    if steps[kind[k]] then
      reply[n + 1], reply[n + 2], reply[n + 3] = all[3 * k + 2], all[3 * k + 3], all[3 * k + 4]
      n = n + 3
    end
  end
  for i = before_entries + 1, told do
    n = n + 1
    reply[n] = all[i]
  end
end
reply[2], reply[3], reply[4] = repairs, healed, failed_writes
return cmsgpack.pack(reply)
