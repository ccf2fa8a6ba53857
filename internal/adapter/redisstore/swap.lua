-- Stores a state, if it is still at a revision. It may be repeated: each of the newest
-- revisions is known, so that a state is stored once.
-- KEYS: state. ARGV: the revision that it has to be at, or '', and the one that it
-- gets, of 16 digits each; the text, what it is the state of, and how long to keep it,
-- in seconds.
local revisions = redis.call('HGET', KEYS[1], 'revisions') or ''
for at = 1, #revisions, 16 do
	if string.sub(revisions, at, at + 15) == ARGV[2] then return 'done' end
end
if string.sub(revisions, 1, 16) ~= ARGV[1] then return 'conflict' end
redis.call('HSET', KEYS[1], 'revisions', ARGV[2] .. string.sub(revisions, 1, 16 * 15), 'text', ARGV[3], 'key', ARGV[4])
redis.call('EXPIRE', KEYS[1], ARGV[5])
return 'done'
