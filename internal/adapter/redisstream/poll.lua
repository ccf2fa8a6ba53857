-- Gives a member of a group entries: of one stream after the other, until there are enough
-- of them, or enough bytes. One that was deleted meanwhile is acknowledged.
-- KEYS: streams; with a token their leases, too, which are renewed.
-- ARGV: group, member, most entries, most bytes, how, lease token or '', how long a lease is and
-- a member may be silent in ms; for each stream the entry behind which what is pending is read, or ''.
-- How says what comes:
--   pending: what is pending for the member, in the streams where it is read. With leases, what was pending
--     for other members is the member's, too, where it is read from the beginning ('0')
--   silent: what is pending for members that are silent
--   new: what no member was given yet
-- It may be repeated, if what is pending is read then.
-- Returns the entries (index of the stream, id, fields); for each stream behind which entry more may be pending, or ''
-- if nothing is, or 'gone' without the lease; and, if there are no entries, for each stream the id that
-- the group was given last.
local group, member, room, bytes, how, token = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5], ARGV[6]
local streams = token == '' and #KEYS or #KEYS / 2
local given, behind, last = {}, {}, {}

local function give(i, entries)
  local gone = {}
  for _, entry in ipairs(entries) do
    if entry[2] then
      for _, text in ipairs(entry[2]) do bytes = bytes - #text end
      given[#given + 1] = { i, entry[1], entry[2] }
      room = room - 1
    else
      gone[#gone + 1] = entry[1]
    end
  end
  if #gone > 0 then redis.call('XACK', KEYS[i], group, unpack(gone)) end
end

-- A few at a time, for they may be large.
local function few() return math.min(room, 64) end

-- The member was not silent about entries that it is given again.
local function hear(i, entries)
  local claim = { 'XCLAIM', KEYS[i], group, member, 0 }
  for _, entry in ipairs(entries) do claim[#claim + 1] = entry[1] end
  claim[#claim + 1] = 'JUSTID'
  redis.call(unpack(claim))
end

-- Returns the entry behind which there may be more, or ''.
local function read(i, after)
  while room > 0 and bytes > 0 do
    local got = redis.call('XREADGROUP', 'GROUP', group, member, 'COUNT', few(), 'STREAMS', KEYS[i], after)
    local entries = got and got[1][2] or {}
    if #entries == 0 then return '' end
    if after ~= '>' then
      after = entries[#entries][1]
      hear(i, entries)
    end
    give(i, entries)
  end
  return after
end

-- All that is pending becomes the member's.
local function own(i)
  local cursor = '0-0'
  repeat
    cursor = redis.call('XAUTOCLAIM', KEYS[i], group, member, 0, cursor, 'COUNT', 1000, 'JUSTID')[1]
  until cursor == '0-0'
end

-- In the order of their ids, whichever member they are pending for.
local function claim(i, idle)
  local cursor = '0-0'
  while room > 0 and bytes > 0 do
    local got = redis.call('XAUTOCLAIM', KEYS[i], group, member, idle, cursor, 'COUNT', few())
    cursor = got[1]
    give(i, got[2])
    if cursor == '0-0' then return end
  end
end

local function delivered(i)
  for _, info in ipairs(redis.call('XINFO', 'GROUPS', KEYS[i])) do
    local about = {}
    for f = 1, #info, 2 do about[info[f]] = info[f + 1] end
    if about.name == group then return about['last-delivered-id'] end
  end
  return '0-0'
end

for i = 1, streams do
  behind[i] = ARGV[7 + i]
  if token ~= '' then
    if redis.call('GET', KEYS[streams + i]) == token then
      redis.call('PEXPIRE', KEYS[streams + i], ARGV[7])
    else
      behind[i] = 'gone'
    end
  end
end
for i = 1, streams do
  if behind[i] == 'gone' then -- others read it
  elseif how == 'silent' then
    claim(i, ARGV[7])
  elseif how == 'new' then
    read(i, '>')
  elseif behind[i] ~= '' then
    if token ~= '' and behind[i] == '0' then own(i) end
    behind[i] = read(i, behind[i])
  end
end
if #given == 0 then
  for i = 1, streams do last[i] = behind[i] == 'gone' and '' or delivered(i) end
end
return { given, behind, last }
