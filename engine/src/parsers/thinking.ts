import { MarkerSearch } from './held-text.ts'
import type { AnswerParser, AnswerPart } from './contract.ts'

const OPEN = '<think>'
const CLOSE = '</think>'

/**
 * Splits off thinking that stands at the beginning of an answer and hands the rest to `body`. Newlines around the
 * thinking and after it belong to neither part, as the templates write them anew.
 */
export class ThinkingParser implements AnswerParser {
  readonly #body: AnswerParser
  readonly #close = new MarkerSearch([CLOSE])
  #state: 'start' | 'thinking' | 'gap' | 'body'
  #held = ''
  #begun = false

  /** `open` when the prompt itself ended inside `<think>`. */
  constructor(body: AnswerParser, open: boolean) {
    this.#body = body
    this.#state = open ? 'thinking' : 'start'
  }

  push(text: string): AnswerPart[] {
    switch (this.#state) {
      case 'start':
        return this.#pushStart(this.#held + text)
      case 'thinking':
        return this.#pushThinking(text)
      case 'gap':
        return this.#pushGap(text)
      case 'body':
        return this.#body.push(text)
    }
  }

  end(): AnswerPart[] {
    if (this.#state === 'thinking') return this.#thought(this.#close.end())
    if (this.#state === 'start') return [...this.#body.push(this.#held), ...this.#body.end()]
    return this.#body.end()
  }

  #pushStart(text: string): AnswerPart[] {
    const begun = text.trimStart()
    if (begun.startsWith(OPEN)) {
      this.#held = ''
      this.#state = 'thinking'
      return this.#pushThinking(begun.slice(OPEN.length))
    }
    if (OPEN.startsWith(begun)) {
      this.#held = text
      return []
    }
    this.#state = 'body'
    return this.#body.push(text)
  }

  #pushThinking(text: string): AnswerPart[] {
    const { before, found } = this.#close.push(text)
    const parts = this.#thought(before)
    if (found === undefined) return parts
    this.#state = 'gap'
    return [...parts, ...this.#pushGap(found.after)]
  }

  #thought(text: string): AnswerPart[] {
    const all = this.#held + (this.#begun ? text : text.replace(/^\n+/, ''))
    const shown = all.replace(/\n+$/, '')
    this.#held = all.slice(shown.length)
    if (shown === '') return []
    this.#begun = true
    return [{ kind: 'reasoning', text: shown }]
  }

  #pushGap(text: string): AnswerPart[] {
    const rest = text.replace(/^\n+/, '')
    if (rest === '') return []
    this.#state = 'body'
    return this.#body.push(rest)
  }
}
