-- Returns the revisions and the text of a state, or nothing, and keeps it longer. What
-- is there and is no state at all, is moved away: 'damaged'.
-- KEYS: state, where to move it. ARGV: how long to keep it, in seconds.
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'none' then return {} end
local state = kind == 'hash' and redis.call('HMGET', KEYS[1], 'revisions', 'text') or {}
if not state[1] or not state[2] or #state[1] < 16 or not string.match(state[1], '^[%da-f]+$') then
	redis.call('RENAME', KEYS[1], KEYS[2])
	redis.call('EXPIRE', KEYS[2], ARGV[1])
	return {'damaged'}
end
-- A Redis that takes no writes can still be read.
redis.pcall('EXPIRE', KEYS[1], ARGV[1])
return state
