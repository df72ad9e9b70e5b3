/**
 * What BuildKit says while it builds, as lines: steps as they begin, what their commands say, and errors. `data` is `aux` of
 * a message `moby.buildkit.trace`: base64 of `StatusResponse` (moby/buildkit, `api/services/control/control.proto`), of which
 * three fields of steps (name 3, started 5, completed 6, error 7 of `vertexes` 1) and one of their output (msg 4 of `logs` 3)
 * are read.
 */
export function traceLines(data: string): readonly string[] {
  return fieldsOf(Buffer.from(data, 'base64')).flatMap(({ field, bytes }) => {
    const inner = bytes === null || (field !== 1 && field !== 3) ? [] : fieldsOf(bytes)
    const text = (of: number): string | null => inner.find((one) => one.field === of)?.bytes?.toString('utf8') ?? null
    if (field === 3) return (text(4) ?? '').split('\n').map((line) => line.trimEnd())
    const begins = text(5) !== null && text(6) === null
    return [begins ? text(3) : null, text(7)].filter((line) => line !== null)
  })
}

interface Field {
  readonly field: number
  /** Null for numbers. */
  readonly bytes: Buffer | null
}

/** The fields of one message (Protocol Buffers, "Encoding"). What cannot be read ends the list. */
function fieldsOf(bytes: Buffer): readonly Field[] {
  const found: Field[] = []
  let at = 0
  const number = (): number => {
    let value = 0
    for (let shift = 1; at < bytes.length; shift *= 128) {
      const byte = bytes.readUInt8(at)
      at += 1
      value += (byte % 128) * shift
      if (byte < 128) return value
    }
    at = bytes.length + 1
    return value
  }
  while (at < bytes.length) {
    const key = number()
    const field = Math.floor(key / 8)
    switch (key % 8) {
      case 0:
        number()
        found.push({ field, bytes: null })
        break
      case 1:
        at += 8
        break
      case 2: {
        const length = number()
        if (at + length > bytes.length) return found
        found.push({ field, bytes: bytes.subarray(at, at + length) })
        at += length
        break
      }
      case 5:
        at += 4
        break
      default:
        return found
    }
  }
  return found
}
