# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Growth out of noise: a line through what was seen after the warm-up, and how sure it is."""
import statistics

WARM_UP = 0.25     # of the time: tables grow to the size of the load, and names come
BLOCKS = 12        # looks that follow one another are alike; the means of blocks hardly are
T_975 = 2.23       # Student's t with BLOCKS - 2 degrees of freedom. Source: any table of it
NOTHING_KB = 1024  # a page of one table more or less, in all
BEARABLE = 0.25     # a run that grew by less than this share of its size is flat


def block_means(points):
    size = max(1, len(points) // BLOCKS)
    blocks = [points[i:i + size] for i in range(0, size * BLOCKS, size)]
    return [(statistics.mean(t for t, _ in b), statistics.mean(v for _, v in b))
            for b in blocks if b]


def line(points):
    """Slope and the half-width of its 95 % interval."""
    n = len(points)
    mean_t = statistics.mean(t for t, _ in points)
    mean_v = statistics.mean(v for _, v in points)
    square = sum((t - mean_t) ** 2 for t, _ in points)
    slope = sum((t - mean_t) * (v - mean_v) for t, v in points) / square
    rest = sum((v - mean_v - slope * (t - mean_t)) ** 2 for t, v in points)
    return slope, T_975 * (rest / (n - 2) / square) ** 0.5


def judge(looks, seconds):
    """Print the slopes of (time, KB, KB) after the warm-up. 1 where one surely grows too fast."""
    warm = [look for look in looks if look[0] >= seconds * WARM_UP]
    status = 0
    for column, name in ((1, "mperfd"), (2, "namer")):
        points = block_means([(look[0], look[column]) for look in warm])
        slope, half = line(points)
        size = abs(statistics.mean(v for _, v in points))
        span = points[-1][0] - points[0][0]
        grew = (slope - half) * span
        bad = grew > BEARABLE * size and grew > NOTHING_KB
        status |= bad
        print(f"{name}: {size / 1024:.1f} MB, {slope * 60:+.1f} ± {half * 60:.1f} KB a minute"
              f"{', which is too much' if bad else ''}")
    return int(status)
