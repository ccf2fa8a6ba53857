-- Makes everything that is pending in streams pending for the member that has their leases.
-- KEYS: streams; their leases. ARGV: group, member, lease token.
local streams = #KEYS / 2
for i = 1, streams do
  if redis.call('GET', KEYS[streams + i]) == ARGV[3] then
    local cursor = '0-0'
    repeat
      cursor = redis.call('XAUTOCLAIM', KEYS[i], ARGV[1], ARGV[2], 0, cursor, 'COUNT', 1000, 'JUSTID')[1]
    until cursor == '0-0'
  end
end
return 'done'
