import { JsonNumber } from '../json/lossless.ts'
import type { Json, JsonObject } from '../json/lossless.ts'

/** The properties of an object schema; empty when there are none. */
export function propertiesOf(schema: JsonObject | undefined): JsonObject {
  const properties = schema?.get('properties')
  return properties instanceof Map ? properties : new Map()
}

/** Names that an object schema requires. */
export function requiredOf(schema: JsonObject | undefined): string[] {
  const required = schema?.get('required')
  return Array.isArray(required) ? required.filter((name) => typeof name === 'string') : []
}

/** Whether a schema's `type` is, or may be, `type`. */
export function hasType(schema: Json | undefined, type: string): boolean {
  const given = schema instanceof Map ? schema.get('type') : undefined
  return given === type || (Array.isArray(given) && given.includes(type))
}

/**
 * A plain value that a schema accepts: its default, its first enum value, its minimum, else the emptiest of its type.
 * `hint` is used for free text.
 */
export function valueFor(schema: Json | undefined, hint: string): Json {
  if (!(schema instanceof Map)) return hint
  const preset = schema.get('default') ?? schema.get('const')
  if (preset !== undefined) return preset
  const values = schema.get('enum')
  if (Array.isArray(values) && values[0] !== undefined) return values[0]
  const variant = schema.get('anyOf') ?? schema.get('oneOf')
  if (Array.isArray(variant)) return valueFor(variant[0], hint)
  if (hasType(schema, 'boolean')) return false
  if (hasType(schema, 'integer') || hasType(schema, 'number')) {
    const minimum = schema.get('minimum')
    return minimum instanceof JsonNumber ? minimum : new JsonNumber('0')
  }
  if (hasType(schema, 'array')) return []
  if (hasType(schema, 'object')) return objectFor(schema, hint)
  if (hasType(schema, 'null')) return null
  return hint
}

/** An object with every required property filled in. `given` wins over filling and keeps its order, first. */
export function objectFor(schema: JsonObject | undefined, hint: string, given: JsonObject = new Map()): JsonObject {
  const properties = propertiesOf(schema)
  const filled: JsonObject = new Map(given)
  for (const name of requiredOf(schema)) {
    if (!filled.has(name)) filled.set(name, valueFor(properties.get(name), hint))
  }
  return filled
}
