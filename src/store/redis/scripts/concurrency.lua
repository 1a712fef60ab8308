-- SPDX-License-Identifier: Apache-2.0
-- The twin of src/core/concurrency.cpp on a sorted set: score = expiry, member = the lease. A lease of several units has
-- a second member, `#lease`, with the score -(units - 1), and the score of `#` is the sum of those. So a count and a
-- subtraction tell how many units are held. No lease begins with `#`, and expiries are positive.
--
-- Leases are written as they are taken; `held` caches what would otherwise be read for each entry.
local function Concurrency()
  -- By key:
  --   living   leases that end after now
  --   extra    units beyond the first of each of those
  --   stored   the same of all leases in the set, expired ones too
  --   last     the last expiry, nil if no lease is living
  --   clean    no expired lease is in the set
  --   corrupt  the key is malformed and has to be deleted
  --   gone     the last lease was released, which deleted the key
  local held = {}
  local after_now = '(' .. format('%d', now)

  local function none()
    return {living = 0, extra = 0, stored = 0, clean = true}
  end

  local function spoil(k)
    healed = healed + 1
    present[k] = true
    held[k] = none()
    held[k].corrupt = true
  end

  local function extra_of(k, lease)
    local score = read('ZSCORE', KEYS[k], '#' .. lease)
    local extra = score and whole(score, -largest)
    return extra and extra < 0 and -extra or 0
  end

  -- A score is a whole number of microseconds, unless another client wrote it.
  local function whole_up(score)
    local time = tonumber(score)
    return time + -time % 1
  end

  local function expired_leases(k)
    return read('ZRANGEBYSCORE', KEYS[k], '(0', format('%d', now)) or {}
  end

  local function load(k)
    kind[k] = 5
    local answer = ask('ZRANGE', KEYS[k], '-1', '-1', 'WITHSCORES')
    if answer.err then
      if not match(answer.err, 'WRONGTYPE') then
        return answer
      end
      spoil(k)
      return nil
    end
    local leases = none()
    held[k] = leases
    if not answer[1] then
      return nil
    end
    present[k] = true
    local last = whole(answer[2], -largest)
    local stored = read('ZSCORE', KEYS[k], '#')
    stored = stored and whole(stored, -largest) or stored
    if not last or stored and not (stored < 0) then
      spoil(k)
      return nil
    end
    leases.clean = false
    leases.stored = stored and -stored or 0
    leases.extra = leases.stored
    if last > now then
      leases.last = last
      leases.living = read('ZCOUNT', KEYS[k], after_now, '+inf') or 0
    end
    if leases.stored > 0 then
      for _, lease in ipairs(expired_leases(k)) do
        leases.extra = leases.extra - extra_of(k, lease)
      end
      -- These are units of leases that do not exist.
      if leases.extra < 0 or leases.living == 0 and leases.extra > 0 then
        spoil(k)
      end
    end
    return failure
  end

  local function write_sum(k)
    local leases = held[k]
    if leases.stored == leases.extra then
      return
    end
    leases.stored = leases.extra
    if leases.extra == 0 then
      write('ZREM', KEYS[k], '#')
    else
      write('ZADD', KEYS[k], format('%d', -leases.extra), '#')
    end
  end

  local function drop_expired(k)
    local leases = held[k]
    if leases.clean then
      return
    end
    leases.clean = true
    if leases.stored ~= leases.extra then
      for _, lease in ipairs(expired_leases(k)) do
        write('ZREM', KEYS[k], '#' .. lease)
      end
      write_sum(k)
    end
    write('ZREMRANGEBYSCORE', KEYS[k], '(0', format('%d', now))
  end

  -- Prepares a key for a step: deletes it if it is malformed, and lets leases that end more than two periods from now,
  -- which only a clock far ahead of ours can have written, end one period from now.
  local function mend(k)
    local leases = held[k]
    if leases.corrupt then
      leases.corrupt = nil
      write('DEL', KEYS[k])
    end
    if not leases.last or leases.last - now <= 2 * period then
      return leases
    end
    local latest = format('%d', now + period)
    for _, lease in ipairs(read('ZRANGEBYSCORE', KEYS[k], '(' .. latest, '+inf') or {}) do
      write('ZADD', KEYS[k], latest, lease)
    end
    leases.last = now + period
    drop_expired(k)
    repairs = repairs + 1
    return leases
  end

  -- Returns the expiry and the units of a living lease, or nil and 0.
  local function own_lease(k, lease)
    local expiry = lease and present[k] and not held[k].gone and read('ZSCORE', KEYS[k], lease)
    expiry = expiry and whole_up(expiry)
    if not expiry or expiry <= now then
      return nil, 0
    end
    return expiry, held[k].stored > 0 and 1 + extra_of(k, lease) or 1
  end

  local function hold(k, lease, units, own_expiry, own_units)
    local leases = held[k]
    local expiry = now + period
    if own_expiry and own_expiry > expiry then
      expiry = own_expiry
    end
    -- Write before anything is dropped: while its slot moves to another node, a deleted key cannot be written any more.
    if not write('ZADD', KEYS[k], format('%d', expiry), lease) then
      return false
    end
    if own_units == 0 and leases.stored > 0 and units == 1 then
      write('ZREM', KEYS[k], '#' .. lease)  -- Of one under the same id that has ended.
    end
    drop_expired(k)
    present[k], leases.gone = true, nil
    if units ~= own_units and (units > 1 or own_units > 1) then
      if units > 1 then
        write('ZADD', KEYS[k], format('%d', 1 - units), '#' .. lease)
      else
        write('ZREM', KEYS[k], '#' .. lease)
      end
      leases.extra = leases.extra + units - (own_units > 0 and own_units or 1)
      write_sum(k)
    end
    if own_units == 0 then
      leases.living = leases.living + 1
    end
    if not leases.last or leases.last < expiry then
      leases.last = expiry
    end
    return true
  end

  local function let_go(k, lease, units)
    local leases = held[k]
    drop_expired(k)
    if units > 1 then
      write('ZREM', KEYS[k], '#' .. lease)
      leases.extra = leases.extra - (units - 1)
      write_sum(k)
    end
    write('ZREM', KEYS[k], lease)
    leases.living = leases.living - 1
    if leases.living > 0 then
      local newest = read('ZRANGE', KEYS[k], '-1', '-1', 'WITHSCORES')
      leases.last = newest and newest[2] and whole_up(newest[2])
    else
      leases.last, leases.gone = nil, true
    end
  end

  -- Returns when `excess` units will have ended, without those of `lease`, which ends at `own_expiry`.
  local function ends(k, excess, lease, own_expiry)
    if held[k].extra == 0 then
      local answer = read('ZRANGEBYSCORE', KEYS[k], after_now, '+inf', 'WITHSCORES', 'LIMIT',
                          format('%d', excess - 1), '2') or {}
      local expiry = answer[2]
      if own_expiry and expiry and own_expiry <= whole_up(expiry) then
        expiry = answer[4]
      end
      return expiry and whole_up(expiry) or now + period
    end
    -- Each lease has at least one unit, so these are enough of them.
    local answer = read('ZRANGEBYSCORE', KEYS[k], after_now, '+inf', 'WITHSCORES', 'LIMIT', '0',
                        format('%d', excess + 1)) or {}
    for i = 1, #answer, 2 do
      if answer[i] ~= lease then
        excess = excess - 1 - extra_of(k, answer[i])
        if excess <= 0 then
          return whole_up(answer[i + 1])
        end
      end
    end
    return now + period
  end

  local function note_recovery(k)
    recovered[k], recoveries[k] = held[k].last or now, recovery
  end

  local function act(op, k, cost, count, lease)
    local leases = mend(k)
    local expiry, units = own_lease(k, lease)
    local admitted = 0
    if op <= apply then
      if count > 0 and leases.living + leases.extra - units + cost <= limit then
        admitted = count
      end
      if op == admits then
        return admitted
      end
      leases.renewed = admitted > 0 and expiry ~= nil
      if admitted > 0 and not hold(k, lease, cost, expiry, units) then
        admitted = 0
      end
    elseif expiry then
      admitted = 1
      if op == renew then
        hold(k, lease, units, expiry, units)
      else
        let_go(k, lease, units)
      end
    end
    note_recovery(k)
    return admitted, recovered[k]
  end

  -- Returns what a look of this cost reports: remaining, retry_after, more_after, reset_after, and 1 for never plus 2 for
  -- a renewed lease.
  local function tell(k, cost, lease)
    local leases = held[k]
    local used = leases.living + leases.extra
    local remaining = limit > used and limit - used or 0
    local retry_after, more_after, reset_after = 0, 0, 0
    if used > 0 then
      reset_after = leases.last - now
      more_after = ends(k, used + remaining + 1 - limit) - now
    end
    local never = cost > limit
    if not never and used + cost > limit then
      local expiry, units = own_lease(k, lease)
      local excess = used - units + cost - limit
      if excess > 0 then
        retry_after = ends(k, excess, expiry and lease, expiry) - now
      end
    end
    local renewed = leases.renewed and 2 or 0
    leases.renewed = nil
    return remaining, retry_after, more_after, reset_after, (never and 1 or 0) + renewed
  end

  local function forget(k)
    local gone = held[k].gone
    held[k] = none()
    if present[k] and not gone then
      write('DEL', KEYS[k])
    end
  end

  local function save(k)
    return held[k].last ~= nil
  end

  return {load = load, act = act, tell = tell, forget = forget, save = save, note_recovery = note_recovery}
end
