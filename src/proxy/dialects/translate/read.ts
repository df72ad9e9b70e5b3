import {
  type LosslessJson,
  type LosslessMember,
  maxNesting,
  nestingDepth,
  PaddockError,
  parseLossless,
} from '../../../core/index.ts'
import { isUtf8 } from 'node:buffer'

/** A JSON object of a foreign body: fields are read by name, what nobody asks for passes by. */
export type JsonObject = Extract<LosslessJson, { kind: 'object' }>

/** Parses a body. Throws `BODY_INVALID_JSON`, `BODY_INVALID_SHAPE`. */
export function readObjectBody(bytes: Buffer): JsonObject {
  if (!isUtf8(bytes)) throw new PaddockError('BODY_INVALID_JSON', 'The body is not valid UTF-8.')
  if (nestingDepth(bytes) > maxNesting) {
    throw new PaddockError('BODY_INVALID_JSON', `The body is nested more than ${maxNesting} deep.`)
  }
  const value = parseLossless(bytes.toString('utf8'))
  if (value.kind !== 'object') throw new PaddockError('BODY_INVALID_SHAPE', 'The body is not a JSON object.')
  return value
}

/** A member that is there and not null; of duplicates the last, as every common parser reads. */
export function member(value: LosslessJson | undefined, key: string): LosslessJson | undefined {
  if (value?.kind !== 'object') return undefined
  const found: LosslessMember | undefined = value.members.findLast((one) => one.key === key)
  return found === undefined || found.value.kind === 'null' ? undefined : found.value
}

export function textOf(value: LosslessJson | undefined): string | undefined {
  return value?.kind === 'string' ? value.value : undefined
}

/** A string member, undefined where it is absent or something else. */
export function textAt(value: LosslessJson | undefined, key: string): string | undefined {
  return textOf(member(value, key))
}

/** The items of a list member, none where it is absent. Throws `BODY_INVALID_SHAPE` where it is something else. */
export function listAt(value: LosslessJson | undefined, key: string): readonly LosslessJson[] {
  const found = member(value, key)
  if (found === undefined) return []
  if (found.kind !== 'array') throw shape(key, 'a list')
  return found.items
}

/** The text of a number member as it was written. Throws `BODY_INVALID_SHAPE` where it is something else. */
export function numberAt(value: LosslessJson | undefined, key: string): string | null {
  const found = member(value, key)
  if (found === undefined) return null
  if (found.kind !== 'number') throw shape(key, 'a number')
  return found.text
}

/** Throws `BODY_INVALID_SHAPE` where the member is there and neither true nor false. */
export function flagAt(value: LosslessJson | undefined, key: string): boolean | null {
  const found = member(value, key)
  if (found === undefined) return null
  if (found.kind !== 'boolean') throw shape(key, 'true or false')
  return found.value
}

/** Strings of a list; others are left out. */
export function textsOf(items: readonly LosslessJson[]): string[] {
  return items.flatMap((item) => (item.kind === 'string' ? [item.value] : []))
}

/** The error for a field that does not have the shape of its route. */
export function shape(field: string, expected: string): PaddockError {
  return new PaddockError('BODY_INVALID_SHAPE', `\`${field}\` must be ${expected}.`, { data: { field } })
}

/** The error for what would act outside the box or is not there: the harness is told, nothing is dropped in silence. */
export function refused(field: string, what: string, fix: string): PaddockError {
  return new PaddockError('BODY_INVALID_SHAPE', `\`${field}\`: ${what}.`, { data: { field }, fix })
}

/** The text of a data URL (RFC 2397) of a text type; null for any other one, and for what is no UTF-8. */
export function textOfDataUrl(url: string): string | null {
  const [, mediaType = '', base64, data = ''] = /^data:([^;,]*)[^,]*?(;base64)?,(.*)$/s.exec(url) ?? []
  if (!isTextType(mediaType)) return null
  if (base64 !== undefined) return textOfBase64(data)
  try {
    return decodeURIComponent(data)
  } catch {
    // A percent sign that begins no byte.
    return null
  }
}

/** Text that travels as base64; null where it is no UTF-8. */
export function textOfBase64(data: string): string | null {
  const bytes = Buffer.from(data, 'base64')
  return isUtf8(bytes) ? bytes.toString() : null
}

export function isTextType(mediaType: string): boolean {
  return /^text\/|^application\/(json|xml|yaml|x-yaml|javascript)$/.test(mediaType)
}
