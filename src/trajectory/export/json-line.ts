/** Writes JSON objects as single lines, with parts that are JSON text already and must not be parsed again. */

/** JSON text that goes into a line as it is: argument strings, numbers such as `1.0` and key order stay. */
export class RawJson {
  readonly json: string

  constructor(json: string) {
    this.json = json
  }
}

/** Marks JSON text. Line breaks in it are white space between tokens (RFC 8259 §2, §7) and become spaces. */
export function rawJson(text: string): RawJson {
  return new RawJson(text.replace(/[\r\n]+/g, ' '))
}

/** A JSON array of texts that are JSON already. */
export function rawJsonArray(texts: readonly string[]): RawJson {
  return new RawJson(`[${texts.map((text) => rawJson(text).json).join(',')}]`)
}

/** Float32 values as JSON numbers of at most 9 significant digits, enough to get each float32 back exactly. */
export function float32Json(values: Float32Array): RawJson {
  return new RawJson(`[${Array.from(values, float32Text).join(',')}]`)
}

/** Integers as a JSON array. */
export function intJson(values: Int32Array | Uint8Array): RawJson {
  return new RawJson(`[${values.join(',')}]`)
}

/** One object, members in the given order, as one line with its line feed. `undefined` members are left out. */
export function jsonLine(members: Readonly<Record<string, unknown>>): string {
  const parts: string[] = []
  for (const [name, value] of Object.entries(members)) {
    if (value === undefined) continue
    parts.push(`${JSON.stringify(name)}:${value instanceof RawJson ? value.json : JSON.stringify(value)}`)
  }
  return `{${parts.join(',')}}\n`
}

function float32Text(value: number): string {
  // JSON has no NaN or infinity; a caller masks such tokens, so that no reader can take them for a number.
  if (!Number.isFinite(value)) return 'null'
  return String(Number(value.toPrecision(9)))
}
