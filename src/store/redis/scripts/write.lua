-- SPDX-License-Identifier: Apache-2.0
-- Writes the fields of hashes that have changed, and the TTL of each hash that would expire before the key has recovered.
-- Then publishes refunds and resets, which invalidate cached denials.

if p ~= #batch + 1 then
  return refuse('the batch does not end with its last entry')
end

local others = false  -- Whether there are keys that are not hashes.
for k = 1, #KEYS do
  local state, key = states[k], KEYS[k]
  if not state then
    others = true
  elseif dirty[k] or deleted[k] or recovered[k] and state[3] >= 0 then
    local ms, ends
    if recovered[k] and (dirty[k] or state[3] >= 0) then
      ms = time_to_live(recoveries[k], recovered[k] - now)
      ends = now + ms * 1000
      ends = format('%d', ends < largest and ends or largest)  -- Debts of centuries.
    end
    local answer, wrong = 0, nil
    -- A key that was reset and charged again is overwritten: while its slot moves to another node, a deleted key cannot
    -- be written any more. A malformed key must be deleted all the same.
    if deleted[k] and (deleted[k] ~= 2 or not dirty[k]) then
      answer = ask('DEL', key)
      if type(answer) == 'table' then
        wrong = answer
      else
        written = true
      end
    end
    if dirty[k] and not wrong then
      local of, last = kind[k], state[4]
      if of == 0 then
        local last_refill = last == 0 and format('%d', state[2]) or format('%d:%d', state[2], last)
        if ms then
          answer = ask('HSET', key, 'tokens', format('%d', state[1]), 'last_refill', last_refill, 'expires', ends)
        else
          answer = ask('HSET', key, 'tokens', format('%d', state[1]), 'last_refill', last_refill)
        end
      elseif of == 4 then
        local tat = state[2] == 0 and format('%d', state[1]) or format('%d:%d', state[1], state[2])
        -- Most keys of rules never owe anything and have no `owed`; that of keys with callers' quotas rarely changes.
        local owes = last ~= reply[3 * k + 4]
        if ms and owes then
          answer = ask('HSET', key, 'tat', tat, 'owed', format('%d', last), 'expires', ends)
        elseif ms then
          answer = ask('HSET', key, 'tat', tat, 'expires', ends)
        elseif owes then
          answer = ask('HSET', key, 'tat', tat, 'owed', format('%d', last))
        else
          answer = ask('HSET', key, 'tat', tat)
        end
      elseif of == 3 then
        if ms then
          answer = ask('HSET', key, 'start', format('%d', state[1]), 'count', format('%d', state[2]), 'expires', ends)
        elseif reply[3 * k + 2] == state[1] then
          answer = ask('HSET', key, 'count', format('%d', state[2]))
        else
          answer = ask('HSET', key, 'start', format('%d', state[1]), 'count', format('%d', state[2]))
        end
      elseif ms then
        answer = ask('HSET', key, 'start', format('%d', state[1]), 'current', format('%d', state[2]), 'previous',
                     format('%d', last), 'expires', ends)
      elseif reply[3 * k + 2] == state[1] and reply[3 * k + 4] == last then
        answer = ask('HSET', key, 'current', format('%d', state[2]))
      else
        answer = ask('HSET', key, 'start', format('%d', state[1]), 'current', format('%d', state[2]), 'previous',
                     format('%d', last))
      end
    end
    if answer ~= 0 and type(answer) == 'table' then
      wrong = answer
    elseif ms then
      written = written or dirty[k]
      answer = ask('PEXPIRE', key, lasting(ms))
      if answer == 1 and not dirty[k] then
        -- After the TTL, which takes no memory: so it is renewed even if Redis has no memory left.
        written = true
        answer = ask('HSET', key, 'expires', ends)
      end
      if type(answer) == 'table' then
        wrong = answer
      end
    end
    if not wrong then
      written = true
    elseif written then
      failed_writes = failed_writes + 1
    else
      return wrong
    end
  end
end

if publish and ARGV[2] ~= '' then
  for k in pairs(publish) do
    if type(ask('PUBLISH', ARGV[2], KEYS[k])) == 'table' then
      failed_writes = failed_writes + 1
    end
  end
end

-- The reply contains the states of hashes only: close the gaps that lists and ids have left.
if others then
  local all, n = reply, 4
  reply = {now, 0, 0, 0}
  for k = 1, #KEYS do
    if states[k] then
      reply[n + 1], reply[n + 2], reply[n + 3] = all[3 * k + 2], all[3 * k + 3], all[3 * k + 4]
      n = n + 3
    end
  end
  for i = before_entries + 1, filled do
    n = n + 1
    reply[n] = all[i]
  end
end
reply[2], reply[3], reply[4] = repairs, healed, failed_writes
return cmsgpack.pack(reply)
