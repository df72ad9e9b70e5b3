/** How vLLM writes the model of an answer: compact JSON, in which an unescaped quote stands at no place inside a text. */
const opening = Buffer.from('"model":"')

/** An answer in which the adapter is named as the model that it is put on, piece by piece, at whatever bytes the pieces end. */
export class AliasedAnswer {
  /** The answer names a model that was not asked, and the adapter nowhere before. */
  foreign: string | null = null
  private named = false
  private readonly told: Buffer
  private readonly alias: Buffer
  /** The beginning of what may become a name. */
  private rest = Buffer.alloc(0)

  constructor(name: string, alias: string) {
    this.told = Buffer.from(JSON.stringify(name))
    this.alias = Buffer.from(`"model":${JSON.stringify(alias)}`)
  }

  /** What of it may be told now. */
  piece(bytes: Buffer): Buffer {
    if (this.rest.length === 0 && !bytes.includes(0x22)) return bytes
    const all = this.rest.length === 0 ? bytes : Buffer.concat([this.rest, bytes])
    const parts: Buffer[] = []
    let at = 0
    for (;;) {
      const start = all.indexOf(opening, at)
      if (start === -1) break
      // Inside a text the quotes would be escaped.
      const open = start + opening.length - 1
      const close = closingOf(all, open)
      if (close === -1) return this.keep(parts, all, at, start)
      if (all.subarray(open, close + 1).equals(this.told)) {
        this.named = true
        parts.push(all.subarray(at, start), this.alias)
      } else {
        if (!this.named) this.foreign ??= all.subarray(open + 1, close).toString()
        parts.push(all.subarray(at, close + 1))
      }
      at = close + 1
    }
    return this.keep(parts, all, at, all.length - begunAtEnd(all.subarray(at)))
  }

  /** Nothing more comes. */
  end(): Buffer {
    const { rest } = this
    this.rest = Buffer.alloc(0)
    return rest
  }

  private keep(parts: Buffer[], all: Buffer, from: number, to: number): Buffer {
    this.rest = Buffer.from(all.subarray(to))
    if (parts.length === 0) return all.subarray(from, to)
    return Buffer.concat([...parts, all.subarray(from, to)])
  }
}

/** An error in which the adapter is named as the model that it is put on. */
export function aliasedError(body: Buffer, name: string, alias: string): Buffer {
  const quoted = name.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
  return Buffer.from(body.toString().replaceAll(new RegExp(`(?<![\\w-])${quoted}(?![\\w-])`, 'g'), () => alias))
}

/** Where the text that opens here ends; -1: not yet. */
function closingOf(bytes: Buffer, open: number): number {
  for (let at = open + 1; at < bytes.length; at += 1) {
    if (bytes[at] === 0x5c) at += 1
    else if (bytes[at] === 0x22) return at
  }
  return -1
}

/** How many bytes at the end may be the beginning of a name. */
function begunAtEnd(bytes: Buffer): number {
  for (let length = Math.min(opening.length - 1, bytes.length); length > 0; length -= 1) {
    if (bytes.subarray(bytes.length - length).equals(opening.subarray(0, length))) return length
  }
  return 0
}
