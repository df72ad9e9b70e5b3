/** Python's `string.punctuation`. */
const punctuation = /[!-/:-@[-`{-~]/g

/** As a word of its own, in any script: `España` keeps its last letter. */
const article = /(?<![\p{L}\p{N}_])(?:a|an|the)(?![\p{L}\p{N}_])/gu

/**
 * What question-answering scores compare: lower case, ASCII punctuation out, the articles a, an, the out, white space
 * squeezed. The official SQuAD script's `normalize_answer`, which Search-R1 and its kin took over (`qa_em.py`).
 */
export function normaliseAnswer(text: string): string {
  return text
    .normalize('NFC')
    .toLowerCase()
    .replace(punctuation, '')
    .replace(article, ' ')
    .split(/\s+/u)
    .filter((word) => word !== '')
    .join(' ')
}

/** A gold as answers are compared with it. */
export interface Gold {
  readonly text: string
  /** How an answer is written to be compared with it. */
  readonly of: (answer: string) => string
}

/**
 * Golds, normalised. Where that leaves nothing, as of "A" or "+", the text itself is compared, case, blanks and marks around it apart: the
 * official scripts compare nothing with nothing there, so that an empty answer is right. A gold of blanks cannot be met.
 */
export function comparableGolds(golds: readonly string[]): readonly Gold[] {
  return golds
    .map((gold) => {
      const of = normaliseAnswer(gold) === '' ? plainAnswer : normaliseAnswer
      return { text: of(gold), of }
    })
    .filter(({ text }) => text !== '')
}

/** Without what only closes or encloses it: "A." and "(a)" are "A", "A+" is not. */
function plainAnswer(text: string): string {
  const plain = text.normalize('NFC').toLowerCase().trim().replace(/\s+/gu, ' ')
  return plain.replace(/^[("'\s]+|[)"'.,;:!?\s]+$/gu, '') || plain
}
