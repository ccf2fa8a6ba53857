-- Returns the next block of query ids. A block number is at least the second that
-- it is leased in, counted from ARGV[1] in Unix time: so no block comes back after
-- a flush, or after a return to an old copy, as long as blocks are used up more
-- slowly than one in a second.
-- KEYS: lease.
local second = redis.call('TIME')[1] - ARGV[1]
local block = math.max((redis.call('GET', KEYS[1]) or 0) + 1, second)
redis.call('SET', KEYS[1], string.format('%.0f', block))
return block
