import { CallBody } from './call-body.ts'
import type { AnswerParser, AnswerPart } from './contract.ts'

/** Everything is content: no tools were offered, or `tool_choice` is `none`. */
export class PlainText implements AnswerParser {
  push(text: string): AnswerPart[] {
    return text === '' ? [] : [{ kind: 'content', text }]
  }

  end(): AnswerPart[] {
    return []
  }
}

/** `tool_choice: {"function": {"name"}}`: the answer is the bare arguments of that tool (vLLM serving_chat). */
export class NamedCall implements AnswerParser {
  readonly #name: string
  #begun = false

  constructor(name: string) {
    this.#name = name
  }

  push(text: string): AnswerPart[] {
    if (text === '') return []
    const parts: AnswerPart[] = this.#begun ? [] : [{ kind: 'call', index: 0, name: this.#name }]
    this.#begun = true
    return [...parts, { kind: 'arguments', index: 0, text }]
  }

  end(): AnswerPart[] {
    return []
  }
}

/** `tool_choice: "required"`: the answer is a JSON list of `{"name", "parameters"}` (vLLM serving_chat). */
export class RequiredCalls implements AnswerParser {
  #body: CallBody | undefined
  #calls = 0

  push(text: string): AnswerPart[] {
    const parts: AnswerPart[] = []
    let rest = text
    while (rest !== '') {
      if (this.#body === undefined) {
        const next = rest.indexOf('{')
        if (next === -1) break
        this.#body = new CallBody(this.#calls)
        rest = rest.slice(next)
      }
      const progress = this.#body.push(rest)
      if (progress.kind === 'failed') {
        this.#body = undefined
        break
      }
      parts.push(...progress.parts)
      if (progress.kind === 'more') break
      this.#body = undefined
      this.#calls++
      rest = progress.rest
    }
    return parts
  }

  end(): AnswerPart[] {
    return []
  }
}
