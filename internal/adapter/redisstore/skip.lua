-- Has leases begin after a block.
-- KEYS: lease. ARGV: the block.
if tonumber(redis.call('GET', KEYS[1]) or '0') < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[1]) end
return 'done'
