import { PaddockError } from '../../core/index.ts'

/** A place in bytes that are written or read. */
export interface Cursor {
  readonly bytes: Uint8Array
  at: number
}

/** 7 bits per byte, lowest first. */
export function writeVarint(cursor: Cursor, value: number): void {
  let rest = value
  while (rest >= 128) {
    cursor.bytes[cursor.at] = (rest % 128) + 128
    cursor.at += 1
    rest = Math.floor(rest / 128)
  }
  cursor.bytes[cursor.at] = rest
  cursor.at += 1
}

/** Throws `STORE_CORRUPT` where the bytes end. */
export function readVarint(cursor: Cursor): number {
  let value = 0
  for (let scale = 1; ; scale *= 128) {
    const byte = cursor.bytes[cursor.at]
    if (byte === undefined) throw cutShort()
    cursor.at += 1
    value += (byte % 128) * scale
    if (byte < 128) return value
  }
}

/** Columns that end too early. */
export function cutShort(): PaddockError {
  return new PaddockError('STORE_CORRUPT', 'packed numbers end inside a number')
}
