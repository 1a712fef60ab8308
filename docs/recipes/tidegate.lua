-- SPDX-License-Identifier: Apache-2.0
-- HAProxy asks Tidegate before it passes a request on: see haproxy.md.
--
--   http-request lua.tidegate abns@tidegate
--
-- asks at that address, where HAProxy itself listens and passes the question on, and sets for the rules behind it:
--   txn.tidegate          allowed, refused, failed (nobody answers) or misconfigured
--   txn.tidegate_status   when refused: 429, 403, 503 or 400
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

local function headers_of(txn)
  local headers = {}
  for name, values in pairs(txn.http:req_get_headers()) do
    if not ours[name] then
      local list = {}
      for i = 0, #values do list[#list + 1] = values[i] end
      headers[name] = list
    end
  end
  headers["x-forwarded-uri"] = { txn.f:pathq() }
  headers["x-forwarded-method"] = { txn.f:method() }
  headers["x-forwarded-for"] = { txn.f:src() }
  local host = txn.f:req_fhdr("host")
  -- An empty one would be refused: the client did not name a host.
  if host and host ~= "" then headers["x-forwarded-host"] = { host } end
  return headers
end

local function first(response, name)
  local values = response.headers and response.headers[name]
  return values and values[0]
end

local function tidegate(txn, address)
  local fine, response = pcall(function()
    return core.httpclient():get({
      url = "http://127.0.0.1/v1/auth", dst = address, headers = headers_of(txn)
    })
  end)
  if not fine then
    txn:Warning("tidegate: " .. tostring(response))
    return txn:set_var("txn.tidegate", "failed")
  end
  for _, name in ipairs({ "ratelimit", "ratelimit-policy", "retry-after" }) do
    local value = first(response, name)
    if value then txn:set_var("txn.tidegate_" .. name:gsub("-", "_"), value) end
  end
  -- HAProxy makes a 503 or 504 of its own where nobody answers: Tidegate's have this field.
  local status = first(response, "x-ratelimit-status")
  if response.status == 200 then
    txn:set_var("txn.tidegate", "allowed")
  elseif status then
    txn:set_var("txn.tidegate", "refused")
    txn:set_var("txn.tidegate_status", status)
    -- Without the end of its line: HAProxy would write that as %0A.
    txn:set_var("txn.tidegate_body", (response.body:gsub("%s+$", "")))
  elseif response.status == 500 then
    txn:Warning("tidegate: " .. tostring(response.body))
    txn:set_var("txn.tidegate", "misconfigured")
  else
    txn:set_var("txn.tidegate", "failed")
  end
end

core.register_action("tidegate", { "http-req" }, tidegate, 1)
