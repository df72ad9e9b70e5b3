import { type LosslessJson, stringifyLossless } from '../../../core/index.ts'
import type { CanonicalTool } from '../translate/canonical.ts'
import { flagAt, member, refused, shape, textAt } from '../translate/read.ts'
import { clientTools } from './client-tools.ts'

/**
 * A tool of a Messages request. Throws `BODY_INVALID_SHAPE` for a tool that Anthropic's servers would run: it would act
 * outside the box.
 */
export function readMessagesTool(tool: LosslessJson, index: number): CanonicalTool {
  const field = `tools.${index}`
  const type = textAt(tool, 'type') ?? 'custom'
  const name = textAt(tool, 'name')
  const known = Object.hasOwn(clientTools, type) ? clientTools[type] : undefined
  if (type !== 'custom' && known === undefined) {
    throw refused(
      `${field}.type`,
      `the tool type ${type} is Anthropic's own and not served`,
      'Offer the tool with a name and an input_schema, and run it in the harness.',
    )
  }
  if (name === undefined) throw shape(`${field}.name`, 'a string')
  if (known !== undefined) {
    const { description, parameters } = known({ zoom: flagAt(tool, 'enable_zoom') === true })
    return { name, description, parametersText: JSON.stringify(parameters) }
  }
  const schema = member(tool, 'input_schema')
  return {
    name,
    description: textAt(tool, 'description') ?? null,
    parametersText: schema === undefined ? null : stringifyLossless(schema),
  }
}
