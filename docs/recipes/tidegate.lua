-- SPDX-License-Identifier: Apache-2.0
-- HAProxy asks Tidegate before it passes a request on: see haproxy.md.
--
--   http-request lua.tidegate abns@tidegate
--
-- asks at that address, where HAProxy itself listens and passes the question on, and sets for the rules behind it:
--   txn.tidegate          allowed, refused, failed (no response) or misconfigured
--   txn.tidegate_status   when refused: 429, 403, 503 or 400; 431 and others where the request itself is too much
--   txn.tidegate_body     when refused: the problem as JSON
--   txn.tidegate_<field>  ratelimit, ratelimit_policy, retry_after: fields for the client, where they are there

-- What is HAProxy's to say, or concerns its connection with the client only. Nothing
-- of this is taken from the client: it could speak for another request.
local ours = {
  ["host"] = true, ["connection"] = true, ["keep-alive"] = true, ["proxy-connection"] = true,
  ["te"] = true, ["trailer"] = true, ["transfer-encoding"] = true, ["upgrade"] = true,
  ["expect"] = true, ["content-length"] = true, ["forwarded"] = true,
  ["x-forwarded-for"] = true, ["x-forwarded-host"] = true, ["x-forwarded-proto"] = true,
  ["x-forwarded-uri"] = true, ["x-forwarded-method"] = true,
  ["x-original-uri"] = true, ["x-original-url"] = true, ["x-original-method"] = true,
}

-- HAProxy 2.6 crashes where its client is given more than 101 (tune.http.maxhdr), which one request can bring about;
-- Tidegate takes 100 (limits.header_count), of which HAProxy's client writes 3.
local most_headers = 97

local too_large = '{"type":"about:blank","title":"Request Header Fields Too Large","status":431}'

-- How many there are as well.
local function headers_of(txn)
  local headers = {}
  local count = 4
  for name, values in pairs(txn.http:req_get_headers()) do
    if not ours[name] then
      local list = {}
      for i = 0, #values do list[#list + 1] = values[i] end
      headers[name] = list
      count = count + #list
    end
  end
  headers["x-forwarded-uri"] = { txn.f:pathq() }
  headers["x-forwarded-method"] = { txn.f:method() }
  headers["x-forwarded-for"] = { txn.f:src() }
  local host = txn.f:req_fhdr("host")
  -- An empty one would be refused: the client did not name a host.
  if host and host ~= "" then headers["x-forwarded-host"] = { host } end
  return headers, count
end

local function first(response, name)
  local values = response.headers and response.headers[name]
  return values and values[0]
end

local function refuse(txn, status, body)
  txn:set_var("txn.tidegate", "refused")
  txn:set_var("txn.tidegate_status", tostring(status))
  -- Without the end of its line: HAProxy would write that as %0A.
  txn:set_var("txn.tidegate_body", (tostring(body or ""):gsub("%s+$", "")))
end

-- Whatever a client can bring about is a refusal. Were it taken for a Tidegate that does not answer, a client could
-- switch its limit off.
local function tidegate(txn, address)
  local headers, count = headers_of(txn)
  if count > most_headers then return refuse(txn, 431, too_large) end
  local fine, response = pcall(function()
    return core.httpclient():get({ url = "http://127.0.0.1/v1/auth", dst = address, headers = headers })
  end)
  if not fine then
    -- The question was never put: with what HAProxy adds, it does not fit into a buffer (tune.bufsize).
    txn:Warning("tidegate: " .. tostring(response))
    return refuse(txn, 431, too_large)
  end
  for _, name in ipairs({ "ratelimit", "ratelimit-policy", "retry-after" }) do
    local value = first(response, name)
    if value then txn:set_var("txn.tidegate_" .. name:gsub("-", "_"), value) end
  end
  -- Answers of /v1/auth that refuse have this field. Those of Tidegate's HTTP parser have not (a header that is too long:
  -- 431), nor has the 502, 503 or 504 that HAProxy makes where no server answers.
  local meant = first(response, "x-ratelimit-status")
  local status = tonumber(response.status) or 0
  if status == 200 then
    txn:set_var("txn.tidegate", "allowed")
  elseif meant then
    refuse(txn, meant, response.body)
  elseif status == 500 then
    txn:Warning("tidegate: " .. tostring(response.body))
    txn:set_var("txn.tidegate", "misconfigured")
  elseif status == 0 or status > 500 then
    txn:set_var("txn.tidegate", "failed")
  else
    refuse(txn, status, response.body)
  end
end

core.register_action("tidegate", { "http-req" }, tidegate, 1)
