#!/bin/bash
set -euo pipefail
cp "$(dirname "$0")/Makefile" /workspace/stats/Makefile
cd /workspace/stats
sed -i -e '1i #ifndef STATS_H\n#define STATS_H' -e '$a #endif' -e '/#include "parse.h"/d' -e 's/\(stats_stddev(const struct stats \*s)\)$/\1;/' src/stats.h
sed -i -e '1i #ifndef PARSE_H\n#define PARSE_H' -e '$a #endif' -e '/#include "stats.h"/d' src/parse.h
sed -i -e 's/#include "stats.h"/#include "stats.h"\n\n#include <math.h>/' -e 's/before \* before/before * (x - s->mean)/' src/stats.c
sed -i -e 's/#include <ctype.h>/#include <ctype.h>\n#include <math.h>\n#include <stdio.h>/' -e 's/length < WORD_SIZE)/length < WORD_SIZE - 1)/' -e '/int unused;/d' -e "s/return end != word;/return end != word \&\& *end == '\\\\0' \&\& isfinite(*out);/" src/parse.c
sed -i -e 's/struct stats s;/struct stats s = {0};/' -e 's/count %d/count %ld/' src/main.c
make clean && make && printf '2 4 4 4 5 5 7 9' | bin/stats
