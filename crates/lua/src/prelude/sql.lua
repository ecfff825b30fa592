-- Connections, statements and results as scripts of sysbench 1.0.20 know them.

local host, OP, settings = ...
local ffi = require("ffi")
local yield = coroutine.yield

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

local Connection = { error = ERRORS.NONE, sql_errno = 0, epoch = 0, statements = 0 }
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
local function answered(self, query, prepared, status, a, b, c, d, report, is_reconnected)
   if status == 1 then
      return setmetatable({ nrows = a, nfields = b, number = c, links = self.links }, Result)
   end
   if status == 0 then
      if self.error ~= ERRORS.NONE then
         self.error = ERRORS.NONE
      end
      return nil
   end
   -- 2: a failure, a: ignorable or fatal
   self.error, self.sql_errno, self.sql_state, self.sql_errmsg = a, b, c, d
   if is_reconnected then
      self.epoch = self.epoch + 1
   end
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
   local hook = self.driver.hooks.sql_error_ignorable
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

-- Drivers

local Driver = { sname = settings.driver }
Driver.__index = Driver
Driver.__tostring = function() return "<sql_driver>" end

function Driver:name()
   return self.sname
end

local function checked_driver(name)
   if name ~= nil and name ~= settings.driver then
      if name ~= "mysql" and name ~= "pgsql" then
         host.fatal("invalid database driver name: '" .. tostring(name) .. "'")
         error("failed to initialize the DB driver", 3)
      end
      error("this run reaches its database by '" .. settings.driver .. "', not by '" .. name .. "'", 3)
   end
end

local function unreachable(turn, why)
   local servers = settings.servers
   local server = servers[turn % math.max(#servers, 1) + 1] or { host = "", place = "" }
   local unknown = why:match("failed to lookup address information: (.*)")
   if settings.driver == "pgsql" then
      if unknown then
         why = ('could not translate host name "%s" to address: %s'):format(server.host, unknown)
      end
      host.fatal("Connection to database failed: " .. why .. "\n\n")
      return
   end
   host.fatal("unable to connect to MySQL server on " .. server.place .. ", aborting...")
   if unknown then
      host.fatal(("error 2005: Unknown MySQL server host '%s' (0)"):format(server.host))
   else
      -- A server's number where it has refused the client, else that of the client library of MySQL.
      host.fatal(("error %s: %s"):format(why:match("%(error (%d+), SQLSTATE") or "2002", why))
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
   local status, why = yield(OP, host.CONNECT)
   if status == nil then
      unreachable(links.tid + number, why)
      error("connection creation failed", 2)
   end
   return setmetatable({ driver = self, links = links, number = number, is_open = true }, Connection)
end

return {
   sql = sql, Driver = Driver, checked_driver = checked_driver, RESTART_EVENT = RESTART_EVENT, TYPES = TYPES,
   ERRORS = ERRORS, NO_RESULT = NO_RESULT, Connection = Connection, opened = opened, answered = answered, raise = raise,
}
