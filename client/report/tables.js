// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The call tree and the functions as tables: each column sorts.
'use strict';

(function () {
	const ROWS = 200, SHARE = 0.001, TREE_ROWS = 5000;

	function cell(text, name) {
		return mperf.element('td', { textContent: text, className: name || '' });
	}

	function nameCell(fn, matches) {
		const d = mperf.data, td = mperf.element('td', { className: 'fn' + (matches ? ' matched' : '') });
		const button = mperf.element('button', { type: 'button', textContent: d.name[fn], className: 'link ' + d.kind[fn],
			title: 'Show who calls it and what it calls' });
		button.addEventListener('click', function () { mperf.showAround(fn); });
		td.append(button);
		return td;
	}

	function bar(share) {
		const td = mperf.element('td', { className: 'n bar' });
		td.append(mperf.element('span', { textContent: mperf.percent(share) }));
		td.style.setProperty('--share', (100 * share).toFixed(2) + '%');
		return td;
	}

	// The column by which a table is sorted says so, to all.
	function markSorted(table, column, isUp) {
		for (const th of table.querySelectorAll('th[data-sort]')) {
			if (th.dataset.sort === column)
				th.setAttribute('aria-sort', isUp ? 'ascending' : 'descending');
			else
				th.removeAttribute('aria-sort');
		}
	}

	function compare(a, b) {
		return typeof a === 'string' ? a.localeCompare(b) : a - b;
	}

	mperf.showFunctions = function (sums, state) {
		const d = mperf.data, table = document.getElementById('functions'), body = table.tBodies[0];
		const key = {
			name: function (f) { return d.name[f]; }, module: function (f) { return d.module[f]; },
			self: function (f) { return sums.fnSelf[f]; }, total: function (f) { return sums.fnTotal[f]; },
		}[state.sort] || function (f) { return sums.fnSelf[f]; };
		const rows = [];
		for (let f = 1; f < d.nFunctions; f++)
			if (sums.fnTotal[f] > 0 && (!state.pattern || state.pattern.test(d.name[f]) || state.pattern.test(d.module[f])))
				rows.push(f);
		rows.sort(function (a, b) {
			const r = compare(key(a), key(b)) * (state.isUp ? 1 : -1);
			return r || a - b;
		});
		body.replaceChildren(...rows.slice(0, state.all ? rows.length : ROWS).map(function (f) {
			return mperf.element('tr', { fn: f }, [cell(mperf.amount(sums.fnSelf[f]), 'n'), bar(sums.fnSelf[f] / sums.whole),
				cell(mperf.amount(sums.fnTotal[f]), 'n'), bar(sums.fnTotal[f] / sums.whole), nameCell(f, false),
				cell(d.module[f], 'quiet')]);
		}));
		const more = document.getElementById('more');
		more.hidden = state.all || rows.length <= ROWS;
		more.textContent = 'Show all ' + rows.length.toLocaleString('en') + ' functions';
		markSorted(table, state.sort, state.isUp);
	};

	// --- the call tree, or the callers and the callees of a function, one tree after the other

	let opened = new Set(), shown = null, openedFor = '';

	function keyOf(tree, b) {
		const way = [];
		for (; b; b = b.parent)
			way.push(b.fn);
		return (tree.up ? 'up ' : 'down ') + way.join(' ');
	}

	function ordered(tree, b, state) {
		const key = state.order === 'name' ? function (c) { return mperf.label(c); } : function (c) {
			return state.order === 'self' ? c.self : c.total;
		};
		return mperf.callees(tree, b).slice().sort(function (x, y) {
			return compare(key(x), key(y)) * (state.isTreeUp ? 1 : -1) || x.fn - y.fn;
		});
	}

	// What is large enough to have a row.
	function largeOf(tree, b) {
		return ordered(tree, b, shown.state).filter(function (c) { return c.total >= SHARE * tree.sums.whole; });
	}

	function treeRow(tree, b, depth, large) {
		const isOpen = opened.has(keyOf(tree, b)), tr = mperf.element('tr', { tabIndex: -1, box: b, tree: tree, fn: b.fn });
		const says = b.parent || !b.fn ? '' : tree.up ? ', called by' : ', calls';
		tr.setAttribute('role', 'row');
		tr.setAttribute('aria-level', depth + 1);
		if (large > 0)
			tr.setAttribute('aria-expanded', isOpen);
		const name = mperf.element('td', { className: 'fn' });
		name.style.paddingLeft = 6 + 14 * Math.min(depth, 40) + 'px';
		name.append(mperf.element('span', { className: 'twist', textContent: large > 0 ? isOpen ? '▾' : '▸' : '' }),
			mperf.element('span', { className: b.fn ? mperf.data.kind[b.fn] : '', textContent: mperf.label(b) + says }));
		if (shown.state.pattern && b.fn && shown.state.pattern.test(mperf.data.name[b.fn]))
			name.classList.add('matched');
		tr.append(bar(b.total / tree.sums.whole), cell(mperf.amount(b.total), 'n'),
			cell(b.self > 0 ? mperf.amount(b.self) : '', 'n'), name,
			cell(b.fn ? mperf.data.module[b.fn] : '', 'quiet'));
		for (const td of tr.cells)
			td.setAttribute('role', 'gridcell');
		return tr;
	}

	function rowOfRest(text, depth) {
		const tr = mperf.element('tr', {}, [cell(''), cell(''), cell(''), cell(text, 'quiet'), cell('')]);
		tr.cells[3].style.paddingLeft = 21 + 14 * Math.min(depth, 40) + 'px';
		tr.setAttribute('role', 'row');
		for (const td of tr.cells)
			td.setAttribute('role', 'gridcell');
		return tr;
	}

	function drawTree() {
		const body = document.getElementById('calls').tBodies[0], rows = [];
		const open = shown.trees.map(function (tree) { return { tree: tree, box: tree.root, depth: 0 }; }).reverse();
		while (open.length > 0 && rows.length < TREE_ROWS) {
			const at = open.pop();
			if (at.rest) {
				rows.push(rowOfRest(at.rest, at.depth));
				continue;
			}
			const large = largeOf(at.tree, at.box), n = mperf.callees(at.tree, at.box).length - large.length;
			rows.push(treeRow(at.tree, at.box, at.depth, large.length));
			if (!opened.has(keyOf(at.tree, at.box)))
				continue;
			if (n > 0)
				open.push({ rest: n + ' more with less than ' + mperf.percent(SHARE) + ' each', depth: at.depth + 1 });
			for (const c of large.reverse())
				open.push({ tree: at.tree, box: c, depth: at.depth + 1 });
		}
		if (open.length > 0)
			rows.push(rowOfRest('There are more than ' + TREE_ROWS + ' rows: close some.', 0));
		body.replaceChildren(...rows);
		rows[0].tabIndex = 0;
	}

	// Open the way down to where the time divides.
	function openHottest(tree) {
		let at = tree.root;
		for (let i = 0; i < 60; i++) {
			opened.add(keyOf(tree, at));
			const top = mperf.callees(tree, at).reduce(function (m, c) { return !m || c.total > m.total ? c : m; }, null);
			if (!top || top.total < 0.5 * at.total)
				return;
			at = top;
		}
	}

	mperf.showCalls = function (trees, state) {
		const what = [state.way, state.fn, state.choice.id, state.side, state.process, state.thread, state.from, state.to].join();
		shown = { trees: trees, state: state };
		if (what !== openedFor) // else what was closed stays so
			trees.forEach(openHottest);
		openedFor = what;
		drawTree();
		markSorted(document.getElementById('calls'), state.order, state.isTreeUp);
	};

	function toggle(tr, isWanted) {
		const key = keyOf(tr.tree, tr.box);
		if (isWanted === opened.has(key))
			return;
		if (isWanted)
			opened.add(key);
		else
			opened.delete(key);
		drawTree();
		for (const other of document.getElementById('calls').tBodies[0].rows)
			if (other.box && keyOf(other.tree, other.box) === key)
				focusRow(other);
	}

	function focusRow(tr) {
		for (const other of tr.parentNode.rows)
			other.tabIndex = -1;
		tr.tabIndex = 0;
		tr.focus();
	}

	// To the next row in a direction that has a function.
	function step(tr, by) {
		do
			tr = tr[by];
		while (tr && !tr.box);
		if (tr)
			focusRow(tr);
	}

	function closeOrLeave(tr) {
		if (opened.has(keyOf(tr.tree, tr.box)) && tr.hasAttribute('aria-expanded'))
			toggle(tr, false);
		else
			for (const other of tr.parentNode.rows)
				if (tr.box.parent && other.tree === tr.tree && other.box === tr.box.parent)
					focusRow(other);
	}

	mperf.beginTables = function (sortBy) {
		const body = document.getElementById('calls').tBodies[0];
		for (const button of document.querySelectorAll('th[data-sort] button'))
			button.addEventListener('click', function () {
				sortBy(button.closest('table').id, button.parentNode.dataset.sort);
			});
		body.addEventListener('click', function (event) {
			const tr = event.target.closest('tr');
			if (tr && tr.box) {
				focusRow(tr);
				toggle(tr, !opened.has(keyOf(tr.tree, tr.box)));
			}
		});
		body.addEventListener('dblclick', function (event) {
			const tr = event.target.closest('tr');
			if (tr && tr.fn)
				mperf.showAround(tr.fn);
		});
		body.addEventListener('keydown', function (event) {
			const tr = event.target.closest('tr');
			if (!tr || !tr.box || event.ctrlKey || event.metaKey || event.altKey)
				return;
			const keys = {
				ArrowDown: function () { step(tr, 'nextSibling'); },
				ArrowUp: function () { step(tr, 'previousSibling'); },
				ArrowRight: function () { toggle(tr, true); },
				ArrowLeft: function () { closeOrLeave(tr); },
				Enter: function () { if (tr.fn) mperf.showAround(tr.fn); },
			};
			if (keys[event.key]) {
				event.preventDefault();
				keys[event.key]();
			}
		});
	};
})();
