// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The page: what is chosen, in controls and in the address, and the view that shows it.
'use strict';

(function () {
	const byId = function (id) { return document.getElementById(id); };
	const controls = { kind: byId('kind'), side: byId('side'), process: byId('process'), thread: byId('thread'),
		lanes: byId('lanes') };
	const views = Array.from(document.querySelectorAll('[role=tab]'));
	const ways = Array.from(document.querySelectorAll('[data-way]'));
	const field = byId('search');
	let state = null, sums = null;

	// What whoever made the page asked for.
	function first() {
		const list = mperf.choices(), wanted = controls.kind.dataset.first;
		return list.find(function (c) { return c.id === wanted; }) || list[0];
	}

	function fresh() {
		return { view: 'graph', way: 'down', fn: 0, choice: first(), side: 'all', process: '', thread: '', from: 0,
			to: mperf.data.nBuckets, lanes: 'process', find: '', sort: 'self', order: 'total', isUp: false, isTreeUp: false, all: false, pattern: null };
	}

	// --- the address

	const SORTS = { self: 1, total: 1, name: 1, module: 1 };
	const KEPT = { view: 'graph', way: 'down', side: 'all', process: '', thread: '', lanes: 'process', find: '', sort: 'self', order: 'total' };

	function remember() {
		const kept = new URLSearchParams();
		for (const [name, usual] of Object.entries(KEPT))
			if (state[name] !== usual)
				kept.set(name, state[name]);
		if (state.choice.id !== first().id)
			kept.set('kind', state.choice.id);
		if (state.from > 0 || state.to < mperf.data.nBuckets)
			kept.set('time', state.from + '-' + state.to);
		if (state.fn)
			kept.set('of', state.fn);
		if (state.isUp)
			kept.set('up', 1);
		if (state.isTreeUp)
			kept.set('treeup', 1);
		const zoom = mperf.zoomed();
		if (state.view === 'graph' && zoom.length > 0)
			kept.set('at', zoom.join('.'));
		try {
			history.replaceState(null, '', '#' + kept);
		} catch (e) { /* a page in a frame may have no address of its own */ }
	}

	function restore() {
		const kept = new URLSearchParams(location.hash.slice(1)), n = mperf.data.nBuckets;
		state = fresh();
		for (const name of Object.keys(KEPT))
			if (kept.has(name))
				state[name] = kept.get(name);
		state.choice = mperf.choices().find(function (c) { return c.id === kept.get('kind'); }) || state.choice;
		const time = /^(\d+)-(\d+)$/.exec(kept.get('time') || '');
		if (time && +time[1] < +time[2] && +time[2] <= n)
			[state.from, state.to] = [+time[1], +time[2]];
		state.fn = Math.min(Math.max(0, parseInt(kept.get('of'), 10) || 0), mperf.data.nFunctions - 1);
		state.isUp = kept.has('up');
		state.isTreeUp = kept.has('treeup');
		if (!Object.hasOwn(SORTS, state.sort))
			state.sort = 'self';
		if (!Object.hasOwn(SORTS, state.order))
			state.order = 'total';
		const tasks = Array.from({ length: mperf.data.nTasks }, function (_, i) { return i; });
		if (!tasks.some(function (t) { return mperf.processKey(t) === state.process; }))
			state.process = '';
		if (!tasks.some(function (t) { return mperf.isTaskChosen(state, t); }))
			state.thread = '';
		if (!views.some(function (v) { return v.dataset.show === state.view; }))
			state.view = 'graph';
		if (!ways.some(function (w) { return w.dataset.way === state.way; }) || (state.way === 'around' && !state.fn))
			state.way = 'down';
		field.value = state.find;
		fillControls();
		mperf.makeLanes(state);
		update();
		mperf.zoomTo((kept.get('at') || '').split('.').map(Number).filter(Boolean));
		mperf.drawGraph();
		remember();
	}

	// --- controls

	function fill(select, options, value) {
		select.replaceChildren(...options.map(function (o) {
			return mperf.element('option', { value: o[0], textContent: o[1], selected: o[0] === value });
		}));
		select.disabled = options.length < 2;
	}

	// Processes or threads with most time first, each once.
	function keysOf(key, filter) {
		const d = mperf.data, found = new Map();
		for (let i = 0; i < d.nRows; i++)
			if (filter(d.task[i])) {
				const k = key(d.task[i]);
				found.set(k, (found.get(k) || 0) + d.value[i] / (mperf.isWaiting(d.texts[d.event[i]]) ? 1e6 : 1));
			}
		return Array.from(found).sort(function (a, b) { return b[1] - a[1]; }).slice(0, 500).map(function (f) {
			return [f[0], f[0]];
		});
	}

	function fillControls() {
		const all = function () { return true; };
		fill(controls.kind, mperf.choices().map(function (c) { return [c.id, c.label]; }), state.choice.id);
		fill(controls.process, [['', 'all processes']].concat(keysOf(mperf.processKey, all)), state.process);
		fill(controls.thread, [['', 'all threads']].concat(keysOf(mperf.threadKey, function (task) {
			return !state.process || mperf.processKey(task) === state.process;
		})), state.thread);
		controls.side.value = state.side;
		controls.lanes.value = state.lanes;
	}

	function pattern(text) {
		const flags = /[A-Z]/.test(text) ? '' : 'i';
		field.classList.remove('wrong');
		if (!text)
			return null;
		try {
			return new RegExp(text, flags);
		} catch (e) {
			field.classList.add('wrong');
			return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), flags);
		}
	}

	// --- what is shown

	function treesOf() {
		if (state.way === 'up')
			return [mperf.treeUp(sums)];
		if (state.way === 'around' && state.fn)
			return [mperf.treeAround(sums, state.fn, true), mperf.treeAround(sums, state.fn, false)];
		return [mperf.treeDown(sums)];
	}

	function sayMatched() {
		let text = '';
		if (state.pattern) {
			let sum = 0;
			const d = mperf.data, inside = new Uint8Array(d.nNodes);
			const hits = d.name.map(function (name, f) { return f > 0 && state.pattern.test(name); });
			for (let i = 1; i < d.nNodes; i++) {
				inside[i] = inside[d.caller[i]] || hits[d.fn[i]] ? 1 : 0;
				if (inside[i])
					sum += sums.self[i];
			}
			text = mperf.percent(sums.whole > 0 ? sum / sums.whole : 0) + ' matched';
		}
		byId('matched').textContent = text;
	}

	function show() {
		for (const tab of views) {
			const isShown = tab.dataset.show === state.view;
			tab.setAttribute('aria-selected', isShown);
			tab.tabIndex = isShown ? 0 : -1;
			byId(tab.getAttribute('aria-controls')).hidden = !isShown;
		}
		for (const button of ways) {
			button.setAttribute('aria-pressed', button.dataset.way === state.way);
			button.disabled = button.dataset.way === 'around' && !state.fn;
		}
		byId('around').textContent = state.fn ? 'Around ' + mperf.data.name[state.fn] : 'Around a function';
		byId('ways').hidden = state.view === 'functions';
		const trees = treesOf();
		if (state.view === 'graph')
			mperf.showGraph(trees, state.pattern);
		else if (state.view === 'tree')
			mperf.showCalls(trees, state);
		else if (state.view === 'functions')
			mperf.showFunctions(sums, state);
		byId('whole').textContent = mperf.amount(sums.whole) ;
		sayMatched();
	}

	function update() {
		state.pattern = pattern(state.find);
		sums = mperf.sum(state);
		show();
	}

	function change(what) {
		const lanes = ['process', 'thread', 'lanes'].some(function (n) { return n in what; });
		Object.assign(state, what);
		if (lanes) {
			fillControls();
			mperf.makeLanes(state);
		} else
			mperf.drawTimeline(state);
		update();
		remember();
	}

	mperf.showAround = function (fn) {
		change({ fn: fn, way: 'around', view: 'graph' });
		byId('flame').focus();
	};

	async function copy() {
		const row = document.activeElement.closest('tr');
		const fn = state.view === 'graph' ? mperf.pointed() : row ? row.fn : 0;
		if (!fn)
			return;
		try {
			await navigator.clipboard.writeText(mperf.data.name[fn]);
			byId('matched').textContent = 'copied ' + mperf.data.name[fn];
		} catch (e) {
			byId('matched').textContent = 'this browser does not let the page copy';
		}
	}

	function begin() {
		mperf.beginTimeline(function () { return state; }, change);
		mperf.beginGraph(remember);
		mperf.beginTables(function (table, column) {
			const which = table === 'calls' ? 'order' : 'sort', isText = column === 'name' || column === 'module';
			const up = which === 'order' ? 'isTreeUp' : 'isUp';
			change({ [which]: column, [up]: state[which] === column ? !state[up] : isText });
		});
		views.forEach(function (tab, i) {
			tab.addEventListener('click', function () { change({ view: tab.dataset.show }); });
			tab.addEventListener('keydown', function (event) {
				const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
				if (!by)
					return;
				const next = views[(i + by + views.length) % views.length];
				change({ view: next.dataset.show });
				next.focus();
			});
		});
		for (const button of ways)
			button.addEventListener('click', function () { change({ way: button.dataset.way }); });
		controls.kind.addEventListener('change', function () {
			change({ choice: mperf.choices().find(function (c) { return c.id === controls.kind.value; }) });
		});
		controls.process.addEventListener('change', function () { change({ process: controls.process.value, thread: '' }); });
		for (const name of ['side', 'thread', 'lanes'])
			controls[name].addEventListener('change', function () { change({ [name]: controls[name].value }); });
		field.addEventListener('input', function () { change({ find: field.value }); });
		byId('more').addEventListener('click', function () { change({ all: true }); });
		byId('reset').addEventListener('click', function () {
			location.hash = '';
			restore();
		});
		window.addEventListener('hashchange', restore);
		const redraw = function () {
			mperf.drawTimeline(state);
			mperf.drawGraph();
		};
		window.addEventListener('resize', redraw);
		window.addEventListener('beforeprint', redraw);
		window.addEventListener('afterprint', redraw);
		window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
		window.addEventListener('keydown', function (event) {
			const isTyping = event.target === field || event.target.tagName === 'SELECT';
			if (event.key === '/' && !isTyping) {
				event.preventDefault();
				field.focus();
				field.select();
			} else if (event.key === 'Escape' && state.find) {
				field.value = '';
				change({ find: '' });
			} else if (event.key === 'c' && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey)
				copy();
		});
	}

	mperf.load().then(function (d) {
		mperf.data = d;
		if (d.nRows === 0) {
			byId('details').textContent = 'There are no samples.';
			return;
		}
		document.body.classList.add('live');
		byId('details').textContent = byId('flame').dataset.hint;
		begin();
		restore();
		document.body.classList.add('ready');
	}).catch(function (e) {
		document.body.classList.remove('live');
		byId('details').textContent = 'The pictures cannot be shown (' + e.message + '); there are the tables.';
	});
})();
