import { type Digest, sha256 } from '../../core/index.ts'

const textTypes: ReadonlySet<string> = new Set(['text', 'input_text', 'output_text', 'refusal', 'thinking'])

/**
 * The media of a prompt in order, each by the SHA-256 of what the client wrote for it (a data URL, or an address). Ids
 * alone do not say what a model sees: placeholders of equal size are equal (invariant I2).
 */
export function mediaDigests(messages: readonly unknown[]): readonly Digest[] {
  let found: Digest[] | null = null
  for (const message of messages) {
    const content = member(message, 'content')
    if (!Array.isArray(content)) continue
    for (const part of content) {
      const type = member(part, 'type')
      if (typeof type !== 'string' || textTypes.has(type)) continue
      const value = member(part, type) ?? null
      const url = member(value, 'url')
      found ??= []
      found.push(sha256(typeof url === 'string' ? url : JSON.stringify(value)))
    }
  }
  return found ?? none
}

const none: readonly Digest[] = []

/**
 * Whether tokens that two prompts have in common stand for the same media: one list begins the other. Where the lists
 * part nobody can say at which token that is, so nothing is shared.
 */
export function agree(one: readonly Digest[], other: readonly Digest[]): boolean {
  const [shorter, longer] = one.length <= other.length ? [one, other] : [other, one]
  return shorter.every((digest, at) => digest === longer[at])
}

function member(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
}
