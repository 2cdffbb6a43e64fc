-- SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
-- Something of each that an interpreter does: arithmetic, tables, strings, calls. Prints what came
-- out, so that two builds can be compared; its one argument is how often.
local rounds = tonumber(arg[1]) or 1

local function fibonacci(n)
	return n < 2 and n or fibonacci(n - 1) + fibonacci(n - 2)
end

local function primes(limit)
	local composite, found = {}, 0
	for i = 2, limit do
		if not composite[i] then
			found = found + 1
			for j = i * i, limit, i do
				composite[j] = true
			end
		end
	end
	return found
end

local function areas(n)
	local sum = 0.0
	for i = 1, n do
		local x = (i - 0.5) / n
		sum = sum + 4.0 / (1.0 + x * x)
	end
	return sum / n
end

local function words(n)
	local seen, text = {}, {}
	for i = 1, n do
		local word = string.format("w%d", (i * 7919) % 1000)
		seen[word] = (seen[word] or 0) + 1
		text[#text + 1] = word
	end
	local joined = table.concat(text, " ")
	local replaced, times = joined:gsub("w(%d)%f[%D]", "<%1>")
	return times, #replaced
end

for _ = 1, rounds do
	print(fibonacci(22), primes(60000), string.format("%.12f", areas(100000)), words(20000))
end
