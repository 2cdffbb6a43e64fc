// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lanes over time: CPU time as a hill, waiting as a strip below it. A range that is dragged is what all views show.
'use strict';

(function () {
	const LANE = 30, STRIP = 5, GAP = 4, LANES_MAX = 9, AXIS = 18, NAMES = 190, NAMES_NARROW = 96;
	// Source: Okabe and Ito, colours that differ for those who see fewer of them, too.
	const WAITS = [['lock', '#E69F00'], ['disk', '#D55E00'], ['network', '#56B4E9'], ['pipe', '#0072B2'],
		['poll', '#b8a800'], ['sleep', '#8d8d8d'], ['child', '#6b4c9a'], ['fault', '#CC79A7'], ['hart', '#009E73']];
	const OTHER = '#7a5c3a';

	const canvas = document.getElementById('timeline');
	const said = document.getElementById('range');
	let lanes = [], scale = 1, change = null, dragged = null;

	mperf.waitColour = function (kind) {
		const found = WAITS.find(function (w) { return kind.startsWith(w[0]); });
		return found ? found[1] : OTHER;
	};

	function keyOf(by) {
		const d = mperf.data;
		if (by === 'hart')
			return function (row) { return d.hart[row] < 0 ? 'unknown' : 'CPU ' + d.hart[row]; };
		if (by === 'thread')
			return function (row) { return mperf.threadKey(d.task[row]); };
		if (by === 'cgroup')
			return function (row) { return d.cgroup[d.task[row]] || '/'; };
		return function (row) { return mperf.processKey(d.task[row]); };
	}

	// The lanes with most CPU time and waiting; the rest together.
	mperf.makeLanes = function (state) {
		const d = mperf.data, key = keyOf(state.lanes), found = new Map();
		const waits = d.texts.map(mperf.isWaiting);
		const cpu = mperf.choices()[0].events;
		for (let i = 0; i < d.nRows; i++) {
			const wait = waits[d.event[i]];
			if ((!wait && !cpu.has(d.event[i])) || (wait && state.lanes === 'hart') || !mperf.isTaskChosen(state, d.task[i]))
				continue;
			const k = key(i);
			let lane = found.get(k);
			if (!lane)
				found.set(k, lane = { name: k, cpu: 0, wait: 0, rows: [] });
			lane[wait ? 'wait' : 'cpu'] += d.value[i];
			lane.rows.push(i);
		}
		lanes = Array.from(found.values());
		if (state.lanes === 'hart')
			lanes.sort(function (a, b) { return a.name.localeCompare(b.name, 'en', { numeric: true }); });
		else
			lanes.sort(function (a, b) { return b.cpu - a.cpu || b.wait - a.wait; });
		if (lanes.length > LANES_MAX) {
			const rest = lanes.splice(LANES_MAX - 1), other = { name: rest.length + ' others', isRest: true, cpu: 0, wait: 0, rows: [] };
			for (const lane of rest) {
				other.cpu += lane.cpu;
				other.wait += lane.wait;
				for (const row of lane.rows)
					other.rows.push(row);
			}
			lanes.push(other);
		}
		mperf.drawTimeline(state);
	};

	function geometry() {
		const width = Math.max(280, canvas.parentElement.clientWidth);
		const names = width < 600 ? NAMES_NARROW : NAMES;
		return { width: width, names: names, plot: width - names, height: lanes.length * (LANE + GAP) + AXIS };
	}

	// CPU time and waiting of a lane by column, and the wait that is most.
	function columnsOf(lane, n) {
		const d = mperf.data, cpu = new Float64Array(n), wait = new Float64Array(n), kinds = Array.from({ length: n });
		for (const row of lane.rows) {
			// A bucket may be wider than a column: it fills all of them alike. A wait was found at its end.
			const event = d.texts[d.event[row]], last = d.at[row] + 1;
			const begin = mperf.isWaiting(event) ? Math.max(0, last - d.value[row] / 1000 / d.bucket) : d.at[row];
			const from = begin / d.nBuckets * n, to = last / d.nBuckets * n;
			for (let c = Math.floor(from); c < to && c < n; c++) {
				const part = d.value[row] * (Math.min(to, c + 1) - Math.max(from, c)) / (to - from);
				if (!mperf.isWaiting(event)) {
					cpu[c] += part;
					continue;
				}
				wait[c] += part;
				const of = kinds[c] || (kinds[c] = new Map());
				of.set(event.slice(8), (of.get(event.slice(8)) || 0) + part);
			}
		}
		return { cpu: cpu, wait: wait, kinds: kinds };
	}

	// Columns no narrower than three samples are apart: else a hill would be a comb.
	function columnCount(pixels) {
		const d = mperf.data;
		return Math.max(1, Math.min(Math.floor(pixels), 2000, Math.floor(d.nBuckets * d.bucket * 1000 / (3 * d.period))));
	}

	function most(kinds) {
		let name = '', value = 0;
		for (const [k, v] of kinds)
			if (v > value)
				[name, value] = [k, v];
		return name;
	}

	mperf.prepare = function (canvas, width, height) {
		const ratio = Math.max(1, window.devicePixelRatio || 1), c = canvas.getContext('2d');
		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round(height * ratio);
		canvas.style.height = height + 'px';
		c.setTransform(ratio, 0, 0, ratio, 0, 0);
		c.clearRect(0, 0, width, height);
		c.textBaseline = 'middle';
		c.font = '12px system-ui, "DejaVu Sans", sans-serif';
		return c;
	};

	mperf.colour = function (name) {
		return getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
	};

	// As much of a text as fits.
	mperf.fitted = function (c, text, width) {
		if (c.measureText(text).width <= width)
			return text;
		let from = 0, to = text.length;
		while (from < to) {
			const half = from + to + 1 >> 1;
			if (c.measureText(text.slice(0, half) + '…').width <= width)
				from = half;
			else
				to = half - 1;
		}
		return from > 1 ? text.slice(0, from) + '…' : '';
	};

	function drawLane(c, lane, y, g) {
		const n = columnCount(g.plot), columns = columnsOf(lane, n), w = g.plot / n;
		const perColumn = mperf.data.nBuckets * mperf.data.bucket * 1000 / n; // µs of one hart
		const hill = LANE - STRIP - 1, top = lane.peak * perColumn;
		c.fillStyle = mperf.colour('lane');
		c.fillRect(g.names, y, g.plot, hill);
		c.fillStyle = mperf.colour('hill');
		for (let i = 0; i < n; i++) {
			const h = Math.min(1, columns.cpu[i] / top) * hill;
			if (h > 0)
				c.fillRect(g.names + i * w, y + hill - h, w + 0.3, h);
		}
		for (let i = 0; i < n; i++)
			if (columns.wait[i] > 0) {
				c.fillStyle = mperf.waitColour(most(columns.kinds[i]));
				c.fillRect(g.names + i * w, y + hill + 1, w + 0.3, STRIP);
			}
		c.fillStyle = mperf.colour('ink');
		c.fillText(mperf.fitted(c, lane.name, g.names - 10), 0, y + 7);
		c.fillStyle = mperf.colour('quiet');
		c.fillText(mperf.fitted(c, mperf.amount(lane.cpu) + (lane.wait ? ', waited ' + mperf.amount(lane.wait) : ''),
			g.names - 10), 0, y + 22);
	}

	// The most harts at once that a lane needs; a hill that fills its lane says that many.
	function findPeaks() {
		for (const lane of lanes) {
			const n = columnCount(400), columns = columnsOf(lane, n);
			const per = mperf.data.nBuckets * mperf.data.bucket * 1000 / n;
			lane.peak = mperf.data.unit === 'count' ? 0 : 1;
			for (const cpu of columns.cpu)
				lane.peak = Math.max(lane.peak, cpu / per);
		}
		scale = lanes.reduce(function (m, lane) { return Math.max(m, lane.peak); }, mperf.data.unit === 'count' ? 1e-12 : 1);
		for (const lane of lanes)
			lane.peak = scale;
	}

	// A step of 1, 2 or 5 with zeros, or as clocks have them.
	function tickStep(ms, most) {
		const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5,
			36e5, 72e5, 108e5, 216e5, 432e5, 864e5, 1728e5, 6048e5];
		return steps.find(function (s) { return ms / s <= most; }) || ms;
	}

	// Kinds of waits that there are, with their colours.
	function drawLegend() {
		const kinds = new Set(mperf.data.events.filter(function (e) { return mperf.isWaiting(e.name); }).map(function (e) {
			return e.name.slice(8);
		}));
		const made = Array.from(kinds).sort().map(function (kind) {
			const mark = mperf.element('i');
			mark.style.background = mperf.waitColour(kind);
			return mperf.element('span', {}, [mark, kind === 'hart' ? 'waited for a CPU' : kind]);
		});
		document.getElementById('waits').replaceChildren(...made);
	}

	function drawAxis(c, g) {
		const y = lanes.length * (LANE + GAP), n = mperf.data.nBuckets, step = tickStep(n * mperf.data.bucket, g.plot / 90);
		c.fillStyle = mperf.colour('quiet');
		for (let ms = 0; ms <= n * mperf.data.bucket; ms += step) {
			const x = g.names + g.plot * ms / (n * mperf.data.bucket), text = mperf.clock(ms / mperf.data.bucket);
			c.fillRect(x, y, 1, 4);
			c.textAlign = ms === 0 ? 'left' : 'center';
			if (x + c.measureText(text).width / 2 <= g.width)
				c.fillText(text, x, y + 11);
		}
		c.textAlign = 'left';
	}

	mperf.drawTimeline = function (state) {
		const g = geometry(), c = mperf.prepare(canvas, g.width, g.height);
		if (mperf.data.nBuckets === 0)
			return;
		findPeaks();
		lanes.forEach(function (lane, i) { drawLane(c, lane, i * (LANE + GAP), g); });
		drawAxis(c, g);
		const n = mperf.data.nBuckets, from = g.names + state.from / n * g.plot, to = g.names + state.to / n * g.plot;
		const isWhole = state.from === 0 && state.to === n;
		if (!isWhole) {
			c.fillStyle = mperf.colour('veil');
			c.fillRect(g.names, 0, from - g.names, g.height - AXIS);
			c.fillRect(to, 0, g.width - to, g.height - AXIS);
			c.fillStyle = mperf.colour('accent');
			c.fillRect(from - 1, 0, 2, g.height - AXIS);
			c.fillRect(to - 1, 0, 2, g.height - AXIS);
		}
		said.textContent = (isWhole ? 'All of ' : mperf.clock(state.from) + ' to ' + mperf.clock(state.to) + ', ' +
			mperf.span(state.to - state.from) + ' of ') + mperf.span(n) + (scale > 1.05 && mperf.data.unit !== 'count' ? '; a full lane is ' + scale.toFixed(1) + ' CPUs' : '');
		canvas.setAttribute('aria-valuetext', said.textContent);
		canvas.setAttribute('aria-valuemin', 0);
		canvas.setAttribute('aria-valuemax', n);
		canvas.setAttribute('aria-valuenow', state.from);
	};

	function bucketAt(event) {
		const g = geometry(), x = event.clientX - canvas.getBoundingClientRect().left;
		return Math.max(0, Math.min(mperf.data.nBuckets, (x - g.names) / g.plot * mperf.data.nBuckets));
	}

	function choose(a, b) {
		const n = mperf.data.nBuckets, from = Math.max(0, Math.floor(Math.min(a, b)));
		const to = Math.min(n, Math.max(from + 1, Math.ceil(Math.max(a, b))));
		change({ from: Math.min(from, to - 1), to: to });
	}

	mperf.beginTimeline = function (get, changed) {
		change = changed;
		drawLegend();
		canvas.addEventListener('pointerdown', function (event) {
			if (event.button !== 0)
				return;
			const g = geometry(), y = event.clientY - canvas.getBoundingClientRect().top;
			const lane = lanes[Math.floor(y / (LANE + GAP))];
			if (event.clientX - canvas.getBoundingClientRect().left < g.names) { // the name: only this one
				if (lane && !lane.isRest && get().lanes === 'process')
					change({ process: get().process === lane.name ? '' : lane.name });
				else if (lane && !lane.isRest && get().lanes === 'thread')
					change({ thread: get().thread === lane.name ? '' : lane.name });
				return;
			}
			dragged = bucketAt(event);
			canvas.setPointerCapture(event.pointerId);
		});
		canvas.addEventListener('pointermove', function (event) {
			if (dragged === null || Math.abs(bucketAt(event) - dragged) * geometry().plot < 3 * mperf.data.nBuckets)
				return;
			const b = bucketAt(event), state = Object.assign({}, get());
			state.from = Math.min(dragged, b);
			state.to = Math.max(dragged, b);
			mperf.drawTimeline(state);
		});
		canvas.addEventListener('pointerup', function (event) {
			if (dragged === null)
				return;
			const a = dragged, b = bucketAt(event);
			dragged = null;
			if (Math.abs(b - a) * geometry().plot < 3 * mperf.data.nBuckets)
				change({ from: 0, to: mperf.data.nBuckets }); // a click: all
			else
				choose(a, b);
		});
		canvas.addEventListener('pointercancel', function () {
			dragged = null;
			mperf.drawTimeline(get());
		});
		canvas.addEventListener('keydown', function (event) {
			if (event.ctrlKey || event.metaKey || event.altKey) // the browser's own
				return;
			const s = get(), n = mperf.data.nBuckets, span = s.to - s.from, step = Math.max(1, Math.round(span / 10));
			const move = function (by) {
				const from = Math.max(0, Math.min(n - span, s.from + by));
				change({ from: from, to: from + span });
			};
			const keys = {
				ArrowLeft: function () { if (event.shiftKey) choose(s.from, s.to - step); else move(-step); },
				ArrowRight: function () { if (event.shiftKey) choose(s.from, s.to + step); else move(step); },
				'+': function () { choose(s.from + span / 4, s.to - span / 4); },
				'-': function () { choose(s.from - span / 2, s.to + span / 2); },
				Home: function () { move(-n); },
				End: function () { move(n); },
				Escape: function () { change({ from: 0, to: n }); },
			};
			if (keys[event.key]) {
				event.preventDefault();
				event.stopPropagation();
				keys[event.key]();
			}
		});
	};
})();
