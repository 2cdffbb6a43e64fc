// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Switches between the sets of roofs that are already in the drawing: loops of other precisions fade,
// and colours follow the zones of the set.
(function () {
	'use strict';

	const sets = Array.from(document.querySelectorAll('g.roofs'));
	const dots = Array.from(document.querySelectorAll('g.dot, g.dram'));
	const kind = document.getElementById('kind');
	const precision = document.getElementById('precision');
	const legend = document.querySelector('.legend'); /* of the set that was shown first */

	function unique(field) {
		return Array.from(new Set(sets.map(function (set) { return set.dataset[field]; })));
	}

	function fill(select, label, field, text) {
		const values = unique(field);
		values.forEach(function (value) {
			const option = document.createElement('option');
			option.value = value;
			option.textContent = text(value);
			select.append(option);
		});
		label.hidden = values.length < 2;
	}

	/* Bytes that came from memory are bound by the roof of memory alone. */
	function zoneOf(dot, set) {
		if (dot.classList.contains('dot'))
			return zone(Number(dot.querySelector('circle').getAttribute('cx')), set);
		if (!set.dataset.dram)
			return 'u';
		return Number(dot.dataset.x) < set.dataset.dram ? 'm' : 'c';
	}

	function zone(x, set) {
		if (!set.dataset.memory)
			return 'u';
		return x < set.dataset.memory ? 'm' : x > set.dataset.compute ? 'c' : 'b';
	}

	function show() {
		const shown = sets.find(function (set) {
			return set.dataset.kind === kind.value &&
				set.dataset.precision === precision.value;
		});
		sets.forEach(function (set) { set.classList.toggle('off', set !== shown); });
		legend.classList.toggle('other', shown !== first);
		dots.forEach(function (dot) {
			const same = dot.dataset.precision === precision.value;
			dot.classList.toggle('other', !same);
			if (!shown || !same)
				return;
			dot.classList.remove('m', 'b', 'c', 'u');
			dot.classList.add(zoneOf(dot, shown));
		});
	}

	if (sets.length < 2)
		return;
	const first = sets.find(function (set) { return !set.classList.contains('off'); });
	fill(kind, document.getElementById('kinds'), 'kind', function (value) { return value; });
	fill(precision, document.getElementById('precisions'), 'precision', function (value) {
		return sets.find(function (set) { return set.dataset.precision === value; }).dataset.text;
	});
	kind.value = first.dataset.kind;
	precision.value = first.dataset.precision;
	kind.addEventListener('change', show);
	precision.addEventListener('change', show);
	document.documentElement.classList.add('live');
})();
