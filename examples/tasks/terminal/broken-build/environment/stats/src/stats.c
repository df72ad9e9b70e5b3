#include "stats.h"

/* Welford's method: stays exact where naive sums cancel. */
void stats_add(struct stats *s, double x)
{
    double before = x - s->mean;
    s->count += 1;
    s->mean += before / s->count;
    s->squares += before * before;
}

double stats_stddev(const struct stats *s)
{
    return sqrt(s->squares / s->count);
}
