// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The data of the page, unpacked into arrays: client/report/pack.h says how it is packed.
'use strict';

const mperf = {};

(function () {
	const KINDS = ['user', 'kernel', 'jit', 'inlined', 'unnamed'];

	async function unpack() {
		const text = document.getElementById('packed').textContent.trim();
		const bytes = Uint8Array.from(atob(text), function (c) { return c.charCodeAt(0); });
		const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
		return new Uint8Array(await new Response(stream).arrayBuffer());
	}

	// Numbers of a column, as an array of the given type.
	function reader(bytes, start) {
		let at = start;
		return function (type, n) {
			const column = new type(n);
			for (let i = 0; i < n; i++) {
				let number = 0, scale = 1, byte;
				do {
					byte = bytes[at++];
					number += (byte & 127) * scale;
					scale *= 128;
				} while (byte > 127);
				column[i] = number;
			}
			return column;
		};
	}

	// Has no caller of the node the same function? Only such nodes add up to a function's total.
	function findOutermost(d) {
		const outermost = new Uint8Array(d.nNodes), open = new Uint32Array(d.nFunctions);
		const first = d.firstCallee, path = [0], next = [first[0]];
		while (path.length > 0) {
			const node = path[path.length - 1], at = next[next.length - 1];
			if (at < first[node + 1]) {
				next[next.length - 1]++;
				const f = d.fn[at];
				outermost[at] = open[f]++ === 0 ? 1 : 0;
				path.push(at);
				next.push(first[at]);
			} else {
				open[d.fn[node]]--;
				path.pop();
				next.pop();
			}
		}
		return outermost;
	}

	mperf.load = async function () {
		const bytes = await unpack(), end = bytes.indexOf(10);
		const head = JSON.parse(new TextDecoder().decode(bytes.subarray(0, end)));
		const column = reader(bytes, end + 1), n = head.functions;
		const d = {
			unit: head.unit, begin: head.begin_ms, bucket: head.bucket_ms, nBuckets: head.buckets, coarse: head.coarse_ms,
			nFunctions: n, nNodes: head.nodes, nTasks: head.tasks, nRows: head.rows, texts: head.texts,
		};
		const texts = function (numbers) { return Array.from(numbers, function (i) { return head.texts[i]; }); };
		d.name = texts(column(Uint32Array, n));
		d.module = texts(column(Uint32Array, n));
		d.kind = Array.from(column(Uint8Array, n), function (i) { return KINDS[i]; });

		const back = column(Uint32Array, d.nNodes - 1), fn = column(Uint32Array, d.nNodes - 1);
		d.caller = new Uint32Array(d.nNodes);
		d.fn = new Uint32Array(d.nNodes);
		// Nodes stand level by level, and those of a caller beside each other: node i's are firstCallee[i] on.
		d.firstCallee = new Uint32Array(d.nNodes + 1).fill(d.nNodes);
		for (let i = 1; i < d.nNodes; i++) {
			d.caller[i] = i - back[i - 1];
			d.fn[i] = fn[i - 1];
		}
		for (let i = d.nNodes - 1; i > 0; i--)
			d.firstCallee[d.caller[i]] = i;
		for (let i = d.nNodes - 1; i >= 0; i--)
			d.firstCallee[i] = Math.min(d.firstCallee[i], d.firstCallee[i + 1]);
		d.outermost = findOutermost(d);

		d.pid = column(Float64Array, d.nTasks);
		d.tid = column(Float64Array, d.nTasks);
		d.process = texts(column(Uint32Array, d.nTasks));
		d.thread = texts(column(Uint32Array, d.nTasks));
		d.cgroup = texts(column(Uint32Array, d.nTasks));

		d.at = column(Uint32Array, d.nRows);
		for (let i = 1; i < d.nRows; i++)
			d.at[i] += d.at[i - 1];
		d.event = column(Uint32Array, d.nRows);
		d.task = column(Uint32Array, d.nRows);
		d.hart = column(Int32Array, d.nRows);
		for (let i = 0; i < d.nRows; i++)
			d.hart[i]--;
		d.node = column(Uint32Array, d.nRows);
		d.value = column(Float64Array, d.nRows);
		const cpu = Array.from(d.value).filter(function (_, i) { return !head.texts[d.event[i]].startsWith('waiting'); });
		cpu.sort(function (a, b) { return a - b; });
		d.period = cpu.length > 0 ? cpu[cpu.length >> 1] : 1e4; // µs that a sample stands for
		if (d.unit === 'count') // then samples are as far apart as they are on average
			d.period = d.nBuckets * d.bucket * 1000 / Math.max(1, cpu.length);
		d.events = Array.from(new Set(d.event), function (i) { return { number: i, name: head.texts[i] }; });
		return d;
	};

	// --- numbers as people read them

	mperf.percent = function (share) {
		return Number.isFinite(share) ? (100 * share).toFixed(share < 0.0995 ? 2 : 1) + ' %' : '';
	};

	function inSteps(value, steps) {
		const step = steps.find(function (s) { return value >= s[0]; });
		return Number((value / step[1]).toPrecision(3)).toLocaleString('en') + step[2];
	}

	// Of µs, or a count.
	mperf.amount = function (value) {
		if (mperf.data.unit === 'count')
			return Math.round(value).toLocaleString('en');
		return inSteps(value, [[36e8, 36e8, ' h'], [6e7, 6e7, ' min'], [1e6, 1e6, ' s'], [1e3, 1e3, ' ms'], [0, 1, ' µs']]);
	};

	mperf.span = function (buckets) {
		return mperf.length(buckets * mperf.data.bucket);
	};

	mperf.length = function (ms) {
		return inSteps(ms, [[864e5, 864e5, ' days'], [36e5, 36e5, ' h'], [6e4, 6e4, ' min'], [1e3, 1e3, ' s'], [0, 1, ' ms']]);
	};

	// When a bucket begins: since the begin, or as a time of day.
	mperf.clock = function (bucket) {
		const span = mperf.data.nBuckets * mperf.data.bucket, at = bucket * mperf.data.bucket;
		if (span < 3e3)
			return at.toFixed(0) + ' ms';
		if (span < 6e5)
			return (at / 1000).toFixed(span < 1e5 && at % 1000 ? 1 : 0) + ' s';
		const date = new Date(mperf.data.begin + at);
		return span < 864e5 ? date.toLocaleTimeString() : date.toLocaleString([], { month: 'short', day: 'numeric',
			hour: '2-digit', minute: '2-digit' });
	};

	mperf.element = function (name, properties, inside) {
		const made = Object.assign(document.createElement(name), properties || {});
		made.append(...(inside || []));
		return made;
	};
})();
