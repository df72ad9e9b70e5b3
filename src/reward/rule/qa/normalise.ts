/** Python's `string.punctuation`. */
const punctuation = /[!-/:-@[-`{-~]/g

/**
 * What question-answering scores compare: lower case, ASCII punctuation out, the articles a, an, the out, white space
 * squeezed. The official SQuAD script's `normalize_answer`, which Search-R1 and its kin took over (`qa_em.py`).
 */
export function normaliseAnswer(text: string): string {
  return text
    .normalize('NFC')
    .toLowerCase()
    .replace(punctuation, '')
    .replace(/\b(?:a|an|the)\b/g, ' ')
    .split(/\s+/u)
    .filter((word) => word !== '')
    .join(' ')
}
