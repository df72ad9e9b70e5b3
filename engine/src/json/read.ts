import { validationError } from '../errors.ts'
import { JsonNumber } from './lossless.ts'
import type { Json, JsonObject } from './lossless.ts'

/** Reads of optional request fields. Absent and null are both `undefined`; a wrong type is a 400 that names the field. */

export function readText(object: JsonObject, key: string): string | undefined {
  const value = object.get(key) ?? undefined
  if (value === undefined || typeof value === 'string') return value
  throw validationError('Input should be a valid string', key)
}

export function readNumber(object: JsonObject, key: string): number | undefined {
  const value = object.get(key) ?? undefined
  if (value === undefined) return undefined
  if (value instanceof JsonNumber) return value.value
  throw validationError('Input should be a valid number', key)
}

export function readCount(object: JsonObject, key: string): number | undefined {
  const value = readNumber(object, key)
  if (value === undefined || Number.isInteger(value)) return value
  throw validationError('Input should be a valid integer', key, value)
}

export function readFlag(object: JsonObject, key: string): boolean | undefined {
  const value = object.get(key) ?? undefined
  if (value === undefined || typeof value === 'boolean') return value
  throw validationError('Input should be a valid boolean', key)
}

export function readList(object: JsonObject, key: string): Json[] | undefined {
  const value = object.get(key) ?? undefined
  if (value === undefined || Array.isArray(value)) return value
  throw validationError('Input should be a valid list', key)
}

export function readObject(object: JsonObject, key: string): JsonObject | undefined {
  const value = object.get(key) ?? undefined
  if (value === undefined || value instanceof Map) return value
  throw validationError('Input should be a valid dictionary', key)
}

/** A list of token ids, refused when one is negative, no integer, or not below `vocabularySize`. */
export function readTokenIds(object: JsonObject, key: string, vocabularySize: number): Int32Array | undefined {
  const list = readList(object, key)
  if (list === undefined) return undefined
  return Int32Array.from(list, (item) => {
    const id = item instanceof JsonNumber ? item.value : Number.NaN
    if (Number.isInteger(id) && id >= 0 && id < vocabularySize) return id
    throw validationError(
      `Token id ${item instanceof JsonNumber ? item.raw : 'of a wrong type'} is out of vocabulary`,
      key,
    )
  })
}
