/** Replacements of nltk's `NLTKWordTokenizer` (nltk/tokenize/destructive.py of 3.10), in its order. */
const steps: readonly (readonly [RegExp, string])[] = [
  // Opening quotes.
  [/([«“‘„]|`+)/gu, ' $1 '],
  [/^"/g, '``'],
  [/(``)/g, ' $1 '],
  [/([ ([{<])("|'{2})/g, '$1 `` '],
  [/(?<![\p{L}\p{N}_])(')(?!(?:re|ve|ll|m|t|s|d|n)(?![\p{L}\p{N}_]))(?=[\p{L}\p{N}_])/giu, '$1 '],
  // Punctuation: colons and commas only where no digit follows, the full stop only at the end.
  [/([^.])(\.)([\])}>"'»”’ ]*)\s*$/gu, '$1 $2 $3 '],
  [/([:,])([^\p{Nd}])/gu, ' $1 $2'],
  [/([:,])$/g, ' $1 '],
  [/\.{2,}/g, ' $& '],
  [/[;@#$%&]/g, ' $& '],
  [/[\u2012-\u2015]/g, ' $& '],
  [/([^.])(\.)([\])}>"']*)\s*$/g, '$1 $2$3 '],
  [/[?!]/g, ' $& '],
  [/([^'])' /g, "$1 ' "],
  [/[*]/g, ' $& '],
  [/[\][(){}<>]/g, ' $& '],
  [/--/g, ' -- '],
  [/^|$/g, ' '],
  // Closing quotes and contractions.
  [/([»”’])/g, ' $1 '],
  [/''/g, " '' "],
  [/"/g, " '' "],
  [/\s+/gu, ' '],
  [/([^' ])('s|'m|'d|') /gi, '$1 $2 '],
  [/([^' ])('ll|'re|'ve|n't) /gi, '$1 $2 '],
  [/(?<![\p{L}\p{N}_])(can)(not)(?![\p{L}\p{N}_])/giu, ' $1 $2 '],
  [/(?<![\p{L}\p{N}_])(gim)(me)(?![\p{L}\p{N}_])/giu, ' $1 $2 '],
  [/(?<![\p{L}\p{N}_])(gon)(na)(?![\p{L}\p{N}_])/giu, ' $1 $2 '],
  [/(?<![\p{L}\p{N}_])(got)(ta)(?![\p{L}\p{N}_])/giu, ' $1 $2 '],
  [/(?<![\p{L}\p{N}_])(lem)(me)(?![\p{L}\p{N}_])/giu, ' $1 $2 '],
  [/(?<![\p{L}\p{N}_])(wan)(na)(?=\s)/giu, ' $1 $2 '],
]

/**
 * The words of an answer as nltk's `word_tokenize` cuts them, which WebArena asks for a reference of one sign: `3/1/2023`,
 * `0.5`, `5-6` and `12:30` are words, `$5` and `(5)` are not. A full stop belongs to the word before it but at the end of a sentence.
 */
export function wordsOf(text: string): readonly string[] {
  return sentencesOf(text.replaceAll(/\s{2,}/gu, shortBlank)).flatMap((sentence) =>
    steps
      .reduce((cut, [pattern, by]) => cut.replaceAll(pattern, by), sentence)
      .split(/\s+/u)
      .filter((word) => word !== ''),
  )
}

/** A run of blanks as the shortest one that means the same to the patterns, which would take its length squared. */
function shortBlank(run: string): string {
  if (/^ +$/.test(run)) return ' '
  return `${run.startsWith(' ') ? ' ' : ''}\n${run.endsWith(' ') ? ' ' : ''}`
}

/** Longest end of a sentence that is looked at: its last word decides. */
const longestWord = 200

/** A stop that may end a sentence: blanks or one of Punkt's signs of its own follow. */
const stops = /[.?!](?=[?!)";}\]*:@'({[]|\s+\S)/gu
/** Closing signs that belong to the sentence before. */
const closing = /^["')\]}]+?(?:\s+|(?=--)|$)/

/**
 * Sentences as nltk's Punkt finds them in lower-case text: a full stop ends one, but not an ellipsis, and not behind a number
 * or a single letter when a word in lower case or a comma follows (`no. 5. oak street`). Its list of abbreviations is left
 * out: of one sign it holds a few letters, which would differ before a number or at a name only.
 */
function sentencesOf(text: string): readonly string[] {
  const sentences: string[] = []
  let start = 0
  for (const { index } of text.matchAll(stops)) {
    const end = index + 1
    if (end <= start || !endsSentence(text.slice(Math.max(start, end - longestWord), end), text.slice(end).trimStart()))
      continue
    const close = closing.exec(text.slice(end).trimStart())?.[0] ?? ''
    const blanks = text.slice(end).length - text.slice(end).trimStart().length
    const next = close === '' ? end : end + blanks + close.length
    sentences.push(`${text.slice(start, end)}${close}`.trim())
    start = next
  }
  return [...sentences, text.slice(start).trim()]
}

function endsSentence(before: string, after: string): boolean {
  if (!before.endsWith('.')) return true
  const word = (/[^\s?!)";}\]*:@'({[]*$/.exec(before)?.[0] ?? '').replace(/^[`&#,-]+/, '')
  if (word.endsWith('..')) return false
  const isPlace = /^[.,]?\d[\d,.-]*\.$/.test(word) || /^\p{L}\.$/u.test(word)
  return !isPlace || !/^[\p{Ll};:,.!?]/u.test(after)
}
