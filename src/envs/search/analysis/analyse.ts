import { porterStem } from './porter.ts'
import { eachWord } from './tokenise.ts'

/** Lucene's `ENGLISH_STOP_WORDS_SET` (org.apache.lucene.analysis.en.EnglishAnalyzer), 33 words. */
const stopWords: ReadonlySet<string> = new Set(
  (
    'a an and are as at be but by for if in into is it no not of on or such ' +
    'that the their then there these they this to was will with'
  ).split(' '),
)

/** Name of this way of analysing; part of what identifies an index. */
export const analyserVersion = 'english-2'

/**
 * English analysis in the order of Lucene's EnglishAnalyzer, behind NFKC: words (UAX #29), possessive `'s` off, lower case, stop
 * words out, Porter stems. Calls `visit` with each term, in order, repeats included.
 */
export function eachTerm(text: string, visit: (term: string) => void): void {
  eachWord(text, (word) => {
    const term = termOf(word)
    if (term !== null) visit(term)
  })
}

/** All terms of a text, in order, repeats included. */
export function termsOf(text: string): readonly string[] {
  const terms: string[] = []
  eachTerm(text, (term) => terms.push(term))
  return terms
}

/** The term that stands for one lower-case word, null for a stop word. */
export function termOf(word: string): string | null {
  const bare = /['’＇]s$/.test(word) ? word.slice(0, -2) : word
  return stopWords.has(bare) ? null : porterStem(bare)
}
