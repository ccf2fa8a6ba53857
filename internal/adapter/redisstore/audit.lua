-- Adds an entry to the audit log. It may be repeated: the entry is added once, unless
-- many others have come meanwhile.
-- KEYS: audit log. ARGV: how many entries to keep, a random name, the entry.
for _, there in ipairs(redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 16)) do
	if there[2][2] == ARGV[2] then return 'done' end
end
redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', 'write', ARGV[2], 'entry', ARGV[3])
return 'done'
