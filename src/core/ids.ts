import { randomFillSync } from 'node:crypto'
import { type Clock, systemClock } from './clock.ts'

/** A UUIDv7 (RFC 9562 §5.7) in lower-case canonical form: sorts by creation time. */
export type Id = string

/** Makes ids. Within one maker ids are strictly increasing, also inside one millisecond. */
export type IdMaker = () => Id

/**
 * An {@link IdMaker} over a clock and a random source.
 * The 12 bits of `rand_a` count within a millisecond (RFC 9562 §6.2 method 1); a clock that steps back is held.
 */
export function idMaker(clock: Clock = systemClock, random: (bytes: Uint8Array) => void = pooledRandom()): IdMaker {
  let lastMs = -1
  let counter = 0
  const bytes = Buffer.alloc(16)
  const text = Buffer.from('00000000-0000-0000-0000-000000000000')
  return () => {
    const now = clock.now()
    if (now > lastMs) {
      lastMs = now
      counter = 0
    } else if (counter < 0xfff) {
      counter += 1
    } else {
      lastMs += 1
      counter = 0
    }
    random(bytes)
    bytes[0] = lastMs / 2 ** 40
    bytes[1] = lastMs / 2 ** 32
    bytes[2] = lastMs / 2 ** 24
    bytes[3] = lastMs / 2 ** 16
    bytes[4] = lastMs / 2 ** 8
    bytes[5] = lastMs
    bytes[6] = 0x70 | (counter >> 8)
    bytes[7] = counter
    bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f)
    return hexText(bytes, text)
  }
}

const hexDigits = Buffer.from('0123456789abcdef')
/** Where in the text of an id the digits of its bytes stand. */
const places = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34] as const

/** Writes the digits into `text`, which has the dashes, and gives it as a string in one piece: ids are keys of many maps. */
function hexText(bytes: Buffer, text: Buffer): string {
  for (let at = 0; at < places.length; at += 1) {
    const byte = bytes[at] ?? 0
    const place = places[at] ?? 0
    text[place] = hexDigits[byte >> 4] ?? 0
    text[place + 1] = hexDigits[byte & 0xf] ?? 0
  }
  return text.toString('latin1')
}

/** Random bytes out of a pool: the system is asked once for 256 ids, not for each. */
function pooledRandom(): (bytes: Uint8Array) => void {
  const pool = new Uint8Array(4096)
  let used = pool.length
  return (bytes) => {
    if (used + bytes.length > pool.length) {
      randomFillSync(pool)
      used = 0
    }
    // One by one: a view to copy from would cost more than the bytes.
    for (let at = 0; at < bytes.length; at += 1) bytes[at] = pool[used + at] ?? 0
    used += bytes.length
  }
}

/** The process-wide default maker. */
export const newId: IdMaker = idMaker()

/** True for the canonical form of a UUID. */
export function isId(text: string): text is Id {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(text)
}

/** Lower-case hex SHA-256; how content is named everywhere. */
export type Digest = string
