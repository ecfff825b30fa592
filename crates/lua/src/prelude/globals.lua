-- The globals of one client, over code that is shared.
--
-- Each client has a table of its own that begins empty, and is filled as its script asks: with what all clients have
-- by that name, with what belongs to the client (`makers`: functions of the globals), and behind scripts of the old
-- interface with the values of options. Memory is what limits the number of clients.

local _, _, settings, prelude = ...
local standard = prelude.standard.standard
local common, copied, lazily = prelude.standard.common, prelude.standard.copied, prelude.standard.lazily
local makers = {}

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

-- What loads code gives it the globals of the client that asks.
local function own(globals, chunk, trouble)
   if chunk then
      setfenv(chunk, globals)
   end
   return chunk, trouble
end

function makers.loadstring(globals)
   return function(...)
      return own(globals, loadstring(...))
   end
end

function makers.load(globals)
   return function(text, name, mode, environment)
      if environment ~= nil then
         return load(text, name, mode, environment)
      end
      return own(globals, load(text, name, mode))
   end
end

function makers.loadfile(globals)
   return function(path, ...)
      if path ~= nil then
         opened[path] = true
      end
      if texts[path] then
         return own(globals, loadstring(texts[path], "@" .. path))
      end
      return own(globals, loadfile(path, ...))
   end
end

function makers.dofile(globals)
   return function(path)
      return run_chunk(compiled(path), globals)
   end
end

local LOADED = { __index = { io = common.io, os = common.os, math = common.math, coroutine = common.coroutine, ffi = common.ffi } }
local PACKAGE = { __index = {
   path = settings.path, cpath = settings.cpath, loadlib = standard.package.loadlib, config = standard.package.config,
} }

function makers.package()
   return setmetatable({ loaded = setmetatable({}, LOADED), preload = {} }, PACKAGE)
end

function makers.require(globals)
   return requirer(globals, globals.package)
end

local function find(globals, name)
   local value = common[name]
   if value == nil and makers[name] then
      value = makers[name](globals)
   end
   return value
end

-- As in the old interface: values of options are globals, unless they would hide a function.
local function find_old(globals, name)
   local value = find(globals, name)
   local option = settings.options[name]
   if option == nil or type(value) == "function" then
      return value
   end
   return copied(option)
end

-- All names that the script has not set itself.
local function fill_globals(find_one)
   return function(globals)
      for _, names in ipairs({ common, makers, find_one == find_old and settings.options or nil }) do
         for name in pairs(names) do
            if rawget(globals, name) == nil then
               globals[name] = find_one(globals, name)
            end
         end
      end
   end
end

local GLOBALS = lazily(find, fill_globals(find))
local OLD_GLOBALS = lazily(find_old, fill_globals(find_old))

function makers._G(globals)
   return globals
end

for _, name in ipairs({ "_G", "package", "require", "load", "loadstring", "loadfile", "dofile" }) do
   common[name] = nil
end

-- The globals of a client, with `sysbench` as its script sees it.
local function globals_of(tid, extend)
   local globals = setmetatable({}, GLOBALS)
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

-- As in the old interface: values of options are globals, unless the script names its options.
local function take_options(globals)
   local is_filled = getmetatable(globals) ~= GLOBALS
   for name, value in pairs(settings.options) do
      local known = rawget(globals, name)
      if type(known) ~= "function" and (is_filled or known ~= nil) then
         globals[name] = copied(value)
      end
   end
   if not is_filled then
      setmetatable(globals, OLD_GLOBALS)
   end
end

-- The files that were read.
local function files()
   local paths = {}
   for path in pairs(opened) do
      paths[#paths + 1] = tostring(path)
   end
   table.sort(paths)
   return paths
end

return { files = files, makers = makers, globals_of = globals_of, load_script = load_script, take_options = take_options }
