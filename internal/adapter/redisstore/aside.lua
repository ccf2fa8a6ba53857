-- Moves a state away, if it is still at a revision. It may be repeated.
-- KEYS: state, where to move it, which is a new name. ARGV: the revision, of 16 digits; why, when, and how
-- long to keep it, in seconds.
if redis.call('EXISTS', KEYS[2]) == 1 then return 'done' end
local revisions = redis.call('HGET', KEYS[1], 'revisions') or ''
if string.sub(revisions, 1, 16) ~= ARGV[1] then return 'conflict' end
-- A script that fails half-way is not undone: a Redis that takes no writes says so here.
redis.call('HSET', KEYS[1], 'why', ARGV[2], 'at', ARGV[3])
redis.call('RENAME', KEYS[1], KEYS[2])
redis.call('EXPIRE', KEYS[2], ARGV[4])
return 'done'
