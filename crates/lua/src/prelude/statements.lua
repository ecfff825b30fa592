-- Prepared statements and their parameters as scripts of sysbench 1.0.20 know them.

local host, OP, settings, prelude = ...
local ffi = require("ffi")
local yield = coroutine.yield
local floor, ceil = math.floor, math.ceil
local sql = prelude.sql
local TYPES, ERRORS, NO_RESULT, Connection = sql.TYPES, sql.ERRORS, sql.NO_RESULT, sql.Connection
local opened, answered, raise = sql.opened, sql.answered, sql.raise

local Parameter = { max_len = 8 }
Parameter.__index = Parameter
Parameter.__tostring = function() return "<sql_param>" end

local KINDS = {
   [TYPES.TINYINT] = "whole", [TYPES.SMALLINT] = "whole", [TYPES.INT] = "whole", [TYPES.BIGINT] = "whole",
   [TYPES.FLOAT] = "fraction", [TYPES.DOUBLE] = "fraction",
   [TYPES.CHAR] = "text", [TYPES.VARCHAR] = "text",
}

function Parameter:set(value)
   local kind = KINDS[self.type]
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
   if KINDS[self.type] ~= "text" then
      error("Unsupported argument type: " .. tostring(self.type), 2)
   end
   local text = host.string(format)
   self.value = #text > self.max_len and text:sub(1, self.max_len) or text
end

-- How many parameters a text has.
local function wanted_by(query)
   local _, wanted = query:gsub("%?", "")
   return wanted
end

-- What is bound to a statement; `is_wrong`: the statement does not have as many parameters.
local UNBOUND = { is_wrong = true }

local Statement = { parameters = {}, epoch = 0 }
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
   if name ~= "text" then
      return setmetatable({ type = kind, value = nil }, Parameter)
   end
   return setmetatable({ type = kind, max_len = max_len, value = nil }, Parameter)
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
   if self.id and count ~= wanted_by(self.query) then
      parameters.is_wrong = true
   end
   self.parameters = parameters
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
      return parameter and quoted(parameter.value, KINDS[parameter.type]) or "?"
   end))
end

-- At first, and again after a reconnection.
local function prepare(self)
   local con = self.connection
   local epoch
   repeat -- on a connection that is lost again, and made again
      epoch = con.epoch
      answered(con, self.query, "prepare", yield(OP, host.PREPARE, self.id, self.query))
   until con.epoch == epoch
   if con.error ~= ERRORS.NONE then
      error("SQL API error", 0)
   end
   if self.epoch ~= con.epoch then
      self.epoch = con.epoch
   end
end

function Statement:execute()
   local con = self.connection
   opened(con)
   local result
   if self.id then
      if self.epoch ~= con.epoch then
         prepare(self)
      end
      local parameters = self.parameters
      if parameters.is_wrong then
         error("the statement has " .. wanted_by(self.query) .. " parameters, and " .. #parameters .. " are bound", 2)
      end
      result = answered(con, "<prepared statement>", true, yield(OP, host.EXECUTE, self.id, values_of(parameters, #parameters)))
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
   local statement = setmetatable({ connection = self, query = query }, Statement)
   if settings.ps_mode ~= "disable" then
      self.statements = self.statements + 1
      statement.id = self.statements
      if wanted_by(query) > 0 then
         statement.parameters = UNBOUND
      end
      if settings.driver == "pgsql" then
         -- sysbench draws two numbers for the statement's name
         host.fraction()
         host.fraction()
      end
      prepare(statement)
   end
   return statement
end
