import type { LooseObject } from '../../session/sampling.ts'

/** A text completion, put together from events or from one body, for a client that asks again in the other form. */
export class TextCompletion {
  private head: LooseObject = {}
  private readonly choices = new Map<unknown, LooseObject>()
  private usage: unknown = null

  /** Adds an event or a whole body. */
  add({ choices, usage, ...head }: LooseObject): void {
    this.head = { ...head, ...this.head }
    this.usage = usage ?? this.usage
    if (!Array.isArray(choices)) return
    for (const choice of choices) {
      if (typeof choice !== 'object' || choice === null) continue
      const piece: LooseObject = { ...choice }
      this.choices.set(piece['index'], joined(this.choices.get(piece['index']), piece))
    }
  }

  whole(): LooseObject {
    return { ...this.head, choices: [...this.choices.values()], usage: this.usage }
  }

  /** Everything in one event, and the usage behind it where it is wanted. */
  chunks(wantsUsage: boolean): LooseObject[] {
    const text = { ...this.head, choices: [...this.choices.values()] }
    return wantsUsage ? [text, { ...this.head, choices: [], usage: this.usage }] : [text]
  }
}

/** Texts and lists go on, everything else is as it was said last. */
function joined(before: LooseObject | undefined, piece: LooseObject): LooseObject {
  const all: Record<string, unknown> = { ...before }
  for (const [name, value] of Object.entries(piece)) {
    const known = all[name] ?? null
    if (name === 'text' && typeof known === 'string') all[name] = `${known}${String(value)}`
    else if (Array.isArray(known) && Array.isArray(value)) all[name] = [...known, ...value]
    else if (name === 'logprobs' && isObject(known) && isObject(value)) all[name] = joined(known, value)
    else if (value !== null || known === null) all[name] = value
  }
  return all
}

function isObject(value: unknown): value is LooseObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
