// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is chosen of the samples, summed up by node and function; and call trees of it, which are made as far as they
// are looked at.
'use strict';

(function () {
	// The number of harts at work is estimated over so long; where buckets are longer, not at all.
	const WALL_MS = 20;

	// Waiting for a hart is apart: it is no fault of what the thread waits for.
	mperf.isWaiting = function (name) { return name.startsWith('waiting'); };
	mperf.choices = function () {
		const d = mperf.data, waits = d.events.filter(function (e) { return mperf.isWaiting(e.name); });
		const cpu = d.events.filter(function (e) { return !mperf.isWaiting(e.name); });
		const names = function (events) { return events.map(function (e) { return e.name; }).join(', '); };
		const of = function (events) { return new Set(events.map(function (e) { return e.number; })); };
		const list = [{ id: 'cpu', label: d.unit === 'count' ? names(cpu) : 'CPU time (' + names(cpu) + ')', events: of(cpu) }];
		if (d.unit !== 'count' && d.bucket <= WALL_MS)
			list.push({ id: 'wall', label: 'Wall time (estimate)', events: of(cpu), wall: true });
		for (const e of cpu.length > 1 ? cpu : [])
			list.push({ id: e.name, label: e.name, events: of([e]) });
		const blocked = waits.filter(function (e) { return e.name !== 'waiting:hart'; });
		if (blocked.length > 0)
			list.push({ id: 'waiting', label: 'Waiting', events: of(blocked) });
		for (const e of waits)
			list.push({ id: e.name, label: e.name === 'waiting:hart' ? 'Waiting for a CPU' : 'Waiting: ' + e.name.slice(8),
				events: of([e]) });
		return list;
	};

	// How much a row of wall time counts: one over the harts that worked around it.
	function parallelism() {
		const d = mperf.data, sums = new Float64Array(d.nBuckets + 1), around = Math.ceil(WALL_MS / 2 / d.bucket);
		for (let i = 0; i < d.nRows; i++)
			if (!mperf.isWaiting(d.texts[d.event[i]]))
				sums[d.at[i] + 1] += d.value[i] / 1000;
		for (let i = 1; i <= d.nBuckets; i++)
			sums[i] += sums[i - 1];
		return function (at) {
			const from = Math.max(0, at - around), to = Math.min(d.nBuckets, at + around + 1);
			return Math.max(1, (sums[to] - sums[from]) / ((to - from) * d.bucket));
		};
	}

	mperf.processKey = function (task) {
		return mperf.data.process[task] + (mperf.data.pid[task] > 0 ? ' (' + mperf.data.pid[task] + ')' : '');
	};
	mperf.threadKey = function (task) {
		return mperf.data.thread[task] + (mperf.data.tid[task] > 0 ? ' (' + mperf.data.tid[task] + ')' : '');
	};

	// May rows of this task be seen with the choice of process or thread?
	mperf.isTaskChosen = function (state, task) {
		return (!state.process || mperf.processKey(task) === state.process) &&
			(!state.thread || mperf.threadKey(task) === state.thread);
	};

	// self and total by node; functions' sums; the whole. Rows outside of [from, to) are left out.
	mperf.sum = function (state) {
		const d = mperf.data, choice = state.choice, self = new Float64Array(d.nNodes);
		const chosen = Uint8Array.from({ length: d.nTasks }, function (_, t) { return mperf.isTaskChosen(state, t) ? 1 : 0; });
		const divisor = choice.wall ? parallelism() : null;
		const isKernel = function (node) { return node > 0 && d.kind[d.fn[node]] === 'kernel'; };
		let rows = 0;
		for (let i = 0; i < d.nRows; i++) {
			if (!choice.events.has(d.event[i]) || !chosen[d.task[i]] || d.at[i] < state.from || d.at[i] >= state.to)
				continue;
			let node = d.node[i];
			if (state.side === 'kernel' && !isKernel(node))
				continue;
			if (state.side === 'user' && isKernel(node))
				continue;
			self[node] += divisor ? d.value[i] / divisor(d.at[i]) : d.value[i];
			rows++;
		}
		const total = Float64Array.from(self);
		for (let i = d.nNodes - 1; i > 0; i--)
			total[d.caller[i]] += total[i];
		const fnSelf = new Float64Array(d.nFunctions), fnTotal = new Float64Array(d.nFunctions);
		for (let i = 1; i < d.nNodes; i++) {
			fnSelf[d.fn[i]] += self[i];
			if (d.outermost[i])
				fnTotal[d.fn[i]] += total[i];
		}
		return { self: self, total: total, fnSelf: fnSelf, fnTotal: fnTotal, whole: total[0], rows: rows };
	};

	// --- trees: a box is a function on its way from the root, with the nodes that it stands for

	function box(parent, fn, self, total) {
		return { parent: parent, fn: fn, self: self, total: total, level: parent ? parent.level + 1 : 0, nodes: [],
			weights: null, callees: null };
	}

	// The callees of a box's nodes, together.
	function openDown(sums, parent) {
		const d = mperf.data, found = new Map();
		for (const node of parent.nodes)
			for (let i = d.firstCallee[node]; i < d.firstCallee[node + 1]; i++) {
				if (sums.total[i] === 0)
					continue;
				let b = found.get(d.fn[i]);
				if (!b)
					found.set(d.fn[i], b = box(parent, d.fn[i], 0, 0));
				b.self += sums.self[i];
				b.total += sums.total[i];
				b.nodes.push(i);
			}
		return Array.from(found.values());
	}

	// The callers of a box's nodes; each carries the weight that came up through it.
	function openUp(parent) {
		const d = mperf.data, found = new Map();
		parent.nodes.forEach(function (node, k) {
			const caller = d.caller[node];
			if (caller === 0)
				return;
			let b = found.get(d.fn[caller]);
			if (!b) {
				found.set(d.fn[caller], b = box(parent, d.fn[caller], 0, 0));
				b.weights = [];
			}
			b.total += parent.weights[k];
			b.nodes.push(caller);
			b.weights.push(parent.weights[k]);
		});
		return Array.from(found.values());
	}

	mperf.callees = function (tree, b) {
		if (!b.callees) {
			b.callees = b === tree.root && tree.first ? tree.first() : tree.up ? openUp(b) : openDown(tree.sums, b);
		}
		return b.callees;
	};

	mperf.treeDown = function (sums) {
		const root = box(null, 0, sums.self[0], sums.total[0]);
		root.nodes = [0];
		return { root: root, sums: sums, up: false };
	};

	// Functions by their own share, on each of them its callers.
	mperf.treeUp = function (sums) {
		const d = mperf.data, root = box(null, 0, 0, sums.whole), tree = { root: root, sums: sums, up: true };
		tree.first = function () {
			const found = new Map();
			for (let i = 1; i < d.nNodes; i++) {
				if (sums.self[i] === 0)
					continue;
				let b = found.get(d.fn[i]);
				if (!b) {
					found.set(d.fn[i], b = box(root, d.fn[i], 0, 0));
					b.weights = [];
				}
				b.self += sums.self[i];
				b.total += sums.self[i];
				b.nodes.push(i);
				b.weights.push(sums.self[i]);
			}
			return Array.from(found.values()).sort(function (a, b) { return b.total - a.total; });
		};
		return tree;
	};

	// Callers of one function, or its callees, in all places.
	mperf.treeAround = function (sums, fn, up) {
		const d = mperf.data, root = box(null, fn, sums.fnSelf[fn], sums.fnTotal[fn]);
		root.weights = up ? [] : null;
		for (let i = 1; i < d.nNodes; i++)
			if (d.fn[i] === fn && d.outermost[i] && sums.total[i] > 0) {
				root.nodes.push(i);
				if (up)
					root.weights.push(sums.total[i]);
			}
		return { root: root, sums: sums, up: up };
	};

	mperf.label = function (b) {
		return b.fn === 0 && !b.parent ? 'all' : mperf.data.name[b.fn];
	};
})();
