// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Flame graphs on a canvas: only boxes that can be seen are made and drawn.
'use strict';

(function () {
	const ROW = 18, BOX = 17, PAD = 4, SEEN = 0.4, LETTERS = 22;

	const canvas = document.getElementById('flame');
	const details = document.getElementById('details');
	let trees = [], boxes = [], focus = null, current = null, wanted = null, changed = null;

	// The boxes of a tree from its root on, or from the box that is zoomed to, with their places.
	function place(tree, width, base, downwards) {
		const found = [], root = focus && focus.tree === tree ? focus.box : tree.root;
		const past = [];
		for (let b = root.parent; b; b = b.parent)
			past.unshift(b);
		past.forEach(function (b, i) { found.push({ tree: tree, box: b, x: 0, w: width, row: i, past: true }); });
		// Callers stand on their function, which is drawn once, as the root of its callees.
		const isOnCallees = tree.up && trees.length > 1 && root === tree.root;
		const open = [{ tree: tree, box: root, x: 0, w: width, row: past.length - (isOnCallees ? 1 : 0), past: false }];
		while (open.length > 0) {
			const at = open.pop();
			if (at.row >= 0)
				found.push(at);
			if (at.w < SEEN || root.total === 0)
				continue;
			let x = at.x;
			for (const callee of mperf.callees(tree, at.box)) {
				const w = callee.total / root.total * width;
				if (w >= SEEN)
					open.push({ tree: tree, box: callee, x: x, w: w, row: at.row + 1, past: false });
				x += w;
			}
		}
		const rows = found.reduce(function (m, p) { return Math.max(m, p.row + 1); }, 0);
		for (const p of found)
			p.y = downwards ? base + p.row * ROW : base + (rows - 1 - p.row) * ROW;
		return { found: found, height: rows * ROW };
	}

	function colourOf(b) {
		return b.parent || b.fn ? mperf.colours[mperf.data.kind[b.fn]] : mperf.colours.root;
	}

	function draw(c, p) {
		const hit = wanted && p.box.fn && wanted.test(mperf.data.name[p.box.fn]);
		c.globalAlpha = p.past ? 0.5 : wanted && !hit ? 0.35 : 1;
		c.fillStyle = colourOf(p.box);
		c.fillRect(p.x, p.y, Math.max(p.w - (p.w > 3 ? 0.8 : 0), 0.3), BOX);
		if (hit || (current && p.box === current.box)) {
			c.strokeStyle = hit ? mperf.colours.match : mperf.colours.ink;
			c.lineWidth = current && p.box === current.box ? 2 : 1.4;
			c.strokeRect(p.x + 1, p.y + 1, Math.max(p.w - 3, 1), BOX - 2);
		}
		c.globalAlpha = p.past ? 0.7 : 1;
		if (p.w > LETTERS) {
			c.fillStyle = mperf.colours.boxink;
			c.fillText(mperf.fitted(c, mperf.label(p.box), p.w - 2 * PAD), p.x + PAD, p.y + BOX / 2 + 0.5);
		}
		c.globalAlpha = 1;
	}

	function takeColours() {
		mperf.colours = {};
		for (const name of ['user', 'kernel', 'jit', 'inlined', 'unnamed', 'root', 'boxink', 'ink', 'match'])
			mperf.colours[name] = mperf.colour(name);
	}

	mperf.drawGraph = function () {
		const width = Math.max(280, canvas.parentElement.clientWidth);
		let height = 0;
		takeColours();
		boxes = [];
		for (const t of trees) {
			const placed = place(t, width, height, !t.up || trees.length === 1);
			boxes = boxes.concat(placed.found);
			height += placed.height;
		}
		const c = mperf.prepare(canvas, width, Math.min(height, 16000));
		for (const p of boxes)
			draw(c, p);
	};

	// New trees; what was zoomed to is found again by its names.
	mperf.showGraph = function (made, search) {
		const way = mperf.zoomed();
		trees = made;
		focus = current = null;
		wanted = search;
		mperf.zoomTo(way);
		mperf.drawGraph();
		tell();
	};

	mperf.zoomed = function () {
		const way = [];
		for (let b = focus && focus.box; b && b.parent; b = b.parent)
			way.unshift(b.fn);
		return way;
	};

	mperf.zoomTo = function (way) {
		focus = null;
		for (const tree of trees) { // as far as one of them leads
			let at = tree.root;
			for (const fn of way) {
				const next = mperf.callees(tree, at).find(function (b) { return b.fn === fn; });
				if (!next)
					break;
				at = next;
			}
			if (at.parent && (!focus || at.level > focus.box.level))
				focus = { tree: tree, box: at };
		}
	};

	function tell() {
		const at = current || focus, sums = trees.length > 0 && trees[0].sums;
		details.textContent = '';
		if (!at || !sums) {
			details.append(canvas.dataset.hint);
			return;
		}
		const b = at.box, d = mperf.data;
		details.append(mperf.element('b', { textContent: mperf.label(b) }));
		const parts = [mperf.amount(b.total) + ', ' + mperf.percent(b.total / sums.whole) + ' of what is shown'];
		if (b.self > 0 && b.total > b.self)
			parts.push('itself ' + mperf.amount(b.self));
		if (b.fn)
			parts.push(d.module[b.fn], 'in all ' + mperf.percent(sums.fnTotal[b.fn] / sums.whole));
		details.append(parts.join(' · '));
	}

	function zoom(p) {
		focus = p && p.box.parent ? { tree: p.tree, box: p.box } : null;
		mperf.drawGraph();
		tell();
		changed();
	}

	function boxAt(event) {
		const r = canvas.getBoundingClientRect(), x = event.clientX - r.left, y = event.clientY - r.top;
		return boxes.find(function (p) { return x >= p.x && x < p.x + p.w && y >= p.y && y < p.y + ROW; }) || null;
	}

	// The function that a name was asked for of: under the pointer or the keyboard.
	mperf.pointed = function () {
		const at = current || focus;
		return at && at.box.fn ? at.box.fn : 0;
	};

	function step(key) {
		if (!current) {
			current = boxes.find(function (p) { return !p.past; }) || null;
			return;
		}
		const i = boxes.findIndex(function (p) { return p.box === current.box && p.tree === current.tree; }), at = boxes[i];
		if (!at)
			return;
		const seen = boxes.filter(function (p) { return p.tree === at.tree; });
		let next = null;
		if (key === 'in') // the widest callee
			next = seen.filter(function (p) { return p.box.parent === at.box; })
				.sort(function (a, b) { return b.w - a.w; })[0];
		else if (key === 'out') {
			next = seen.find(function (p) { return p.box === at.box.parent; });
			if (!next && trees.length > 1 && at.tree.up) // the function itself is the root of its callees
				next = boxes.find(function (p) { return p.tree === trees[1] && !p.box.parent; });
			else if (!next && trees.length > 1)
				next = boxes.filter(function (p) { return p.tree === trees[0] && p.box.level === 1; })[0];
		}
		else {
			const row = seen.filter(function (p) { return p.row === at.row; }).sort(function (a, b) { return a.x - b.x; });
			next = row[row.indexOf(at) + (key === 'right' ? 1 : -1)];
		}
		current = next || current;
	}

	mperf.beginGraph = function (onChange) {
		changed = onChange;
		canvas.addEventListener('mousemove', function (event) {
			const p = boxAt(event);
			if ((p && p.box) !== (current && current.box)) {
				current = p;
				mperf.drawGraph();
				tell();
			}
		});
		canvas.addEventListener('mouseleave', function () {
			current = null;
			mperf.drawGraph();
			tell();
		});
		canvas.addEventListener('click', function (event) {
			const p = boxAt(event);
			if (p)
				zoom(p);
		});
		canvas.addEventListener('dblclick', function (event) {
			const p = boxAt(event);
			if (p && p.box.fn)
				mperf.showAround(p.box.fn);
		});
		canvas.addEventListener('keydown', function (event) {
			if (event.ctrlKey || event.metaKey || event.altKey)
				return;
			// Callers stand above their function, callees below it; both lead to it.
			const tree = current ? current.tree : trees[0], isDown = !tree || !tree.up || trees.length === 1;
			const keys = { ArrowLeft: 'left', ArrowRight: 'right', ArrowUp: isDown ? 'out' : 'in',
				ArrowDown: isDown ? 'in' : 'out' };
			if (keys[event.key])
				step(keys[event.key]);
			else if (event.key === 'Enter' && current)
				zoom(current);
			else if (event.key === 'o' && mperf.pointed())
				mperf.showAround(mperf.pointed());
			else if (event.key === 'Backspace' && focus)
				zoom({ tree: focus.tree, box: focus.box.parent });
			else
				return;
			event.preventDefault();
			mperf.drawGraph();
			tell();
		});
	};
})();
