// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Zoom, search and details over the SVG that is already there. Text only ever goes back into the
// page as textContent.
(function () {
	'use strict';

	const DRAWN = 1200, ROW = 18, PAD = 4, NEAR = 2e-6, LETTERS_MIN = 3;
	const svg = document.querySelector('main svg');
	const height = svg.viewBox.baseVal.height;
	const field = document.getElementById('search');
	const matched = document.getElementById('matched');
	const details = document.getElementById('details');
	const reset = document.getElementById('reset');
	const hint = details.textContent;

	const boxes = Array.from(svg.querySelectorAll('g.f'), function (group) {
		const rect = group.querySelector('rect');
		const lines = group.querySelector('title').textContent.split('\n');
		const box = {
			group: group, rect: rect, text: group.querySelector('text'),
			x: rect.getAttribute('x') / DRAWN, w: rect.getAttribute('width') / DRAWN,
			level: Math.round((height - rect.getAttribute('y')) / ROW) - 1,
			name: lines[0], rest: lines.slice(1).join(' · '),
		};
		group.box = box;
		return box;
	});
	let focus = null, flipped = false;

	const letter = (function () {
		const probe = boxes[0].text, kept = probe.textContent;
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
		const seen = past || (box.level >= level && box.x + box.w > from + NEAR &&
			box.x < from + span - NEAR);
		box.group.style.display = seen ? '' : 'none';
		if (!seen)
			return;

		const x = past ? 0 : (box.x - from) / span * width;
		const w = past ? width : box.w / span * width;
		const y = flipped ? box.level * ROW : height - (box.level + 1) * ROW;
		box.group.classList.toggle('past', past);
		box.rect.setAttribute('x', x.toFixed(2));
		box.rect.setAttribute('y', y);
		box.rect.setAttribute('width', Math.max(w - (w > 3 ? 0.8 : 0), 0.2).toFixed(2));
		box.text.setAttribute('x', (x + PAD).toFixed(2));
		box.text.setAttribute('y', y + 12.5);
		const text = label(box.name, w);
		if (box.text.textContent !== text)
			box.text.textContent = text;
	}

	function layout() {
		const style = getComputedStyle(svg.parentNode);
		const width = Math.max(320, svg.parentNode.clientWidth -
			parseFloat(style.paddingLeft) - parseFloat(style.paddingRight));
		svg.setAttribute('width', width);
		svg.setAttribute('viewBox', '0 0 ' + width + ' ' + height);
		const from = focus ? focus.x : 0, span = focus ? focus.w : 1;
		for (const box of boxes)
			place(box, from, span, width);
		reset.disabled = !focus && !field.value;
	}

	function zoom(box) {
		focus = box && box.level > 0 ? box : null;
		layout();
	}

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

	function search() {
		const wanted = field.value ? pattern(field.value) : null;
		const hits = [];
		for (const box of boxes) {
			const hit = wanted !== null && box.level > 0 && wanted.test(box.name);
			box.group.classList.toggle('matched', hit);
			if (hit)
				hits.push(box);
		}
		svg.classList.toggle('searching', wanted !== null);

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
		matched.textContent = wanted ? (100 * sum).toFixed(2) + ' % matched' : '';
		reset.disabled = !focus && !field.value;
	}

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

	svg.addEventListener('click', function (event) {
		const box = found(event);
		if (box)
			zoom(box);
	});
	svg.addEventListener('mouseover', function (event) { show(found(event)); });
	svg.addEventListener('mouseleave', function () { show(focus); });
	field.addEventListener('input', search);
	reset.addEventListener('click', function () {
		field.value = '';
		search();
		zoom(null);
	});
	document.getElementById('flip').addEventListener('click', function () {
		flipped = !flipped;
		document.body.classList.toggle('flipped', flipped);
		layout();
		window.scrollTo(0, flipped ? 0 : document.body.scrollHeight);
	});
	window.addEventListener('resize', layout);
	window.addEventListener('keydown', function (event) {
		if (event.key === '/' && document.activeElement !== field) {
			event.preventDefault();
			field.focus();
			field.select();
		} else if (event.key === 'Escape') {
			if (field.value) {
				field.value = '';
				search();
			} else {
				zoom(null);
			}
			field.blur();
		}
	});

	document.body.classList.add('live');
	layout();
	window.scrollTo(0, document.body.scrollHeight);
})();
