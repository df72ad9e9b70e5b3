/**
 * The Porter stemmer as published (M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980), with the two
 * departures of its author's reference code that Lucene's PorterStemFilter has too: `bli` for `abli`, and `logi` -> `log`.
 */
export function porterStem(word: string): string {
  if (word.length < 3 || !/^[a-z]+$/.test(word)) return word
  let stem = plural(word)
  stem = pastTense(stem)
  if (stem.endsWith('y') && hasVowel(stem.slice(0, -1))) stem = `${stem.slice(0, -1)}i`
  stem = replaced(stem, doubleSuffixes, 0)
  stem = replaced(stem, singleSuffixes, 0)
  stem = dropped(stem)
  return tidied(stem)
}

// Each list is tried from its longest suffix down; only the first that fits the end counts, whatever its condition says.
const doubleSuffixes = byLength({
  ational: 'ate',
  tional: 'tion',
  enci: 'ence',
  anci: 'ance',
  izer: 'ize',
  bli: 'ble',
  alli: 'al',
  entli: 'ent',
  eli: 'e',
  ousli: 'ous',
  ization: 'ize',
  ation: 'ate',
  ator: 'ate',
  alism: 'al',
  iveness: 'ive',
  fulness: 'ful',
  ousness: 'ous',
  aliti: 'al',
  iviti: 'ive',
  biliti: 'ble',
  logi: 'log',
})
const singleSuffixes = byLength({ icate: 'ic', ative: '', alize: 'al', iciti: 'ic', ical: 'ic', ful: '', ness: '' })
const finalSuffixes = byLength(
  Object.fromEntries(
    'al ance ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize'.split(' ').map((s) => [s, '']),
  ),
)

function byLength(rules: Readonly<Record<string, string>>): readonly (readonly [string, string])[] {
  return Object.entries(rules).toSorted(([a], [b]) => b.length - a.length)
}

function plural(word: string): string {
  if (!word.endsWith('s')) return word
  if (word.endsWith('sses') || word.endsWith('ies')) return word.slice(0, -2)
  return word.endsWith('ss') ? word : word.slice(0, -1)
}

function pastTense(word: string): string {
  if (word.endsWith('eed')) return measure(word.slice(0, -3)) > 0 ? word.slice(0, -1) : word
  const suffix = word.endsWith('ed') ? 2 : word.endsWith('ing') ? 3 : 0
  if (suffix === 0) return word
  const stem = word.slice(0, -suffix)
  if (!hasVowel(stem)) return word
  if (/(?:at|bl|iz)$/.test(stem)) return `${stem}e`
  if (endsDouble(stem) && !/[lsz]$/.test(stem)) return stem.slice(0, -1)
  return measure(stem) === 1 && endsShort(stem) ? `${stem}e` : stem
}

function replaced(word: string, rules: readonly (readonly [string, string])[], above: number): string {
  const rule = rules.find(([suffix]) => word.endsWith(suffix))
  if (rule === undefined) return word
  const stem = word.slice(0, -rule[0].length)
  return measure(stem) > above ? stem + rule[1] : word
}

function dropped(word: string): string {
  const rule = finalSuffixes.find(([suffix]) => word.endsWith(suffix))
  if (rule === undefined) return word
  const stem = word.slice(0, -rule[0].length)
  if (rule[0] === 'ion' && !/[st]$/.test(stem)) return word
  return measure(stem) > 1 ? stem : word
}

function tidied(word: string): string {
  let stem = word
  if (stem.endsWith('e')) {
    const without = stem.slice(0, -1)
    const size = measure(without)
    if (size > 1 || (size === 1 && !endsShort(without))) stem = without
  }
  return stem.endsWith('ll') && measure(stem) > 1 ? stem.slice(0, -1) : stem
}

function isConsonant(word: string, at: number): boolean {
  const char = word[at] ?? ''
  if ('aeiou'.includes(char)) return false
  return char !== 'y' || at === 0 || !isConsonant(word, at - 1)
}

/** Porter's m: how often a vowel run is followed by a consonant run. */
function measure(word: string): number {
  let count = 0
  let afterVowel = false
  for (let at = 0; at < word.length; at += 1) {
    const consonant = isConsonant(word, at)
    if (consonant && afterVowel) count += 1
    afterVowel = !consonant
  }
  return count
}

function hasVowel(word: string): boolean {
  for (let at = 0; at < word.length; at += 1) if (!isConsonant(word, at)) return true
  return false
}

function endsDouble(word: string): boolean {
  const last = word.length - 1
  return last > 0 && word[last] === word[last - 1] && isConsonant(word, last)
}

/** Porter's *o: consonant, vowel, consonant, and the last is none of w, x, y. */
function endsShort(word: string): boolean {
  const last = word.length - 1
  return (
    last >= 2 &&
    isConsonant(word, last) &&
    !isConsonant(word, last - 1) &&
    isConsonant(word, last - 2) &&
    !'wxy'.includes(word[last] ?? '')
  )
}
