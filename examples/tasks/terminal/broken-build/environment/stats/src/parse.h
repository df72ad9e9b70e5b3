#include "stats.h"

/* Longest word, with its end. */
#define WORD_SIZE 64

/* Reads one word: 1 when there was one, 0 at the end of the input. */
int next_word(char word[WORD_SIZE]);

/* 1 when all of the word is a finite number, which is stored. */
int to_number(const char *word, double *out);
