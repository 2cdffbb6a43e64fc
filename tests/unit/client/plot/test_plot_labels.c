/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Places of labels: none overlaps another, whatever the dots.
 */
#include "client/plot/labels.h"
#include "tests/unit/test.h"

static struct plot_labels places;

static void begin(void)
{
	places = (struct plot_labels){.area = {0, 0, 800, 600}};
}

EACH_TEST(.begin = begin);

static bool place(double x, double y, struct plot_box *ret_box)
{
	return plot_labels_beside(&places, &(struct plot_spot){x, y, 4}, 60, 14, ret_box);
}

TEST(a_label_stands_right_of_its_dot)
{
	struct plot_box box;
	ck_assert(place(100, 100, &box));
	ck_assert_double_gt(box.left, 104);
	ck_assert_double_lt(box.left, 110);
	ck_assert(box.top < 100 && box.top + box.height > 100);
}

TEST(at_the_right_edge_it_stands_left_of_it)
{
	struct plot_box box;
	ck_assert(place(790, 100, &box));
	ck_assert_double_lt(box.left + box.width, 786);
}

TEST(no_two_labels_overlap)
{
	struct plot_box box[200];
	size_t n = 0, n_refused = 0;
	for (size_t i = 0; i < 200; i++) { /* ever the same heap of dots */
		double x = 380 + (double)(i * 37 % 60), y = 280 + (double)(i * 53 % 60);
		if (place(x, y, &box[n]))
			n++;
		else
			n_refused++;
	}
	ck_assert_uint_gt(n, 4);
	ck_assert_uint_gt(n_refused, 100);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			ck_assert(!plot_boxes_overlap(&box[i], &box[k]));
}

TEST(a_label_keeps_off_what_is_taken)
{
	const struct plot_box taken = {100, 80, 200, 40};
	struct plot_box box;
	plot_labels_take(&places, &taken);
	ck_assert(place(98, 100, &box));
	ck_assert(!plot_boxes_overlap(&box, &taken));
	ck_assert(!plot_labels_try(&places, &taken));
}

TEST(a_label_wider_than_the_picture_has_no_place)
{
	struct plot_box box;
	ck_assert(!plot_labels_beside(&places, &(struct plot_spot){400, 300, 4}, 900, 14, &box));
}

TEST(beyond_the_limit_there_is_no_place)
{
	struct plot_box box;
	for (size_t i = 0; i < 2 * PLOT_BOXES_MAX; i++)
		plot_labels_take(&places, &(struct plot_box){0, 0, 1, 1});
	ck_assert_uint_eq(places.n, PLOT_BOXES_MAX);
	ck_assert(!place(400, 300, &box));
}

TEST(boxes_that_touch_do_not_overlap)
{
	const struct plot_box a = {0, 0, 10, 10}, right = {10, 0, 10, 10}, inside = {2, 2, 2, 2};
	ck_assert(!plot_boxes_overlap(&a, &right));
	ck_assert(plot_boxes_overlap(&a, &inside) && plot_boxes_overlap(&inside, &a));
}
