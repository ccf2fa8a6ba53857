-- Puts another audit log in the place of the one that there is, with the entries that came
-- after one of them. It may be repeated: the second time there is no other log.
-- KEYS: audit log, the other one. ARGV: the ID of the last entry that the other one knows of, or ''.
if redis.call('EXISTS', KEYS[2]) == 0 then return 'done' end
local from = ARGV[1] == '' and '-' or '(' .. ARGV[1]
for _, there in ipairs(redis.call('XRANGE', KEYS[1], from, '+')) do
	if redis.pcall('XADD', KEYS[2], there[1], unpack(there[2])).err then
		redis.call('XADD', KEYS[2], '*', unpack(there[2]))
	end
end
redis.call('RENAME', KEYS[2], KEYS[1])
return 'done'
