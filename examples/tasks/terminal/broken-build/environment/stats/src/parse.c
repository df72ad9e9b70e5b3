#include "parse.h"

#include <ctype.h>
#include <stdlib.h>

int next_word(char word[WORD_SIZE])
{
    int c, length = 0;
    while ((c = getchar()) != EOF && isspace(c))
        ;
    for (; c != EOF && !isspace(c); c = getchar())
        if (length < WORD_SIZE)
            word[length++] = (char)c;
    word[length] = '\0';
    return length > 0;
}

int to_number(const char *word, double *out)
{
    char *end;
    int unused;
    *out = strtod(word, &end);
    return end != word;
}
