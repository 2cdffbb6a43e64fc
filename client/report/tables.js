// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The call tree and the functions as tables: each column sorts.
'use strict';

(function () {
	const ROWS = 200, SHARE = 0.001;

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
			return mperf.element('tr', {}, [cell(mperf.amount(sums.fnSelf[f]), 'n'), bar(sums.fnSelf[f] / sums.whole),
				cell(mperf.amount(sums.fnTotal[f]), 'n'), bar(sums.fnTotal[f] / sums.whole), nameCell(f, false),
				cell(d.module[f], 'quiet')]);
		}));
		const more = document.getElementById('more');
		more.hidden = state.all || rows.length <= ROWS;
		more.textContent = 'Show all ' + rows.length.toLocaleString('en') + ' functions';
		markSorted(table, state.sort, state.isUp);
	};

	// --- the call tree

	let opened = new Set(), shown = null;

	function keyOf(b) {
		const way = [];
		for (; b; b = b.parent)
			way.push(b.fn);
		return way.join(' ');
	}

	function ordered(tree, b, state) {
		const key = state.order === 'name' ? function (c) { return mperf.label(c); } : function (c) {
			return state.order === 'self' ? c.self : c.total;
		};
		return mperf.callees(tree, b).slice().sort(function (x, y) {
			return compare(key(x), key(y)) * (state.isUp ? 1 : -1) || x.fn - y.fn;
		});
	}

	function treeRow(tree, b, depth, state) {
		const has = mperf.callees(tree, b).length > 0, isOpen = opened.has(keyOf(b));
		const tr = mperf.element('tr', { tabIndex: -1 });
		tr.setAttribute('role', 'row');
		tr.setAttribute('aria-level', depth + 1);
		if (has)
			tr.setAttribute('aria-expanded', isOpen);
		tr.box = b;
		const name = mperf.element('td', { className: 'fn' });
		name.style.paddingLeft = 6 + 14 * Math.min(depth, 40) + 'px';
		name.append(mperf.element('span', { className: 'twist', textContent: has ? isOpen ? '▾' : '▸' : '' }),
			mperf.element('span', { className: b.fn ? mperf.data.kind[b.fn] : '', textContent: mperf.label(b) }));
		if (state.pattern && b.fn && state.pattern.test(mperf.data.name[b.fn]))
			name.classList.add('matched');
		tr.append(bar(b.total / tree.sums.whole), cell(mperf.amount(b.total), 'n'),
			cell(b.self > 0 ? mperf.amount(b.self) : '', 'n'), name,
			cell(b.fn ? mperf.data.module[b.fn] : '', 'quiet'));
		for (const td of tr.cells)
			td.setAttribute('role', 'gridcell');
		return tr;
	}

	function drawTree() {
		const body = document.getElementById('calls').tBodies[0], rows = [];
		const open = [[shown.tree.root, 0]];
		while (open.length > 0 && rows.length < 5000) {
			const [b, depth] = open.pop();
			rows.push(treeRow(shown.tree, b, depth, shown.state));
			if (!opened.has(keyOf(b)))
				continue;
			const list = ordered(shown.tree, b, shown.state).filter(function (c) {
				return c.total >= SHARE * shown.tree.sums.whole;
			});
			for (const c of list.reverse())
				open.push([c, depth + 1]);
		}
		body.replaceChildren(...rows);
		if (rows.length > 0)
			rows[0].tabIndex = 0;
	}

	// Open the way down to where the time divides.
	function openHottest(tree) {
		let at = tree.root;
		for (let i = 0; i < 60; i++) {
			opened.add(keyOf(at));
			const callees = mperf.callees(tree, at), top = callees.reduce(function (m, c) {
				return !m || c.total > m.total ? c : m;
			}, null);
			if (!top || top.total < 0.5 * at.total)
				return;
			at = top;
		}
	}

	mperf.showCalls = function (tree, state) {
		shown = { tree: tree, state: state };
		openHottest(tree);
		drawTree();
		markSorted(document.getElementById('calls'), state.order, state.isUp);
	};

	function toggle(b, isWanted) {
		const key = keyOf(b);
		if (isWanted === opened.has(key))
			return;
		if (isWanted)
			opened.add(key);
		else
			opened.delete(key);
		drawTree();
		for (const tr of document.getElementById('calls').tBodies[0].rows)
			if (keyOf(tr.box) === key)
				focusRow(tr);
	}

	function focusRow(tr) {
		for (const other of tr.parentNode.rows)
			other.tabIndex = -1;
		tr.tabIndex = 0;
		tr.focus();
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
				toggle(tr.box, !opened.has(keyOf(tr.box)));
			}
		});
		body.addEventListener('dblclick', function (event) {
			const tr = event.target.closest('tr');
			if (tr && tr.box && tr.box.fn)
				mperf.showAround(tr.box.fn);
		});
		body.addEventListener('keydown', function (event) {
			const tr = event.target.closest('tr');
			if (!tr || !tr.box)
				return;
			const keys = {
				ArrowDown: function () { if (tr.nextSibling) focusRow(tr.nextSibling); },
				ArrowUp: function () { if (tr.previousSibling) focusRow(tr.previousSibling); },
				ArrowRight: function () { toggle(tr.box, true); },
				ArrowLeft: function () { toggle(tr.box, false); },
				Enter: function () { if (tr.box.fn) mperf.showAround(tr.box.fn); },
			};
			if (keys[event.key]) {
				event.preventDefault();
				keys[event.key]();
			}
		});
		body.addEventListener('focusin', function (event) {
			const tr = event.target.closest('tr');
			mperf.rowFunction = tr && tr.box ? tr.box.fn : 0;
		});
	};
})();
