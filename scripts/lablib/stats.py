# SPDX-License-Identifier: GPL-2.0-or-later
"""Means and their confidence."""

import math
import statistics

# Student's t, two-sided 95 %, for 1 to 30 degrees of freedom
_T95 = [12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060,
        2.2622, 2.2281, 2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199,
        2.1098, 2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639,
        2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423]


def student_t95(freedom):
    """The two-sided 95 % quantile of Student's t."""
    if freedom < 1:
        raise ValueError('at least one degree of freedom')
    if freedom <= len(_T95):
        return _T95[freedom - 1]
    # Cornish-Fisher; four digits are right from 30 on.
    z = statistics.NormalDist().inv_cdf(0.975)
    return (z + (z ** 3 + z) / (4 * freedom) +
            (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * freedom ** 2))


def mean_ci(values):
    """Mean and half the 95 % confidence interval, None with one value.

    Values that are None are left out; without any both are None.
    """
    known = [v for v in values if v is not None]
    if not known:
        return None, None
    mean = math.fsum(known) / len(known)
    if len(known) < 2:
        return mean, None
    return mean, (student_t95(len(known) - 1) * statistics.stdev(known) /
                  math.sqrt(len(known)))


def percentile(values, share):
    """The value below which share (0 to 1) lies, interpolated."""
    if not values:
        return None
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
