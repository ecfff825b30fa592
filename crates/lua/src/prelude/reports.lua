-- Histograms and the forms of reports that a script's hooks can choose.

local host, _, _, prelude = ...
local say, parts = prelude.standard.say, prelude.api.parts

local Histogram = { __tostring = function() return "<sb_histogram>" end }
Histogram.__index = Histogram

-- Logarithmic buckets from `low` to `high`.
local function new_histogram(size, low, high)
   local step = math.log(high / low) / (size - 1)
   return setmetatable({ size = size, low = math.log(low), step = step, counts = {}, offset = low }, Histogram)
end

function Histogram:update(value)
   local bucket = math.floor((math.log(math.max(value, 1e-300)) - self.low) / self.step + 0.5)
   bucket = math.max(0, math.min(self.size - 1, bucket))
   self.counts[bucket] = (self.counts[bucket] or 0) + 1
end

function Histogram:print()
   local largest = 0
   for _, count in pairs(self.counts) do
      largest = math.max(largest, count)
   end
   if largest == 0 then
      return
   end
   local lines = { "       value  ------------- distribution ------------- count" }
   for bucket = 0, self.size - 1 do
      local count = self.counts[bucket]
      if count then
         local width = math.floor(count * 40 / largest + 0.5)
         lines[#lines + 1] = string.format("%12.3f |%-40s %d", math.exp(bucket * self.step + self.low), ("*"):rep(width), count)
      end
   end
   host.write(table.concat(lines, "\n") .. "\n")
end

prelude.api.shared.histogram = { new = new_histogram }

local function rates(stat)
   local seconds = stat.time_interval
   return stat.events / seconds, (stat.reads + stat.writes + stat.other) / seconds, stat.reads / seconds,
      stat.writes / seconds, stat.other / seconds, stat.latency_pct * 1000, stat.errors / seconds, stat.reconnects / seconds
end

function parts.report_default(sysbench)
   return function(stat)
      local tps, qps, reads, writes, others, latency, errors, reconnects = rates(stat)
      say(string.format(
         "[ %.0fs ] thds: %u tps: %4.2f qps: %4.2f (r/w/o: %4.2f/%4.2f/%4.2f) lat (ms,%u%%): %4.2f err/s %4.2f reconn/s: %4.2f",
         stat.time_total, stat.threads_running, tps, qps, reads, writes, others, sysbench.opt.percentile or 95, latency, errors, reconnects))
   end
end

function parts.report_csv()
   return function(stat)
      local tps, qps, reads, writes, others, latency, errors, reconnects = rates(stat)
      say(string.format("%.0f,%u,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f",
         stat.time_total, stat.threads_running, tps, qps, reads, writes, others, latency, errors, reconnects))
   end
end

local LINES = table.concat({
   "  {",
   '    "time": %4.0f,', '    "threads": %u,', '    "tps": %4.2f,',
   '    "qps": {',
   '      "total": %4.2f,', '      "reads": %4.2f,', '      "writes": %4.2f,', '      "other": %4.2f',
   "    },",
   '    "latency": %4.2f,', '    "errors": %4.2f,', '    "reconnects": %4.2f',
   "  }",
}, "\n")

function parts.report_json()
   local open
   return function(stat)
      local tps, qps, reads, writes, others, latency, errors, reconnects = rates(stat)
      if open then
         host.write(",\n")
      else
         host.write("[\n")
         -- The list is closed when this state is.
         open = newproxy(true)
         getmetatable(open).__gc = function() host.write("\n]\n") end
      end
      host.write(string.format(LINES, stat.time_total, stat.threads_running, tps, qps, reads, writes, others, latency, errors, reconnects))
   end
end
