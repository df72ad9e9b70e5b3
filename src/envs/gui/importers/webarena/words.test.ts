import { expect, test } from 'vitest'
import { wordsOf } from './words.ts'

// What nltk 3.10.4 gives: sentences of Punkt, each cut by NLTKWordTokenizer.
test.each([
  ['3/1/2023', '3/1/2023'],
  ['0.5', '0.5'],
  ['total: 5, of 12.9', 'total | : | 5 | , | of | 12.9'],
  ['5.', '5 | .'],
  ['it is 5. and so', 'it | is | 5. | and | so'],
  ['it is 5. 6 more', 'it | is | 5 | . | 6 | more'],
  ['it costs $5. thanks', 'it | costs | $ | 5 | . | thanks'],
  ['5. (six)', '5 | . | ( | six | )'],
  ['5.) and', '5 | . | ) | and'],
  ["answer 5.' so", "answer | 5 | . | ' | so"],
  ['item 5.and', 'item | 5.and'],
  ['b. and', 'b. | and'],
  ['5:30 at 1,5; 1, 5', '5:30 | at | 1,5 | ; | 1 | , | 5'],
  ['5%#5-6/7*8@9', '5 | % | # | 5-6/7 | * | 8 | @ | 9'],
  ['5--6–7', '5 | -- | 6 | – | 7'],
  ['5...', '5 | ...'],
  ['"5" [5] {5} <5>', "`` | 5 | '' | [ | 5 | ] | { | 5 | } | < | 5 | >"],
  ["5's i'd don't they'll", "5 | 's | i | 'd | do | n't | they | 'll"],
  ["'5'", "' | 5 | '"],
  ['cannot gonna', 'can | not | gon | na'],
  ['x=5 +5 ~5 5° £5 5th _5_', 'x=5 | +5 | ~5 | 5° | £5 | 5th | _5_'],
  ['5\n6', '5 | 6'],
  ['', ''],
])('%j is cut as nltk does', (text, expected) => {
  expect(wordsOf(text)).toEqual(expected.split(' | ').filter((word) => word !== ''))
})

test('no answer takes long, however long it is', () => {
  const long = 300_000
  expect(wordsOf(`x.${' '.repeat(long)}y`)).toEqual(['x.', 'y'])
  expect(wordsOf(`x.${' \n'.repeat(long)}y`)).toEqual(['x.', 'y'])
  expect(wordsOf('a. '.repeat(long)).length).toBeGreaterThan(long)
  expect(wordsOf('a.'.repeat(long))).toHaveLength(2)
})
