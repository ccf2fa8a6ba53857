-- Leaves a group: what is pending for the member counts as silent for long, its leases are
-- free, and a member without anything pending is forgotten.
-- KEYS: members; streams; with a token their leases. ARGV: group, member, lease token or ''.
local group, member, token = ARGV[1], ARGV[2], ARGV[3]
local streams = token == '' and #KEYS - 1 or (#KEYS - 1) / 2
local long = 1000 * 60 * 60 * 24
for i = 1, streams do
  local stream, from = KEYS[1 + i], '-'
  repeat
    local pending = redis.call('XPENDING', stream, group, from, '+', 1000, member)
    if #pending > 0 then
      local claim = { 'XCLAIM', stream, group, member, 0 }
      for _, entry in ipairs(pending) do claim[#claim + 1] = entry[1] end
      from = '(' .. claim[#claim]
      for _, word in ipairs({ 'IDLE', long, 'JUSTID' }) do claim[#claim + 1] = word end
      redis.call(unpack(claim))
    elseif from == '-' then
      redis.call('XGROUP', 'DELCONSUMER', stream, group, member)
    end
  until #pending == 0
  if token ~= '' and redis.call('GET', KEYS[1 + streams + i]) == token then redis.call('DEL', KEYS[1 + streams + i]) end
end
if token ~= '' then redis.call('ZREM', KEYS[1], member) end
return 'done'
