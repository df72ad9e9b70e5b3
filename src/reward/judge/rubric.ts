import { readFile } from 'node:fs/promises'
import { parse as parseToml } from 'smol-toml'
import { z } from 'zod'
import { PaddockError } from '../../core/index.ts'

const name = z.string().regex(/^[a-z][a-z0-9_]*$/, 'must be lower case letters, digits and underscores')

const item = z.strictObject({
  name,
  /** What is asked of the answer. */
  text: z.string().min(1),
  /** Share of the reward; negative: something that the answer must not do, which costs when it is met. */
  weight: z
    .number()
    .refine((weight) => weight !== 0, 'must not be 0')
    .default(1),
  /** Worst first. The first is worth 0, the last 1, those between equal steps. */
  choices: z.array(z.string().min(1)).min(2).default(['no', 'yes']),
})

const canary = z.strictObject({
  item: name,
  question: z.string().default(''),
  answer: z.string(),
  reference: z.string().nullable().default(null),
  /** The choice that a sound judge gives. */
  choice: z.string(),
})

const schema = z.strictObject({
  name: z.string().regex(/^[a-z][a-z0-9-]*$/, 'must be lower case letters, digits and dashes'),
  /** Changes when the meaning of the rubric does. */
  version: z.string().min(1),
  items: z.array(item).min(1),
  /** Answers whose right choice is known. Asked before each batch; a judge that misses one is not believed. */
  canaries: z.array(canary),
})

export type Rubric = z.infer<typeof schema>
export type RubricItem = Rubric['items'][number]
export type Canary = Rubric['canaries'][number]

/**
 * Reads a rubric file, `.toml` or `.json`. Throws `RUBRIC_INVALID` with file, place and fix; also for an item whose
 * canaries a judge could pass that always says the same.
 */
export async function loadRubric(path: string): Promise<Rubric> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (cause) {
    throw new PaddockError('RUBRIC_INVALID', `${path} cannot be read: ${String(cause)}`, { cause })
  }
  let value: unknown
  try {
    value = path.endsWith('.toml') ? parseToml(text) : JSON.parse(text)
  } catch (cause) {
    throw new PaddockError('RUBRIC_INVALID', `${path} does not parse: ${String(cause)}`, { cause })
  }
  return parseRubric(value, path)
}

/** Checks a rubric that is there already; `source` is named in errors. Throws `RUBRIC_INVALID`. */
export function parseRubric(value: unknown, source: string): Rubric {
  const parsed = schema.safeParse(value)
  if (!parsed.success) {
    const place = parsed.error.issues[0]?.path.join('.') ?? ''
    throw new PaddockError('RUBRIC_INVALID', `${source}: ${z.prettifyError(parsed.error)}`, { data: { source, place } })
  }
  const rubric = parsed.data
  const problem = problemOf(rubric)
  if (problem !== null) throw new PaddockError('RUBRIC_INVALID', `${source}: ${problem.what}`, { fix: problem.fix })
  return rubric
}

function problemOf({ items, canaries }: Rubric): { readonly what: string; readonly fix: string } | null {
  const names = items.map((one) => one.name)
  const twice = names.find((one, i) => names.indexOf(one) !== i)
  if (twice !== undefined) return { what: `two items are named ${twice}`, fix: 'Rename one.' }
  if (!items.some((one) => one.weight > 0))
    return { what: 'no item has a positive weight', fix: 'Weigh one item above 0.' }
  for (const { name: itemName, choices } of items) {
    if (new Set(choices).size !== choices.length) {
      return { what: `${itemName} has a choice twice`, fix: 'Give each choice a word of its own.' }
    }
    const told = canaries.filter((one) => one.item === itemName).map((one) => one.choice)
    const strange = told.find((choice) => !choices.includes(choice))
    if (strange !== undefined) {
      return { what: `a canary of ${itemName} expects ${strange}`, fix: `Expect one of ${choices.join(', ')}.` }
    }
    // One known low and one known high answer: every judge that always says the same then fails.
    if (!told.includes(choices[0] ?? '') || !told.includes(choices.at(-1) ?? '')) {
      return {
        what: `${itemName} lacks canaries for ${choices[0]} and ${choices.at(-1)}`,
        fix: 'Add under canaries one answer that surely deserves the worst choice, and one that surely deserves the best.',
      }
    }
  }
  const lost = canaries.find((one) => !names.includes(one.item))
  return lost === undefined ? null : { what: `a canary belongs to ${lost.item}`, fix: `Items are ${names.join(', ')}.` }
}

/** The reward of a choice for each item: sum of weight x value over the sum of positive weights, kept within [0, 1]. */
export function composeItems(rubric: Rubric, values: Readonly<Record<string, number>>): number {
  const positive = rubric.items.reduce((sum, { weight }) => sum + Math.max(0, weight), 0)
  const got = rubric.items.reduce((sum, one) => sum + one.weight * (values[one.name] ?? Number.NaN), 0)
  return Math.min(1, Math.max(0, got / positive))
}

/** What a choice is worth: 0 for the first, 1 for the last. */
export function valueOf({ choices }: RubricItem, choice: string): number {
  return choices.indexOf(choice) / (choices.length - 1)
}
