#include <stdio.h>

#include "parse.h"
#include "stats.h"

int main(void)
{
    struct stats s;
    char word[WORD_SIZE];
    double x;

    while (next_word(word)) {
        if (!to_number(word, &x)) {
            fprintf(stderr, "error: not a number: %s\n", word);
            return 2;
        }
        stats_add(&s, x);
    }
    printf("count %d\n", s.count);
    if (s.count > 0)
        printf("mean %.3f\nstddev %.3f\n", s.mean, stats_stddev(&s));
    return 0;
}
