// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Zoom, search and details over the SVG that is already there, and the other pictures of the page, which are drawn
// when they are chosen. Text only ever goes back into the page as textContent.
(function () {
	'use strict';

	const DRAWN = 1200, ROW = 18, BOX = 17, PAD = 4, BASE = 12.5, NEAR = 2e-6, LETTERS_MIN = 3;
	const header = document.querySelector('header');
	const main = document.querySelector('main');
	const field = document.getElementById('search');
	const matched = document.getElementById('matched');
	const details = document.getElementById('details');
	const reset = document.getElementById('reset');
	const omit = document.getElementById('omit');
	const buttons = Array.from(document.querySelectorAll('[data-button]'));
	const hint = details.textContent;

	// --- pictures: boxes with places as shares of the whole (x0, w0), and as they are without those left out (x, w)

	const data = document.getElementById('views');
	const others = data ? JSON.parse(data.textContent) : { views: {}, strings: [] };
	const pictures = new Map();

	// The same functions under the same callers have the same key in all pictures.
	function addKey(box) {
		const text = box.name + '\n' + box.place;
		let a = box.parent ? box.parent.hash[0] : 2166136261, b = box.parent ? box.parent.hash[1] : 1540483477;
		for (let i = 0; i < text.length; i++) {
			a = Math.imul(a ^ text.charCodeAt(i), 16777619);
			b = Math.imul(b ^ text.charCodeAt(i), 2246822507) + (b >>> 15) | 0;
		}
		box.hash = [a, b];
		box.key = (a >>> 0).toString(36) + '-' + (b >>> 0).toString(36);
	}

	function addPicture(name, svg, boxes) {
		const levels = boxes.reduce(function (most, box) { return Math.max(most, box.level); }, 0) + 1;
		const picture = { name: name, svg: svg, boxes: boxes, height: levels * ROW, byKey: new Map(), gone: [] };
		for (const box of boxes) { // parents come first
			addKey(box);
			box.x = box.x0;
			box.w = box.w0;
			box.group.box = box;
			picture.byKey.set(box.key, box);
		}
		svg.addEventListener('click', function (event) {
			const box = found(event);
			back = focus;
			if (box)
				zoom(box);
		});
		svg.addEventListener('mouseover', function (event) { show(found(event)); });
		svg.addEventListener('mouseleave', function () { show(focus); });
		pictures.set(name, picture);
		return picture;
	}

	// The box below, by their places: a callee is inside of its caller.
	function findParents(boxes) {
		const levels = [];
		for (const box of boxes)
			(levels[box.level] = levels[box.level] || []).push(box);
		for (const level of levels)
			level.sort(function (a, b) { return a.x0 - b.x0; });
		for (const box of boxes) {
			if (box.level === 0)
				continue;
			const below = levels[box.level - 1], middle = box.x0 + box.w0 / 2;
			let from = 0, to = below.length;
			while (to - from > 1) {
				const half = from + to >> 1;
				if (below[half].x0 <= middle)
					from = half;
				else
					to = half;
			}
			box.parent = below[from];
		}
	}

	function readPicture(name, svg) {
		const height = svg.viewBox.baseVal.height;
		const boxes = Array.from(svg.querySelectorAll('g.f'), function (group) {
			const rect = group.querySelector('rect');
			const lines = group.querySelector('title').textContent.split('\n');
			return {
				group: group, rect: rect, text: group.querySelector('text'), parent: null,
				x0: rect.getAttribute('x') / DRAWN, w0: rect.getAttribute('width') / DRAWN,
				level: Math.round((height - rect.getAttribute('y')) / ROW) - 1,
				name: lines[0], rest: lines.slice(1).join(' · '),
				place: lines.length > 2 ? lines[1] : '',
			};
		});
		findParents(boxes);
		boxes.sort(function (a, b) { return a.level - b.level; });
		return addPicture(name, svg, boxes);
	}

	function element(name, inside) {
		const made = document.createElementNS('http://www.w3.org/2000/svg', name);
		for (const part of inside || [])
			made.append(part);
		return made;
	}

	function makeBox(row, boxes) {
		const parent = boxes.length > 0 ? boxes[row[0]] : null;
		const name = others.strings[row[4]], place = others.strings[row[5]], figures = others.strings[row[6]];
		const rest = place ? [place, figures] : [figures];
		const rect = element('rect'), text = element('text');
		const group = element('g', [element('title', [[name].concat(rest).join('\n')]), rect, text]);
		group.setAttribute('class', 'f ' + row[3]);
		rect.setAttribute('height', BOX);
		rect.setAttribute('rx', 2);
		return {
			group: group, rect: rect, text: text, parent: parent, x0: row[1] / DRAWN, w0: row[2] / DRAWN,
			level: parent ? parent.level + 1 : 0, name: name, rest: rest.join(' · '), place: place,
		};
	}

	function makePicture(name) {
		const svg = shown.svg.cloneNode(false), boxes = [];
		svg.append(shown.svg.querySelector('title').cloneNode(true));
		for (const row of others.views[name]) {
			const box = makeBox(row, boxes);
			boxes.push(box);
			svg.append(box.group);
		}
		return addPicture(name, svg, boxes);
	}

	// --- layout

	// wish: keys of the box that was chosen last, and of its callers, outermost first; focus: the innermost of these
	// that the picture has
	let shown = readPicture(data ? data.dataset.first : '', main.querySelector('svg'));
	let wish = [], focus = null, flipped = false;
	let back = null; // what was zoomed to before

	const letter = (function () {
		const probe = shown.boxes[0].text, kept = probe.textContent;
		probe.textContent = 'm'.repeat(50);
		const n = probe.getComputedTextLength() / 50;
		probe.textContent = kept;
		return n > 0 ? n : 6.7;
	})();

	function label(name, width) {
		const n = Math.floor((width - 2 * PAD) / letter);
		if (n < LETTERS_MIN)
			return '';
		return name.length <= n ? name : name.slice(0, n - 1) + '…';
	}

	function place(box, from, span, width) {
		const level = focus ? focus.level : 0;
		const past = box.level < level && box.x <= from + NEAR &&
			box.x + box.w >= from + span - NEAR;
		const seen = box.w > NEAR && (past || (box.level >= level && box.x + box.w > from + NEAR &&
			box.x < from + span - NEAR));
		box.group.style.display = seen ? '' : 'none';
		if (!seen)
			return;

		const x = past ? 0 : (box.x - from) / span * width;
		const w = past ? width : box.w / span * width;
		const y = flipped ? box.level * ROW : shown.height - (box.level + 1) * ROW;
		box.group.classList.toggle('past', past);
		box.rect.setAttribute('x', x.toFixed(2));
		box.rect.setAttribute('y', y);
		box.rect.setAttribute('width', Math.max(w - (w > 3 ? 0.8 : 0), 0.2).toFixed(2));
		box.text.setAttribute('x', (x + PAD).toFixed(2));
		box.text.setAttribute('y', y + BASE);
		const text = label(box.name, w);
		if (box.text.textContent !== text)
			box.text.textContent = text;
	}

	// Where the page is narrow, the words of its header scroll away, and the buttons stay.
	function stick() {
		const narrow = document.documentElement.clientWidth <= 700;
		header.style.top = narrow ? -(header.firstElementChild.offsetHeight + PAD) + 'px' : '';
	}

	function layout() {
		stick();
		const style = getComputedStyle(main), root = shown.boxes[0];
		const width = Math.max(320, main.clientWidth -
			parseFloat(style.paddingLeft) - parseFloat(style.paddingRight));
		shown.svg.setAttribute('width', width);
		shown.svg.setAttribute('height', shown.height);
		shown.svg.setAttribute('viewBox', '0 0 ' + width + ' ' + shown.height);
		const from = focus ? focus.x : 0, span = focus ? focus.w : root.w;
		for (const box of shown.boxes)
			place(box, from, span, width);
		reset.disabled = !focus && !field.value && shown.gone.length === 0;
		omit.disabled = !focus || focus.w > root.w - NEAR;
	}

	function zoom(box) {
		wish = [];
		for (let at = box; at && at.level > 0; at = at.parent)
			wish.unshift(at.key);
		settle();
	}

	// Find the box to zoom to in the picture that is shown, and draw that.
	function settle() {
		focus = null;
		for (const key of wish) {
			const box = shown.byKey.get(key);
			if (box && box.w > NEAR)
				focus = box;
		}
		layout();
		remember();
	}

	// --- leaving out

	// Where a place is when the boxes left out have no width.
	function moved(at) {
		let before = 0;
		for (const box of shown.gone)
			before += Math.max(0, Math.min(at, box.x0 + box.w0) - box.x0);
		return at - before;
	}

	function leaveOut(boxes) {
		shown.gone = boxes;
		for (const box of shown.boxes) {
			box.x = moved(box.x0);
			box.w = moved(box.x0 + box.w0) - box.x;
		}
		search();
	}

	omit.addEventListener('click', function () {
		const box = focus;
		const inside = function (other) {
			while (other && other !== box)
				other = other.parent;
			return other === box;
		};
		leaveOut(shown.gone.filter(function (other) { return !inside(other); }).concat(box));
		zoom(back && back.w > NEAR ? back : null);
		show(focus);
	});

	// --- search

	// The input is a regular expression if it is a valid one, else plain text. Case matters
	// only if it contains capitals.
	function pattern(text) {
		const flags = /[A-Z]/.test(text) ? '' : 'i';
		try {
			field.classList.remove('wrong');
			return new RegExp(text, flags);
		} catch (e) {
			field.classList.add('wrong');
			return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), flags);
		}
	}

	function percent(share) {
		return (100 * share).toFixed(2) + ' %';
	}

	function search() {
		const wanted = field.value ? pattern(field.value) : null;
		const hits = [];
		for (const box of shown.boxes) {
			const hit = wanted !== null && box.level > 0 && wanted.test(box.name);
			box.group.classList.toggle('matched', hit);
			if (hit)
				hits.push(box);
		}
		shown.svg.classList.toggle('searching', wanted !== null);

		// Boxes above a match are part of it: only boxes side by side add up.
		hits.sort(function (a, b) { return a.x - b.x || a.level - b.level; });
		let sum = 0, end = 0;
		for (const box of hits) {
			const from = Math.max(box.x, end), to = box.x + box.w;
			if (to > from) {
				sum += to - from;
				end = to;
			}
		}
		const root = shown.boxes[0], said = [];
		if (wanted)
			said.push(percent(sum / root.w) + ' matched');
		if (shown.gone.length > 0)
			said.push(percent(1 - root.w) + ' left out');
		matched.textContent = said.join(', ');
		reset.disabled = !focus && !field.value && shown.gone.length === 0;
		for (const key of document.querySelectorAll('[data-find]'))
			key.setAttribute('aria-pressed', key.dataset.find === field.value);
	}

	function find(text) {
		field.value = text;
		search();
		remember();
	}

	// --- details

	function show(box) {
		details.textContent = box ? box.rest : hint;
		if (!box)
			return;
		const name = document.createElement('b');
		name.textContent = box.name;
		details.prepend(name);
	}

	function found(event) {
		const group = event.target.closest('g.f');
		return group && group.box;
	}

	// --- the picture that is shown, and the page's address

	function toRoot() {
		window.scrollTo(0, flipped ? 0 : document.body.scrollHeight);
	}

	function turnTo(name) {
		if (name !== shown.name) {
			const picture = pictures.get(name) || makePicture(name);
			shown.svg.replaceWith(picture.svg);
			shown = picture;
		}
		for (const button of buttons)
			button.setAttribute('aria-pressed', button.dataset.button === name);
		for (const words of document.querySelectorAll('[data-view]'))
			words.hidden = words.dataset.view !== name;
		search();
		settle();
		show(focus);
		toRoot();
	}

	function remember() {
		const state = new URLSearchParams();
		if (shown.name)
			state.set('view', shown.name);
		if (wish.length > 0)
			state.set('at', wish[wish.length - 1]);
		if (field.value)
			state.set('find', field.value);
		if (shown.gone.length > 0)
			state.set('without', shown.gone.map(function (box) { return box.key; }).join(','));
		try {
			history.replaceState(null, '', '#' + state);
		} catch (e) { /* a page in a frame may have no address of its own */ }
	}

	function restore() {
		const state = new URLSearchParams(location.hash.slice(1)), name = state.get('view');
		if (name !== shown.name && (pictures.has(name) || Object.hasOwn(others.views, name)))
			turnTo(name);
		field.value = state.get('find') || '';
		leaveOut((state.get('without') || '').split(',').map(function (key) { return shown.byKey.get(key); })
			.filter(function (box) { return box && box.level > 0; }));
		zoom(shown.byKey.get(state.get('at')));
		show(focus);
	}

	for (const button of buttons)
		button.addEventListener('click', function () { turnTo(button.dataset.button); });
	for (const key of document.querySelectorAll('[data-find]'))
		key.addEventListener('click', function () {
			find(field.value === key.dataset.find ? '' : key.dataset.find);
		});
	field.addEventListener('input', function () { find(field.value); });
	reset.addEventListener('click', function () {
		field.value = '';
		leaveOut([]);
		zoom(null);
	});
	document.getElementById('flip').addEventListener('click', function () {
		flipped = !flipped;
		document.body.classList.toggle('flipped', flipped);
		layout();
		toRoot();
	});
	window.addEventListener('resize', layout);
	window.addEventListener('hashchange', restore);
	window.addEventListener('keydown', function (event) {
		if (event.key === '/' && document.activeElement !== field) {
			event.preventDefault();
			field.focus();
			field.select();
		} else if (event.key === 'Escape') {
			if (field.value)
				find('');
			else
				zoom(null);
			field.blur();
		}
	});

	document.body.classList.add('live');
	if (location.hash.length > 1)
		restore();
	layout();
	toRoot();
})();
