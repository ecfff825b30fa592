-- The world of one client: globals of its own over shared functions, and the course of its run.
--
-- The core runs each client as a coroutine. Where a client needs the driver it yields an operation (OP) and is
-- resumed with the answer; yields happen in Lua only, so that compiled code and pcall stay as they are.

local host, OP, settings = ...
local yield = coroutine.yield
local raw_resume = coroutine.resume

local standard = {}
for name, value in pairs(_G) do
   standard[name] = value
end

-- Chunks by path, compiled once for all clients: they share code, and what the compiler made of it.
local chunks, busy = {}, {}

-- Texts that stand in for files, and which files were read.
local texts, opened = settings.files, {}

local function compiled(path, source)
   local known = chunks[path]
   if known and not busy[known] then
      return known
   end
   local chunk, trouble
   if not source then
      opened[path] = true
      source = texts[path]
   end
   if source then
      chunk, trouble = loadstring(source, "@" .. path)
   else
      chunk, trouble = loadfile(path)
   end
   if not chunk then
      error(trouble, 0)
   end
   chunks[path] = chunk
   return chunk
end

-- Run a chunk with these globals. One that is suspended in it keeps the chunk to itself.
local function run_chunk(chunk, globals, ...)
   busy[chunk] = true
   setfenv(chunk, globals)
   local result = chunk(...)
   busy[chunk] = nil
   return result
end

local function exists(path)
   if texts[path] then
      return true
   end
   local file = io.open(path, "r")
   if not file then
      return false
   end
   -- A folder can be opened, too, but not read.
   local readable = file:read(0) ~= nil or file:seek("end") == 0
   file:close()
   return readable
end

local function search(name, templates)
   local tried = {}
   local file_name = name:gsub("%.", "/")
   local function placed(template)
      return (template:gsub("%?", (file_name:gsub("%%", "%%%%"))))
   end
   -- What stands in for files comes first: other files of this name may be here.
   for template in templates:gmatch("[^;]+") do
      if texts[placed(template)] then
         return placed(template)
      end
   end
   for template in templates:gmatch("[^;]+") do
      local path = placed(template)
      if exists(path) then
         return path
      end
      tried[#tried + 1] = "\n\tno file '" .. path .. "'"
   end
   return nil, table.concat(tried)
end

local function requirer(globals, package)
   return function(name)
      local loaded = package.loaded
      if loaded[name] ~= nil then
         return loaded[name]
      end
      local shared = standard.package.loaded[name] or standard.package.preload[name]
      if shared then
         loaded[name] = standard.require(name)
         return loaded[name]
      end
      local result
      if package.preload[name] then
         result = package.preload[name](name)
      else
         local path, tried = search(name, package.path)
         if path then
            result = run_chunk(compiled(path), globals, name)
         else
            local native, more = search(name, package.cpath)
            if not native then
               error("module '" .. name .. "' not found:\n\tno field package.preload['" .. name .. "']" .. tried .. more, 2)
            end
            result = standard.require(name)
         end
      end
      if result ~= nil then
         loaded[name] = result
      elseif loaded[name] == nil then
         loaded[name] = true
      end
      return loaded[name]
   end
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

local shared_os = setmetatable({
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
local shared_math = random_library()

-- What loads code gives it the globals of the client that asks.
local function loaders(globals)
   local function own(chunk, trouble)
      if chunk then
         setfenv(chunk, globals)
      end
      return chunk, trouble
   end
   function globals.loadstring(...)
      return own(loadstring(...))
   end
   function globals.load(text, name, mode, environment)
      if environment ~= nil then
         return load(text, name, mode, environment)
      end
      return own(load(text, name, mode))
   end
   function globals.loadfile(path, ...)
      if path ~= nil then
         opened[path] = true
      end
      if texts[path] then
         return own(loadstring(texts[path], "@" .. path))
      end
      return own(loadfile(path, ...))
   end
   function globals.dofile(path)
      return run_chunk(compiled(path), globals)
   end
end

-- The globals of a client, with `sysbench` as its script sees it.
local function globals_of(tid, extend)
   local globals = {}
   for name, value in pairs(standard) do
      globals[name] = value
   end
   globals._G = globals
   globals.print, globals.io, globals.os, globals.math = say, shared_io, shared_os, shared_math
   globals.coroutine, globals.ffi = shared_coroutine, shared_ffi
   local package = {
      loaded = { _G = globals, io = shared_io, os = shared_os, math = shared_math, coroutine = shared_coroutine, ffi = shared_ffi },
      preload = {},
      path = settings.path,
      cpath = settings.cpath,
      loadlib = standard.package.loadlib,
      config = standard.package.config,
   }
   package.loaded.package = package
   globals.package = package
   globals.require = requirer(globals, package)
   loaders(globals)
   extend(globals, tid)
   return globals
end

-- Load the script into these globals, as a file, else as a module.
local function load_script(globals)
   if settings.source then
      run_chunk(compiled(settings.script, settings.source), globals)
   elseif exists(settings.script) then
      run_chunk(compiled(settings.script), globals)
   else
      local path = search(settings.script, settings.path)
      if not path then
         error("no script '" .. settings.script .. "': neither a file of this name nor a module", 0)
      end
      globals.require(settings.script)
   end
end

-- A function of the script has failed: what, why, and where.
local function described(trouble)
   if type(trouble) == "table" and trouble.errcode ~= nil then
      return trouble
   end
   local text = trouble
   if type(text) ~= "string" and type(text) ~= "number" then
      local meta = getmetatable(trouble)
      if type(trouble) == "table" and trouble.sql_errmsg then
         text = trouble.sql_errmsg
      elseif type(meta) == "table" and meta.__tostring then
         text = tostring(trouble)
      else
         text = "(not a string)"
      end
   end
   return { message = tostring(text), traceback = debug.traceback("", 2):gsub("^%s+", "") }
end

local function fail(what, trouble)
   local message, traceback
   if type(trouble) == "table" then
      message = trouble.message or (trouble.sql_errmsg and "SQL error: " .. tostring(trouble.sql_errmsg)) or "(not a string)"
      traceback = trouble.traceback or ""
   else
      message, traceback = tostring(trouble), ""
   end
   while true do
      yield(OP, host.FAIL, what, message, traceback)
   end
end

-- Call a function of the script by name, if it has one.
local function call(globals, name, ...)
   local body = globals[name]
   if body == nil then
      return
   end
   local done, result = xpcall(body, described, ...)
   if not done then
      fail(name, result)
   end
   return result
end

local function begin(tid, extend)
   local globals = globals_of(tid, extend)
   setfenv(0, globals)
   local done, trouble = xpcall(load_script, described, globals)
   if not done then
      fail("", trouble)
   end
   -- As in the old interface: values of options are globals, unless the script names its options.
   if globals.sysbench.cmdline.options == nil then
      for name, value in pairs(settings.options) do
         if type(globals[name]) ~= "function" then
            globals[name] = copied(value)
         end
      end
   end
   return globals
end

-- Events one after the other, as often as the driver wants.
local function events(globals, tid)
   local sysbench = globals.sysbench
   while yield(OP, host.NEXT) do
      local done, result
      repeat
         done, result = xpcall(globals.event, described, tid)
         if not done then
            if result.errcode ~= sysbench.error.RESTART_EVENT then
               fail("thread_run", result)
            end
            yield(OP, host.RESTART)
            if sysbench.hooks.before_restart_event then
               sysbench.hooks.before_restart_event(result)
            end
         end
      until done
      if result then
         yield(OP, host.LEAVE)
         return
      end
      if settings.percentile ~= 0 then
         host.fraction() -- sysbench draws where in its histogram it counts the event
      end
   end
end

local function run(tid, extend, main)
   if main then
      call(main, "init")
      host.initialized()
   else
      while not yield(OP, host.AWAIT_INIT) do end
   end
   local globals = begin(tid, extend)
   if type(globals.event) ~= "function" and type(globals.thread_run) ~= "function" then
      fail("", "cannot find the event() function in " .. settings.script)
   end
   call(globals, "thread_init", tid)
   if globals.thread_run then
      yield(OP, host.NEXT)
      call(globals, "thread_run", tid)
      yield(OP, host.LAST)
   else
      events(globals, tid)
   end
   call(globals, "thread_done", tid)
   yield(OP, host.DISCONNECT)
   if main and main.done then
      while not yield(OP, host.AWAIT_DONE) do end
      call(main, "done")
   end
end

-- Any other command: a function, once.
local function command(tid, extend)
   yield(OP, host.NEXT)
   local globals = begin(tid, extend)
   local name = settings.command
   if name == "" then
      yield(OP, host.LAST)
      return
   end
   local custom = (globals.sysbench.cmdline.commands or {})[name]
   local body = custom and custom[1] or globals[name]
   if type(body) ~= "function" then
      fail("", "the script has no command '" .. name .. "'")
   end
   local done, result = xpcall(body, described)
   if not done then
      fail(name, result)
   end
   if result == false and custom then
      fail(name, "the command returned false")
   end
   yield(OP, host.LAST)
end

local function client(tid, extend)
   if settings.command ~= "run" then
      return command(tid, extend)
   end
   local main = tid == 0 and begin(tid, extend) or nil
   return run(tid, extend, main)
end

-- What the script declares; nil and what is wrong where it cannot be loaded.
local FUNCTIONS = { "event", "init", "done", "thread_init", "thread_run", "thread_done", "prepare", "cleanup", "help" }
local HOOKS = { "report_intermediate", "report_cumulative", "sql_error_ignorable", "before_restart_event" }

local function describe(extend, api)
   local globals = globals_of(0, extend)
   local options
   -- A script that needs the database while it is loaded is described by what it has declared up to there.
   local loading = coroutine.create(function()
      return xpcall(load_script, described, globals)
   end)
   local _, done, trouble = raw_resume(loading)
   local needs_database = done == OP
   if needs_database then
      done = true
   end
   if done then
      done, trouble = xpcall(function()
         options = api.declared(globals.sysbench.cmdline.options)
      end, described)
   end
   if not done then
      return nil, type(trouble) == "table" and trouble.message and trouble or { message = "the script has thrown an error of its own", traceback = "" }
   end
   local has, commands = {}, {}
   for _, name in ipairs(FUNCTIONS) do
      if type(globals[name]) == "function" then
         has[#has + 1] = name
         if name == "prepare" or name == "cleanup" or name == "help" then
            commands[name] = { parallel = false }
         end
      end
   end
   for _, name in ipairs(HOOKS) do
      if type(globals.sysbench.hooks[name]) == "function" then
         has[#has + 1] = name
      end
   end
   local cmdline = globals.sysbench.cmdline
   for name in pairs(type(cmdline.commands) == "table" and cmdline.commands or {}) do
      if cmdline.command_defined(name) then
         commands[name] = { parallel = cmdline.command_parallel(name) }
      end
   end
   local files = {}
   for path in pairs(opened) do
      files[#files + 1] = tostring(path)
   end
   table.sort(files)
   return { options = options, commands = commands, has = has, files = files, needs_database = needs_database, legacy = cmdline.options == nil }, true
end

-- What calls the script's hooks for reports, by name, in a state that has loaded the script for them alone; each
-- call returns true, or nil and what is wrong.
local function reporter(extend)
   local globals = globals_of(0, extend)
   local function done(body, ...)
      local thread = coroutine.create(function(...)
         return xpcall(body, described, ...)
      end)
      local _, passed, trouble = raw_resume(thread, ...)
      if passed == true then
         return true
      elseif passed == OP then
         return nil, { message = "a hook for reports has no database", traceback = "" }
      end
      return nil, type(trouble) == "table" and trouble.message and trouble or { message = "(not a string)", traceback = "" }
   end
   local loaded, trouble = done(function() load_script(globals) end)
   if not loaded and trouble.message ~= "a hook for reports has no database" then
      return nil, trouble
   end
   return function(name, figures)
      return done(globals.sysbench.hooks[name], figures)
   end, true
end

return { reporter = reporter, describe = describe, client = client, globals_of = globals_of, load_script = load_script, copied = copied, described = described }
