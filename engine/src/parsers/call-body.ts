import { dumpJson, parseJson } from '../json/lossless.ts'
import { JsonSpan } from './json-span.ts'
import type { AnswerPart } from './contract.ts'

/** Name first, then the arguments: the only order in which arguments can be streamed. */
const HEAD = /^\s*\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"(?:arguments|parameters)"\s*:\s*(?=\S)/

export type CallProgress =
  | { readonly kind: 'more'; readonly parts: readonly AnswerPart[] }
  | { readonly kind: 'done'; readonly parts: readonly AnswerPart[]; readonly rest: string }
  /** What stands here is no call; `text` is all of it. */
  | { readonly kind: 'failed'; readonly text: string }

/** Reads one `{"name": …, "arguments"|"parameters": …}` from text that arrives in pieces. */
export class CallBody {
  readonly #index: number
  readonly #whole = new JsonSpan()
  readonly #value = new JsonSpan()
  #head = ''
  #state: 'head' | 'value' | 'tail' = 'head'

  /** `index` is the place of the call in the answer. */
  constructor(index: number) {
    this.#index = index
  }

  push(text: string): CallProgress {
    if (this.#state === 'head') return this.#pushHead(text)
    if (this.#state === 'value') return this.#pushValue(text, [])
    return this.#pushTail(text, [])
  }

  /** Text that was read and shown to nobody: the caller decides what an unfinished call becomes. */
  get unseen(): string {
    return this.#state === 'head' ? this.#head : ''
  }

  #pushHead(text: string): CallProgress {
    const before = this.#head.length
    const taken = this.#whole.take(text)
    this.#head += text
    const match = HEAD.exec(this.#head)
    if (match !== null) {
      const name: unknown = JSON.parse(match[1] ?? '""')
      this.#state = 'value'
      return this.#pushValue(this.#head.slice(match[0].length), [
        { kind: 'call', index: this.#index, name: String(name) },
      ])
    }
    if (!this.#whole.done) return { kind: 'more', parts: [] }
    return this.#wholeObject(this.#head.slice(0, before + taken), text.slice(taken))
  }

  #wholeObject(object: string, rest: string): CallProgress {
    try {
      const value = parseJson(object)
      const name = value instanceof Map ? value.get('name') : undefined
      if (value instanceof Map && typeof name === 'string') {
        const given = value.get('arguments') ?? value.get('parameters')
        return {
          kind: 'done',
          parts: [
            { kind: 'call', index: this.#index, name },
            { kind: 'arguments', index: this.#index, text: given === undefined ? '{}' : dumpJson(given) },
          ],
          rest,
        }
      }
    } catch {
      // Told below: the text is no call.
    }
    return { kind: 'failed', text: object + rest }
  }

  #pushValue(text: string, parts: AnswerPart[]): CallProgress {
    const taken = this.#value.take(text)
    if (taken > 0) parts.push({ kind: 'arguments', index: this.#index, text: text.slice(0, taken) })
    if (!this.#value.done) return { kind: 'more', parts }
    this.#state = 'tail'
    return this.#pushTail(text.slice(taken), parts)
  }

  #pushTail(text: string, parts: AnswerPart[]): CallProgress {
    const close = text.indexOf('}')
    if (close === -1) return { kind: 'more', parts }
    return { kind: 'done', parts, rest: text.slice(close + 1) }
  }
}
