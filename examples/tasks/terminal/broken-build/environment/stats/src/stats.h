#include "parse.h"

/* Running sums of a series. */
struct stats {
    long count;
    double mean;
    double squares; /* sum of squared distances from the mean */
};

void stats_add(struct stats *s, double x);
double stats_stddev(const struct stats *s)
