-- The interface of sysbench 0.5, which 1.0 still offers: global functions, and one connection for each client.

local host, _, settings, prelude = ...
local makers, parts = prelude.globals.makers, prelude.api.parts

-- A client's functions, with the one connection behind them.
local function functions(sysbench)
   local con
   local db = { DB_ERROR_NONE = 0, DB_ERROR_RESTART_TRANSACTION = 1, DB_ERROR_FAILED = 2 }

   function db.connect()
      if not con then
         con = sysbench.sql.driver():connect()
      end
   end
   local function connected()
      if not con then
         db.connect()
      end
      return con
   end
   function db.disconnect()
      if con then
         con:disconnect()
         con = nil
      end
   end
   function db.query(query)
      connected():query(query)
   end
   function db.bulk_insert_init(query)
      connected():bulk_insert_init(query)
   end
   local function uninitialized()
      if not con then
         error("Uninitialized database connection", 3)
      end
      return con
   end
   function db.bulk_insert_next(values)
      uninitialized():bulk_insert_next(values)
   end
   function db.bulk_insert_done()
      uninitialized():bulk_insert_done()
   end
   function db.prepare(query)
      return { statement = connected():prepare(query) }
   end
   -- The table is bound, not its values: those at each execution count.
   function db.bind_param(handle, values)
      uninitialized()
      if type(values) ~= "table" then
         error("table was expected", 2)
      end
      local parameters, count = {}, 0
      for _ in pairs(values) do
         count = count + 1
      end
      if count == 0 then
         error("table is empty", 2)
      end
      for place = 1, count do
         local kind = type(values[place])
         if kind == "number" then
            parameters[place] = handle.statement:bind_create(sysbench.sql.type.BIGINT)
         elseif kind == "string" then
            parameters[place] = handle.statement:bind_create(sysbench.sql.type.VARCHAR, 1048576)
         else
            error("Unsupported variable type: " .. kind, 2)
         end
      end
      handle.values, handle.parameters = values, parameters
      handle.statement:bind_param(unpack(parameters, 1, count))
   end
   function db.bind_result() end
   function db.execute(handle)
      uninitialized()
      for place, parameter in ipairs(handle.parameters or {}) do
         parameter:set(handle.values[place])
      end
      return { result = handle.statement:execute() }
   end
   function db.store_results() end
   function db.free_results(handle)
      if handle.result ~= nil then
         handle.result:free()
         handle.result = nil
      end
   end
   function db.close(handle)
      uninitialized()
      handle.statement:close()
   end

   return db
end

local names = {
   "connect", "disconnect", "query", "bulk_insert_init", "bulk_insert_next", "bulk_insert_done", "prepare", "bind_param",
   "bind_result", "execute", "store_results", "free_results", "close",
}
for _, name in ipairs(names) do
   makers["db_" .. name] = function(globals)
      return globals.sysbench.db[name]
   end
end

function parts.db(sysbench)
   return functions(sysbench)
end

function makers.thread_id(globals)
   return globals.sysbench.tid
end

local common, rand = prelude.standard.common, prelude.api.shared.rand
common.DB_ERROR_NONE, common.DB_ERROR_RESTART_TRANSACTION, common.DB_ERROR_FAILED = 0, 1, 2
common.db_driver = settings.driver
common.test = settings.script
common.sb_rand, common.sb_rand_str, common.sb_rand_uniform = rand.default, rand.string, rand.uniform
common.sb_rand_gaussian, common.sb_rand_special = rand.gaussian, rand.special
common.mysql_table_engine, common.myisam_max_rows = "innodb", 1000000

function common.sb_rnd()
   local _, low = host.bits()
   return low
end

function common.sb_rand_uniq(low, high)
   low, high = low or 0, high or 4294967295
   local drawn
   repeat
      drawn = host.unique()
   until drawn >= low and drawn <= high
   return drawn
end
