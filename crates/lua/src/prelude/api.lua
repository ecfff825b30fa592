-- The table `sysbench` as scripts of sysbench 1.0.20 know it.

local host, OP, settings, world = ...
local ffi = require("ffi")
local yield = coroutine.yield
local floor, ceil = math.floor, math.ceil

local TYPES = {
   NONE = 0, TINYINT = 1, SMALLINT = 2, INT = 3, BIGINT = 4, FLOAT = 5, DOUBLE = 6,
   TIME = 7, DATE = 8, DATETIME = 9, TIMESTAMP = 10, CHAR = 11, VARCHAR = 12,
}
local ERRORS = { NONE = 0, IGNORABLE = 1, FATAL = 2 }
local RESTART_EVENT = 1
local sql = { type = TYPES, error = ERRORS }

-- Where a statement has no result: what is equal to nil, but has the methods of a result, as a null pointer has.
ffi.cdef("typedef struct { int unused; } loadstone_no_result;")
local NO_RESULT = ffi.cast(ffi.typeof("loadstone_no_result *"), nil)

local function not_freed()
   host.alert("attempt to free an invalid result set")
   error("db_free_results() failed", 0)
end

ffi.metatype("loadstone_no_result", {
   __index = {
      free = not_freed,
      fetch_row = function()
         host.alert("attempt to fetch row from an invalid result set")
         return nil
      end,
   },
   __tostring = function() return "<sql_result>" end,
})

-- Results: their rows stay in the core until the client's next statement; of one that the script goes through, the
-- rest is kept here.

local Result = {}
Result.__index = Result
Result.__tostring = function() return "<sql_result>" end

function Result:fetch_row()
   if self.kept then
      self.at = self.at + 1
      return self.kept[self.at]
   end
   if self.number ~= host.result_number() then
      error("this result is gone: the client has run another statement, or free() was called", 2)
   end
   local row = host.fetch_row()
   self.links.read = row and self or nil
   return row
end

-- Another statement is about to begin: keep the rows that are left of the result that is being read.
local function keep_rows(links)
   local result, rows = links.read, {}
   links.read = nil
   if result.number == host.result_number() then
      for row in host.fetch_row do
         rows[#rows + 1] = row
      end
      result.kept, result.at = rows, 0
   end
end

function Result:free()
   if self.kept then
      self.kept, self.number = nil, -1
      return true
   end
   if self.number ~= host.result_number() then
      return not_freed()
   end
   self.number = -1
   return true
end

-- Connections

local Connection = {}
Connection.__index = Connection
Connection.__tostring = function() return "<sql_connection>" end

-- A client's connections have numbers; one of them is in use, others are put aside.
local function switch(links, number)
   links.current = number
   yield(OP, host.SWITCH, number)
end

-- By pcall() with the method itself, the place is that of the call of pcall().
local function opened(self)
   if not self.is_open then
      host.alert("attempt to use an already closed connection")
      self.error = ERRORS.FATAL
      error("SQL API error", 4)
   end
   local links = self.links
   if links.read then
      keep_rows(links)
   end
   if links.current ~= self.number then
      switch(links, self.number)
   end
end

-- What sysbench says of a statement that fails, before any hook is asked.
local function complain(self, query, prepared, report)
   if settings.driver == "mysql" and prepared == "prepare" then
      host.fatal("mysql_stmt_prepare() failed")
      host.fatal(string.format('MySQL error: %d "%s"', self.sql_errno, self.sql_errmsg))
   elseif settings.driver == "mysql" then
      local call = prepared and "mysql_stmt_execute()" or "mysql_drv_query()"
      host.fatal(string.format("%s returned error %d (%s) for query '%s'", call, self.sql_errno, self.sql_errmsg, query))
   elseif prepared == "prepare" then
      -- libpq ends what it says by an end of line of its own.
      host.fatal("PQprepare() failed: " .. report .. "\n\n")
   else
      host.fatal((prepared and "PQexecPrepared() failed: 7 " or "PQexec() failed: 7 ") .. self.sql_errmsg)
      if not prepared then
         host.fatal("failed query was: " .. query)
      end
   end
end

-- The answer to a statement: a result with rows, nil without, an error thrown where it failed.
local function answered(self, query, prepared, status, a, b, c, d, report)
   if status == 1 then
      return setmetatable({ nrows = a, nfields = b, number = c, links = self.links }, Result)
   end
   if status == 0 then
      self.error = ERRORS.NONE
      return nil
   end
   -- 2: a failure, a: ignorable or fatal
   self.error, self.sql_errno, self.sql_state, self.sql_errmsg = a, b, c, d
   if a == ERRORS.FATAL then
      complain(self, query, prepared, report)
   elseif settings.driver == "pgsql" then
      yield(OP, host.ROLLBACK)
   end
   return nil
end

-- In descriptions of errors, a connection is what scripts know it as: no table, but with all that it can do.
local handled = {}
ffi.cdef("typedef struct { int number; } loadstone_connection;")
local handle_of = ffi.metatype("loadstone_connection", {
   __index = function(handle, key) return handled[handle.number][key] end,
   __newindex = function(handle, key, value) handled[handle.number][key] = value end,
   __tostring = Connection.__tostring,
})

local function handle(self)
   if not self.handle then
      handled[#handled + 1] = self
      self.handle = handle_of(#handled)
   end
   return self.handle
end

-- A statement has failed: an error for the script, or for the course of events where it may be ignored.
local function raise(self, query, level)
   if self.error == ERRORS.NONE then
      return
   end
   if self.sql_state == nil or self.sql_errmsg == nil then
      error("SQL API error", level + 2)
   end
   local described = {
      connection = handle(self),
      query = query,
      sql_errno = self.sql_errno,
      sql_state = self.sql_state,
      sql_errmsg = self.sql_errmsg,
   }
   local hook = self.hooks.sql_error_ignorable
   if self.error == ERRORS.IGNORABLE or (type(hook) == "function" and hook(described)) then
      described.errcode = RESTART_EVENT
      error(described)
   end
   error(string.format("SQL error, errno = %d, state = '%s': %s",
      self.sql_errno, self.sql_state, self.sql_errmsg), level + 1)
end

function Connection:check_error(result, query)
   if result == nil then
      raise(self, query, 2)
   end
   return result
end

function Connection:query(query)
   opened(self)
   local result = answered(self, query, false, yield(OP, host.QUERY, query))
   if result == nil then
      if self.error ~= 0 then
         raise(self, query, 2)
      end
      return NO_RESULT
   end
   return result
end

function Connection:query_row(query)
   opened(self)
   local result = answered(self, query, false, yield(OP, host.QUERY, query))
   if result == nil then
      raise(self, query, 2)
      return nil
   end
   if result.nrows == 0 then
      return nil
   end
   return unpack(host.fetch_row(), 1, result.nfields)
end

function Connection:bulk_insert_init(query)
   opened(self)
   if not host.bulk_begin(query) then
      error("the statement is longer than the 512 KB of one insert", 2)
   end
   return true
end

-- `has_more`: rows follow, which can be made while the server works.
local function flush(self, has_more)
   if host.bulk_is_empty() then
      return
   end
   answered(self, "<bulk insert>", false, yield(OP, host.BULK, has_more))
   if self.error ~= ERRORS.NONE then
      -- Its rows are lost, so that the event could not begin again.
      host.bulk_end()
      error("bulk insert failed: " .. self.sql_errmsg, 3)
   end
end

function Connection:bulk_insert_next(values)
   opened(self)
   local state = host.bulk_add(values)
   if state == false then
      flush(self, true)
      state = host.bulk_add(values)
   end
   if state == nil then
      host.alert("attempt to call bulk_insert_next() before bulk_insert_init()")
      error("db_bulk_insert_next() failed", 2)
   elseif not state then
      error("one row is longer than the 512 KB of one insert", 2)
   end
   return true
end

function Connection:bulk_insert_done()
   opened(self)
   flush(self, false)
   host.bulk_end()
   return true
end

function Connection:disconnect()
   if self.is_open then
      opened(self)
      self.is_open = false
      yield(OP, host.DISCONNECT)
   else
      host.alert("attempt to close an already closed connection")
   end
   return true
end

function Connection:reconnect()
   if settings.driver == "pgsql" then
      -- As in sysbench, whose driver cannot.
      host.alert("reconnect is not supported by the current driver")
      return true
   end
   opened(self)
   yield(OP, host.RECONNECT)
   self.epoch = self.epoch + 1
   return true
end

-- Prepared statements

local Parameter = {}
Parameter.__index = Parameter
Parameter.__tostring = function() return "<sql_param>" end

local KINDS = {
   [TYPES.TINYINT] = "whole", [TYPES.SMALLINT] = "whole", [TYPES.INT] = "whole", [TYPES.BIGINT] = "whole",
   [TYPES.FLOAT] = "fraction", [TYPES.DOUBLE] = "fraction",
   [TYPES.CHAR] = "text", [TYPES.VARCHAR] = "text",
}

function Parameter:set(value)
   local kind = self.kind
   if value == nil then
      self.value = nil
   elseif kind == "whole" then
      if type(value) == "number" then
         self.value = value < 0 and ceil(value) or floor(value)
      else
         -- 64-bit numbers of C keep all their digits.
         local whole = type(value) == "cdata" and value or tonumber(value) or error("a number was expected", 2)
         self.value = tostring(ffi.cast("int64_t", whole)):match("%-?%d+")
      end
   elseif kind == "fraction" then
      self.value = tonumber(value) or error("a number was expected", 2)
   else
      local text = tostring(value)
      self.value = #text > self.max_len and text:sub(1, self.max_len) or text
   end
end

function Parameter:set_rand_str(format)
   if self.kind ~= "text" then
      error("Unsupported argument type: " .. tostring(self.type), 2)
   end
   local text = host.string(format)
   self.value = #text > self.max_len and text:sub(1, self.max_len) or text
end

local Statement = {}
Statement.__index = Statement
Statement.__tostring = function() return "<sql_statement>" end

function Statement:bind_create(kind, max_len)
   local name = KINDS[kind]
   if not name then
      error("Unsupported argument type: " .. tostring(kind), 2)
   end
   if name == "text" and type(max_len) ~= "number" then
      error("bind_create() of a text needs its greatest length", 2)
   end
   return setmetatable({ type = kind, kind = name, max_len = max_len or 8 }, Parameter)
end

function Statement:bind_param(...)
   local count = select("#", ...)
   if count < 1 then
      return nil
   end
   local parameters = { ... }
   for i = 1, count do
      if getmetatable(parameters[i]) ~= Parameter then
         error("bad argument #" .. i .. " to 'bind_param' (what bind_create() returned was expected)", 2)
      end
   end
   self.parameters, self.count = parameters, count
   return 0
end

local PLACES = {
   [0] = function() end,
   function(p) return p[1].value end,
   function(p) return p[1].value, p[2].value end,
   function(p) return p[1].value, p[2].value, p[3].value end,
   function(p) return p[1].value, p[2].value, p[3].value, p[4].value end,
}

local function values_of(parameters, count)
   local direct = PLACES[count]
   if direct then
      return direct(parameters)
   end
   local values = {}
   for i = 1, count do
      values[i] = parameters[i].value
   end
   return unpack(values, 1, count)
end

local function quoted(value, kind)
   if value == nil then
      return "NULL"
   end
   if kind == "whole" then
      return type(value) == "number" and string.format("%.0f", value < 0 and math.ceil(value) or math.floor(value)) or value
   elseif kind == "fraction" then
      return string.format("%f", value)
   end
   local doubled = value:gsub("'", "''")
   if settings.driver == "mysql" then
      doubled = doubled:gsub("\\", "\\\\")
   end
   return "'" .. doubled .. "'"
end

-- Without prepared statements: the values in the text.
local function spelled(self)
   local place = 0
   return (self.query:gsub("%?", function()
      place = place + 1
      local parameter = self.parameters[place]
      return parameter and quoted(parameter.value, parameter.kind) or "?"
   end))
end

-- At first, and again after a reconnection.
local function prepare(self)
   local con = self.connection
   answered(con, self.query, "prepare", yield(OP, host.PREPARE, self.id, self.query))
   if con.error ~= ERRORS.NONE then
      error("SQL API error", 0)
   end
   self.epoch = con.epoch
end

function Statement:execute()
   local con = self.connection
   opened(con)
   local result
   if self.id then
      if self.epoch ~= con.epoch then
         prepare(self)
      end
      if self.wanted ~= self.count then
         error("the statement has " .. self.wanted .. " parameters, and " .. self.count .. " are bound", 2)
      end
      result = answered(con, "<prepared statement>", true, yield(OP, host.EXECUTE, self.id, values_of(self.parameters, self.count)))
   else
      result = answered(con, self.query, false, yield(OP, host.QUERY, spelled(self)))
   end
   if result == nil then
      if con.error ~= 0 then
         raise(con, "<prepared statement>", 2)
      end
      return NO_RESULT
   end
   return result
end

function Statement:close()
   if self.id and self.connection.is_open and self.epoch == self.connection.epoch then
      opened(self.connection)
      yield(OP, host.CLOSE, self.id)
   end
   self.id = nil
   return 0
end

function Connection:prepare(query)
   opened(self)
   local statement = setmetatable({ connection = self, query = query, parameters = {}, count = 0, epoch = -1 }, Statement)
   if settings.ps_mode ~= "disable" then
      self.statements = self.statements + 1
      statement.id = self.statements
      statement.wanted = select(2, query:gsub("%?", ""))
      if settings.driver == "pgsql" then
         -- sysbench draws two numbers for the statement's name
         host.fraction()
         host.fraction()
      end
      prepare(statement)
   end
   return statement
end

-- Drivers

local Driver = {}
Driver.__index = Driver
Driver.__tostring = function() return "<sql_driver>" end

function Driver:name()
   return self.sname
end

local function driver_of(hooks, links)
   return function(name)
      if name ~= nil and name ~= settings.driver then
         if name ~= "mysql" and name ~= "pgsql" then
            host.fatal("invalid database driver name: '" .. tostring(name) .. "'")
            error("failed to initialize the DB driver", 2)
         end
         error("this run reaches its database by '" .. settings.driver .. "', not by '" .. name .. "'", 2)
      end
      return setmetatable({ sname = settings.driver, hooks = hooks, links = links }, Driver)
   end
end

-- Errors of the client library by which sysbench reaches MySQL, and of servers that refuse a client.
local NUMBERS = { ["28000"] = 1045, ["42000"] = 1049, ["08004"] = 1040 }

local function unreachable(why, state)
   local unknown = why:match("failed to lookup address information: (.*)")
   if settings.driver == "pgsql" then
      if unknown then
         why = ('could not translate host name "%s" to address: %s'):format(settings.host, unknown)
      end
      host.fatal("Connection to database failed: " .. why .. "\n\n")
      return
   end
   host.fatal("unable to connect to MySQL server on " .. settings.place .. ", aborting...")
   if unknown then
      host.fatal(("error 2005: Unknown MySQL server host '%s' (0)"):format(settings.host))
   else
      host.fatal(("error %d: %s"):format(NUMBERS[state] or 2002, why))
   end
end

function Driver:connect()
   local links = self.links
   local number = links.made
   links.made = number + 1
   if links.read then
      keep_rows(links)
   end
   if links.current ~= number then
      switch(links, number)
   end
   local status, why, state = yield(OP, host.CONNECT)
   if status == nil then
      unreachable(why, state)
      error("connection creation failed", 2)
   end
   return setmetatable({
      driver = self, hooks = self.hooks, links = links, number = number, is_open = true, error = ERRORS.NONE, sql_errno = 0, epoch = 0, statements = 0,
   }, Connection)
end

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
local cmdline = { PARALLEL_COMMAND = true, argv = settings.argv, command = settings.command, script_path = settings.script }
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

local function cmdline_of(globals)
   local own = setmetatable({}, { __index = cmdline })
   function own.read_cmdline_options()
      declared(own.options)
      return true
   end
   function own.command_defined(name)
      return type(own.commands) == "table" and own.commands[name] ~= nil and own.commands[name][1] ~= nil
   end
   function own.command_parallel(name)
      return own.command_defined(name) and own.commands[name][2] == cmdline.PARALLEL_COMMAND
   end
   function own.call_command(name)
      if not own.command_defined(name) then
         return false
      end
      local result = own.commands[name][1]()
      return result == nil or (result and true or false)
   end
   function own.print_test_options()
      local heads, width = {}, 0
      local options = declared(own.options)
      for i, option in ipairs(options) do
         heads[i] = "--" .. option.name .. SHOWN[option.type]
         width = math.max(width, #heads[i])
      end
      for i, option in ipairs(options) do
         local default = option.default and " [" .. option.default .. "]" or ""
         globals.print("  " .. heads[i] .. string.rep(" ", width - #heads[i] + 1) .. option.description .. default)
      end
      globals.print()
   end
   return own
end

-- All of it, for one client.
local shared = {
   version = "1.0.20",
   version_string = "sysbench 1.0.20",
   error = { NONE = 0, RESTART_EVENT = RESTART_EVENT },
   rand = rand,
}

-- A client's connections, whichever of its globals they are in: those of init() and done(), or of its events.
local links_of = {}

local function extend(globals, tid)
   links_of[tid] = links_of[tid] or { current = 0, made = 0 }
   local hooks = {}
   local sysbench = setmetatable({ tid = tid, hooks = hooks, opt = world.copied(settings.options), cmdline = cmdline_of(globals) }, { __index = shared })
   sysbench.sql = setmetatable({ driver = driver_of(hooks, links_of[tid]) }, { __index = sql })
   globals.sysbench = sysbench
   for _, part in ipairs(settings.parts) do
      part(globals, sysbench, tid)
   end
end

return { extend = extend, declared = declared, shared = shared, Connection = Connection, Statement = Statement, RESTART_EVENT = RESTART_EVENT }
