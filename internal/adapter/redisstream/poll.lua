-- Gives a member of a group entries: of one stream after the other, until there are enough
-- of them, or enough bytes. One that was deleted meanwhile is acknowledged.
-- KEYS: streams; with a token their leases, too, which are renewed.
-- ARGV: group, member, most entries, most bytes, how, lease token or '', how long a lease is and
-- a member may be silent in ms.
-- What is pending comes first, for a member that polls has nothing in hand: with leases all of
-- it, whoever it is pending for; without leases what is pending for the member. So it does no
-- harm that an answer is lost and the script repeated. If there is none, how says what comes:
--   silent: what is pending for members that are silent
--   new: what nobody was given yet
-- Returns the entries (index of the stream, id, fields) and, if there are none, for each stream
-- the id that the group was given last, or '' without the lease.
local group, member, room, bytes, how, token = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5], ARGV[6]
local streams = token == '' and #KEYS or #KEYS / 2
local given, last = {}, {}

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

local function read(i, after)
  while room > 0 and bytes > 0 do
    local got = redis.call('XREADGROUP', 'GROUP', group, member, 'COUNT', few(), 'STREAMS', KEYS[i], after)
    local entries = got and got[1][2] or {}
    if #entries == 0 then return end
    if after ~= '>' then
      after = entries[#entries][1]
      hear(i, entries)
    end
    give(i, entries)
  end
end

-- In the order of their ids, whoever they are pending for.
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

local ours = {}
for i = 1, streams do
  ours[i] = token == '' or redis.call('GET', KEYS[streams + i]) == token
  if ours[i] and token ~= '' then redis.call('PEXPIRE', KEYS[streams + i], ARGV[7]) end
end
for i = 1, streams do
  if ours[i] and token ~= '' then claim(i, 0) elseif ours[i] then read(i, '0') end
end
if #given == 0 then
  for i = 1, streams do
    if ours[i] and how == 'silent' then claim(i, ARGV[7]) elseif ours[i] then read(i, '>') end
  end
end
if #given == 0 then
  for i = 1, streams do last[i] = ours[i] and delivered(i) or '' end
end
return { given, last }
