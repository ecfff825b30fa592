-- The course of one client's run.
--
-- The core runs each client as a coroutine. Where a client needs the driver it yields an operation (OP) and is
-- resumed with the answer; yields happen in Lua only, so that compiled code and pcall stay as they are.

local host, OP, settings, prelude = ...
local globals_of, load_script, take_options = prelude.globals.globals_of, prelude.globals.load_script, prelude.globals.take_options
local yield = coroutine.yield
local raw_resume = coroutine.resume

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
   if type(body) ~= "function" then
      return
   end
   local done, result = xpcall(body, described, ...)
   if not done then
      fail(name, result)
   end
   return result
end

local function same(a, b)
   if type(a) ~= "table" or type(b) ~= "table" then
      return a == b
   end
   for key, value in pairs(a) do
      if not same(value, b[key]) then
         return false
      end
   end
   for key in pairs(b) do
      if a[key] == nil then
         return false
      end
   end
   return getmetatable(a) == nil and getmetatable(b) == nil
end

-- What a script declares is the same for each client: they share it.
local first_options
local function share_options(cmdline)
   if first_options and same(cmdline.options, first_options) then
      cmdline.options = first_options
   end
   first_options = cmdline.options
end

local function begin(tid, extend)
   local globals = globals_of(tid, extend)
   setfenv(0, globals)
   local done, trouble = xpcall(load_script, described, globals)
   if not done then
      fail("", trouble)
   end
   local cmdline = globals.sysbench.cmdline
   if cmdline.options == nil then
      take_options(globals)
   else
      share_options(cmdline)
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
      if type(main.event) ~= "function" and type(main.thread_run) ~= "function" then
         fail("", "cannot find the event() function in " .. settings.script)
      end
      host.initialized()
   else
      while not yield(OP, host.AWAIT_INIT) do end
   end
   local globals = begin(tid, extend)
   call(globals, "thread_init", tid)
   if type(globals.thread_run) == "function" then
      yield(OP, host.NEXT)
      call(globals, "thread_run", tid)
      yield(OP, host.LAST)
   else
      events(globals, tid)
   end
   call(globals, "thread_done", tid)
   yield(OP, host.DISCONNECT)
   if main and type(main.done) == "function" then
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
   return {
      options = options, commands = commands, has = has, files = prelude.globals.files(),
      needs_database = needs_database, legacy = cmdline.options == nil,
   }, true
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

return { reporter = reporter, describe = describe, client = client }
