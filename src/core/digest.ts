import { hash } from 'node:crypto'
import type { Digest } from './ids.ts'

/** Lower-case hex SHA-256 of bytes or UTF-8 text. */
export function sha256(data: Uint8Array | string): Digest {
  return hash('sha256', data)
}
