-- The table `sysbench` as scripts of sysbench 1.0.20 know it.

local host, _, settings, prelude = ...
local copied, say, lazily = prelude.standard.copied, prelude.standard.say, prelude.standard.lazily
local sql, Driver, checked_driver = prelude.sql.sql, prelude.sql.Driver, prelude.sql.checked_driver

-- Random numbers

local function uint64()
   local high, low = host.bits()
   return 0ULL + high * 4294967296ULL + low
end

local rand = {
   default = host.default, uniform = host.uniform, gaussian = host.gaussian, special = host.special,
   pareto = host.pareto, zipfian = host.zipfian, unique = host.unique, string = host.string,
   uniform_double = host.fraction, uniform_uint64 = uint64,
}
function rand.varstring(low, high)
   return host.string(("@"):rep(host.uniform(low, high)))
end

-- The command line

local ARGUMENTS = { "NULL", "BOOL", "INT", "SIZE", "DOUBLE", "STRING", "LIST", "FILE", "MAX" }
local cmdline = { PARALLEL_COMMAND = true, argv = {}, script_path = settings.script }
cmdline.command = settings.command ~= "" and settings.command or nil
for i, word in ipairs(settings.argv) do
   cmdline.argv[i - 1] = word
end
for i, name in ipairs(ARGUMENTS) do
   cmdline["ARG_" .. name] = i - 1
end

-- How a help text shows what an option takes.
local SHOWN = {
   bool = "[=on|off]", int = "=N", size = "=SIZE", double = "=N", string = "=STRING", list = "=[LIST,...]", file = "=FILENAME",
}
local KIND_OF = { boolean = cmdline.ARG_BOOL, string = cmdline.ARG_STRING, number = cmdline.ARG_DOUBLE, table = cmdline.ARG_LIST }

-- The options that a script declares, sorted by name: what the command line has to know.
local function declared(options)
   if options == nil then
      return {}
   end
   assert(type(options) == "table", "wrong type for sysbench.cmdline.options: " .. type(options))
   local names = {}
   for name in pairs(options) do
      assert(type(name) == "string" and type(options[name]) == "table", "wrong table structure in sysbench.cmdline.options")
      names[#names + 1] = name
   end
   table.sort(names)
   local found = {}
   for i, name in ipairs(names) do
      local option = options[name]
      local description, default, kind = option[1], option[2], option[3]
      assert(description ~= nil, "nil description for option " .. name)
      if kind == nil then
         kind = default == nil and cmdline.ARG_STRING or KIND_OF[type(default)]
      end
      assert(type(kind) == "number" and ARGUMENTS[kind + 1], "cannot determine type for option " .. name)
      local text = default
      if type(default) == "table" then
         assert(kind == cmdline.ARG_LIST, "wrong type for list option " .. name)
         text = table.concat(default, ",")
      elseif type(default) == "boolean" then
         text = default and "on" or "off"
      elseif default ~= nil then
         text = tostring(default)
      end
      found[i] = { name = name, description = tostring(description), default = text, type = ARGUMENTS[kind + 1]:lower() }
   end
   return found
end

-- Functions of `sysbench.cmdline`, which look at what this script has put there.
local methods = {}

function methods.read_cmdline_options(own)
   return function()
      declared(own.options)
      return true
   end
end

function methods.command_defined(own)
   return function(name)
      return type(own.commands) == "table" and own.commands[name] ~= nil and own.commands[name][1] ~= nil
   end
end

function methods.command_parallel(own)
   return function(name)
      return own.command_defined(name) and own.commands[name][2] == cmdline.PARALLEL_COMMAND
   end
end

function methods.call_command(own)
   return function(name)
      if not own.command_defined(name) then
         return false
      end
      local result = own.commands[name][1]()
      return result == nil or (result and true or false)
   end
end

function methods.print_test_options(own)
   return function()
      local heads, width = {}, 0
      local options = declared(own.options)
      for i, option in ipairs(options) do
         heads[i] = "--" .. option.name .. SHOWN[option.type]
         width = math.max(width, #heads[i])
      end
      for i, option in ipairs(options) do
         local default = option.default and " [" .. option.default .. "]" or ""
         say("  " .. heads[i] .. string.rep(" ", width - #heads[i] + 1) .. option.description .. default)
      end
      say()
   end
end

local function found_in(shared, own)
   local function find(self, name)
      local value = shared[name]
      if value == nil and own[name] then
         value = own[name](self)
      end
      return value
   end
   local function fill(self)
      for _, names in ipairs({ shared, own }) do
         for name in pairs(names) do
            if rawget(self, name) == nil then
               rawset(self, name, find(self, name))
            end
         end
      end
   end
   return lazily(find, fill)
end

local CMDLINE = found_in(cmdline, methods)

-- All of it, for one client.
local shared = {
   version = "1.0.20",
   version_string = "sysbench 1.0.20",
   error = { NONE = 0, RESTART_EVENT = prelude.sql.RESTART_EVENT },
   rand = rand,
}

-- A client's connections, whichever of its globals they are in: those of init() and done(), or of its events.
local links_of = {}

-- Parts of `sysbench` that belong to a client, by name.
local parts = {}

function parts.cmdline()
   return setmetatable({}, CMDLINE)
end

function parts.hooks()
   return {}
end

local SQL = { __index = sql }
function parts.sql(sysbench)
   local driver = setmetatable({ hooks = sysbench.hooks, links = links_of[sysbench.tid] }, Driver)
   return setmetatable({
      driver = function(name)
         checked_driver(name)
         return driver
      end,
   }, SQL)
end

local OPTIONS = lazily(function(_, name)
   return copied(settings.options[name])
end, function(opt)
   for name, value in pairs(settings.options) do
      if rawget(opt, name) == nil then
         opt[name] = copied(value)
      end
   end
end)

function parts.opt()
   return setmetatable({}, OPTIONS)
end

local SYSBENCH = found_in(shared, parts)

local function extend(globals, tid)
   links_of[tid] = links_of[tid] or { current = 0, made = 0, tid = tid }
   globals.sysbench = setmetatable({ tid = tid }, SYSBENCH)
end

return { extend = extend, declared = declared, shared = shared, parts = parts }
