-- Returns where the catalog is, the id of the newest change, and all fields of the
-- catalog, or none of them when the caller knows this position.
-- KEYS: catalog, log. ARGV: the epoch, revision and write that the caller knows.
local at = redis.call('HMGET', KEYS[1], 'epoch', 'revision', 'write')
local known = at[1] and at[1] == ARGV[1] and at[2] == ARGV[2] and at[3] == ARGV[3]
local newest = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
-- Who wrote the revision that the caller knows, as far as the log goes back.
local writer = redis.call('XRANGE', KEYS[2], ARGV[2] .. '-0', ARGV[2] .. '-0')[1]
return {
	known and 1 or 0,
	newest and newest[1] or '0-0',
	writer and writer[2][2] or '',
	known and {} or redis.call('HGETALL', KEYS[1]),
}
