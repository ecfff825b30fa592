-- What all clients of a thread share of the standard library, and tables that are filled as they are used.

local host, OP = ...
local yield = coroutine.yield
local raw_resume = coroutine.resume

-- The library as it is, and what scripts have of it by the same names.
local standard, common = {}, {}
for name, value in pairs(_G) do
   standard[name], common[name] = value, value
end

local function copied(value)
   if type(value) ~= "table" then
      return value
   end
   local copy = {}
   for key, inner in pairs(value) do
      copy[key] = copied(inner)
   end
   return copy
end

-- What is written goes to the user by way of the core, in order.
local function say(...)
   local texts = { ... }
   for i = 1, select("#", ...) do
      texts[i] = tostring(texts[i])
   end
   host.write(table.concat(texts, "\t") .. "\n")
end

local shared_io = {}
for name, value in pairs(io) do
   shared_io[name] = value
end
local output = {}
function output:write(...)
   for i = 1, select("#", ...) do
      local part = select(i, ...)
      local kind = type(part)
      if kind ~= "string" and kind ~= "number" then
         error("bad argument #" .. i .. " to 'write' (string expected, got " .. kind .. ")", 2)
      end
      host.write(tostring(part))
   end
   return self
end
function output:flush() return true end
function output:setvbuf() return true end
function output:close() return nil, "cannot close standard file" end
shared_io.stdout = setmetatable(output, { __index = output, __tostring = function() return "file (stdout)" end })
function shared_io.write(...)
   local chosen = shared_io.chosen
   if chosen then
      return chosen:write(...)
   end
   return output:write(...)
end
function shared_io.output(file)
   if type(file) == "string" then
      shared_io.chosen = assert(io.open(file, "w"))
   elseif file == output then
      shared_io.chosen = nil
   elseif file ~= nil then
      shared_io.chosen = file
   end
   return shared_io.chosen or output
end

-- Sleep without holding up the thread's other clients; false where the script is in a function of C.
local function slept(seconds)
   if not (seconds and seconds >= 0 and coroutine.isyieldable()) then
      return false
   end
   yield(OP, host.SLEEP, seconds)
   return true
end

local shared_os = setmetatable({
   execute = function(...)
      local command = ...
      local seconds = type(command) == "string" and tonumber(command:match("^%s*sleep%s+([%d.]+)%s*$"))
      if seconds and slept(seconds) then
         return 0
      end
      return os.execute(...)
   end,
   exit = function(code)
      error("os.exit(" .. tostring(code == nil and "" or code) .. ") would end all clients: use error() or return a value from event()", 2)
   end,
}, { __index = os })

-- FFI: all clients of a thread share what is declared, so a script's declarations count once. Of sysbench's own
-- functions there is the one by which scripts count.
local ffi = standard.require("ffi")
ffi.cdef([[typedef enum { SB_CNT_OTHER, SB_CNT_READ, SB_CNT_WRITE, SB_CNT_ERROR, SB_CNT_RECONNECT, SB_CNT_MAX } sb_counter_type;]])
local declared = {}
local shared_ffi = setmetatable({
   C = setmetatable({
      sb_counter_inc = function(_, kind) host.count(tonumber(ffi.cast("int", kind))) end,
      sleep = function(seconds) return slept(tonumber(seconds)) and 0 or ffi.C.sleep(seconds) end,
      usleep = function(us) return slept(tonumber(us) / 1e6) and 0 or ffi.C.usleep(us) end,
      poll = function(files, count, ms)
         return files == nil and slept(tonumber(ms) / 1e3) and 0 or ffi.C.poll(files, count, ms)
      end,
   }, { __index = ffi.C, __newindex = function(_, name, value) ffi.C[name] = value end }),
   cdef = function(text, ...)
      if select("#", ...) > 0 then
         ffi.cdef(text, ...)
      elseif not declared[text] then
         ffi.cdef(text)
         declared[text] = true
      end
   end,
   metatype = function(kind, meta)
      local done, type_or_trouble = pcall(ffi.metatype, kind, meta)
      if done then
         return type_or_trouble
      elseif tostring(type_or_trouble):find("protected metatable", 1, true) then
         return ffi.typeof(kind) -- by the client before
      end
      error(type_or_trouble, 2)
   end,
}, { __index = ffi })

-- A script's own coroutines pass on what is meant for the driver.
local function passed_on(co, alive, ...)
   while alive and (...) == OP do
      local function again(...)
         return raw_resume(co, ...)
      end
      -- The answer goes to the coroutine that asked.
      return passed_on(co, again(yield(...)))
   end
   return alive, ...
end

local function resume(co, ...)
   return passed_on(co, raw_resume(co, ...))
end

local function wrapped(alive, ...)
   if not alive then
      error((...), 0)
   end
   return ...
end

local shared_coroutine = setmetatable({
   resume = resume,
   wrap = function(body)
      local co = coroutine.create(body)
      return function(...)
         return wrapped(resume(co, ...))
      end
   end,
}, { __index = coroutine })

-- The random numbers of the standard library: a stream for each client.
local function random_library()
   local function random(low, high)
      local fraction = host.fraction()
      if low == nil then
         return fraction
      end
      if high == nil then
         low, high = 1, low
      end
      if low > high then
         error("bad argument to 'random' (interval is empty)", 2)
      end
      return math.floor(low + fraction * (high - low + 1))
   end
   return setmetatable({ random = random, randomseed = function() end }, { __index = math })
end

common.print, common.io, common.os, common.math = say, shared_io, shared_os, random_library()
common.coroutine, common.ffi = shared_coroutine, shared_ffi

-- By metatable: what fills a table that is filled as it is used.
local fillers = {}

local function filled(value)
   local fill = fillers[getmetatable(value)]
   if fill then
      fill(value)
   end
end

-- A table whose values come one by one from `find(table, name)`, and all at once from `fill(table)`.
local function lazily(find, fill)
   local kind = {}
   function kind.__index(self, name)
      local value = find(self, name)
      if value ~= nil then
         rawset(self, name, value)
      end
      return value
   end
   fillers[kind] = function(self)
      fill(self) -- what is made may need what is made
      setmetatable(self, nil)
   end
   return kind
end

-- Whoever goes through such a table, or does something to it as a table, has all of it.
function common.pairs(value)
   filled(value)
   return pairs(value)
end

function common.next(value, key)
   filled(value)
   return next(value, key)
end

function common.rawget(value, key)
   filled(value)
   return rawget(value, key)
end

function common.getmetatable(value)
   filled(value)
   return getmetatable(value)
end

function common.setmetatable(value, meta)
   filled(value)
   return setmetatable(value, meta)
end

return {
   standard = standard, common = common, copied = copied, say = say, lazily = lazily, slept = slept,
}
