import { type ErrorData, PaddockError, sha256 } from '../../core/index.ts'
import type { ExportRollout, Row, SelectionQuery } from '../rows-contract.ts'
import { GroupSizes } from './group-sizes.ts'

/** What a trainer needs of an export beyond the form of its rows. An export that does not hold it is refused by name. */
export interface TrainerNeeds {
  /** It finds groups by counting rows: every group has the same number. */
  readonly equalGroups: boolean
  /** It takes one row for one rollout. */
  readonly oneRowPerRollout: boolean
  /** It takes a rollout as one chain of turns, each prompt continuing what stood before. */
  readonly contiguousPrefix: boolean
  /** It takes an answer as a whole: each of its tokens has a logprob, or none is trained. */
  readonly logprobOnEachToken: boolean
  /** It finds groups by the ids of the prompt: the same within a group, others in other groups. */
  readonly groupsByPrompt: boolean
}

/** Nothing beyond the form: what archives and imitation need. */
export const noNeeds: TrainerNeeds = {
  equalGroups: false,
  oneRowPerRollout: false,
  contiguousPrefix: false,
  logprobOnEachToken: false,
  groupsByPrompt: false,
}

/** The names of all needs. */
export const needNames: readonly (keyof TrainerNeeds)[] = [
  'equalGroups',
  'oneRowPerRollout',
  'contiguousPrefix',
  'logprobOnEachToken',
  'groupsByPrompt',
]

/** How many culprits an error names. */
const named = 10

interface Finding {
  readonly problem: string
  readonly fix: string
  readonly data: ErrorData
}

/** Watches what is written, and refuses in the end what the trainer would read wrongly. */
export class NeedsCheck {
  readonly #exporter: string
  readonly #needs: TrainerNeeds
  /** The trainer takes advantages as they are given, so what it would count does not matter. */
  readonly #splits: boolean
  /** Nobody has said of which size groups are to be. */
  readonly #sizeIsOpen: boolean
  readonly #groupSizes: GroupSizes
  readonly #rowsOfGroup = new Map<string, number>()
  readonly #splitRollouts = new Map<string, string>()
  readonly #brokenRows: string[] = []
  readonly #groupOfPrompt = new Map<string, string>()
  readonly #promptOfGroup = new Map<string, string>()
  readonly #otherPrompts = new Set<string>()
  readonly #sharedPrompts = new Set<string>()

  constructor(exporter: string, needs: TrainerNeeds, query: SelectionQuery) {
    this.#exporter = exporter
    this.#needs = needs
    this.#splits = query.oneRowPerRollout === 'split-advantage'
    this.#groupSizes = new GroupSizes(query)
    this.#sizeIsOpen = query.exactGroupSize === undefined && query.selector === undefined
  }

  /** Notes a rollout with the rows that are written. */
  note(exported: ExportRollout): void {
    const { rollout, group, rows } = exported
    if (this.#needs.equalGroups) this.#groupSizes.note(exported)
    this.#rowsOfGroup.set(group.id, (this.#rowsOfGroup.get(group.id) ?? 0) + rows.length)
    if (rows.length > 1) this.#splitRollouts.set(rollout.id, group.id)
    for (const row of rows) {
      if (this.#needs.logprobOnEachToken && hasBrokenAnswer(row)) this.#brokenRows.push(row.id)
      if (this.#needs.groupsByPrompt) this.#notePrompt(group.id, row)
    }
  }

  /**
   * Throws `EXPORT_REFUSED` that names the need, the groups or rows that miss it, and the option that helps. `asked`: the
   * members that groups were to have, each number once.
   */
  finish(asked: readonly number[]): void {
    const finding = this.#finding(asked)
    if (finding === null) return
    const { problem, fix, data } = finding
    throw new PaddockError('EXPORT_REFUSED', `Export as ${this.#exporter}: ${problem}`, { fix, data })
  }

  #notePrompt(groupId: string, row: Row): void {
    const prompt = sha256(row.tokens.subarray(0, row.promptLength).join())
    const own = this.#promptOfGroup.get(groupId)
    if (own === undefined) this.#promptOfGroup.set(groupId, prompt)
    else if (own !== prompt) this.#otherPrompts.add(groupId)
    const holder = this.#groupOfPrompt.get(prompt) ?? groupId
    this.#groupOfPrompt.set(prompt, holder)
    if (holder !== groupId) this.#sharedPrompts.add(groupId)
  }

  #finding(asked: readonly number[]): Finding | null {
    const { equalGroups, oneRowPerRollout, contiguousPrefix } = this.#needs
    const split = [...this.#splitRollouts.keys()]
    if (contiguousPrefix && split.length > 0) {
      return {
        problem: `it takes a rollout as one chain, and ${list('rollout', split)} have several rows`,
        fix: 'Add `--one-row-per-rollout longest` or `last`.',
        data: { need: 'contiguousPrefix', rollouts: split.slice(0, named), groups: this.#groupsOfSplit() },
      }
    }
    if (oneRowPerRollout && !this.#splits && split.length > 0) {
      return {
        problem: `it takes one row for one rollout, and ${list('rollout', split)} have several`,
        fix: 'Add `--one-row-per-rollout longest`, `last`, or `split-advantage` where the trainer is given advantages.',
        data: { need: 'oneRowPerRollout', rollouts: split.slice(0, named), groups: this.#groupsOfSplit() },
      }
    }
    const uneven = equalGroups && !this.#splits ? (this.#uneven() ?? this.#short(asked)) : null
    return uneven ?? this.#logprobs() ?? this.#prompts()
  }

  #uneven(): Finding | null {
    const sizes = [...Map.groupBy(this.#rowsOfGroup, ([, size]) => size)].toSorted(
      ([, a], [, b]) => b.length - a.length,
    )
    const [usual, ...others] = sizes
    if (usual === undefined || others.length === 0) return null
    const odd = others.flatMap(([, groups]) => groups)
    const text = odd.slice(0, named).map(([id, size]) => `${id} (${size})`)
    return {
      problem:
        `it finds groups by counting rows, and they are not of one size: ` +
        `most have ${usual[0]}, not ${text.join(', ')}${odd.length > named ? ' …' : ''}`,
      fix: this.#groupSizes.fix(),
      data: {
        need: 'equalGroups',
        groups: odd.slice(0, named).map(([id]) => id),
        sizes: sizes.map(([size, groups]) => `${groups.length} of ${size}`),
      },
    }
  }

  /** All groups lost as many: the trainer that was told the number of before would find others. */
  #short(asked: readonly number[]): Finding | null {
    const [size] = this.#rowsOfGroup.values()
    const others = asked.filter((number) => number !== size)
    if (!this.#sizeIsOpen || size === undefined || others.length === 0) return null
    return {
      problem: `it finds groups by counting rows, and they have ${size} where ${others.join(' or ')} were asked for`,
      fix: `Add \`--exact-group-size ${size}\`, and tell the trainer the same number.`,
      data: {
        need: 'equalGroups',
        groups: [],
        sizes: [`${this.#rowsOfGroup.size} of ${size}`],
        asked: asked.map(String),
      },
    }
  }

  #logprobs(): Finding | null {
    if (this.#brokenRows.length === 0) return null
    return {
      problem: `it takes answers whole, and a trained answer lacks a logprob in ${list('row', this.#brokenRows)}`,
      fix: 'Add `--whole-answers`: such answers become context.',
      data: { need: 'logprobOnEachToken', rows: this.#brokenRows.slice(0, named) },
    }
  }

  #prompts(): Finding | null {
    const [groups, problem] =
      this.#otherPrompts.size > 0
        ? ([[...this.#otherPrompts], 'the prompts are not the same within'] as const)
        : ([[...this.#sharedPrompts], 'one prompt stands in several groups:'] as const)
    if (groups.length === 0) return null
    return {
      problem: `it finds groups by the ids of the prompt, and ${problem} ${list('group', groups)}`,
      fix: 'Use a format that names groups, such as verl or skyrl, or narrow the selection with `--group`.',
      data: { need: 'groupsByPrompt', groups: groups.slice(0, named) },
    }
  }

  #groupsOfSplit(): readonly string[] {
    return [...new Set(this.#splitRollouts.values())].slice(0, named)
  }
}

function hasBrokenAnswer(row: Row): boolean {
  return row.segments.some(
    ({ trained, start, end }) => trained && row.mask.subarray(start, end).some((value) => value === 0),
  )
}

function list(noun: string, ids: readonly string[]): string {
  const shown = ids.slice(0, named).join(', ')
  return `${ids.length} ${noun}${ids.length === 1 ? '' : 's'} (${shown}${ids.length > named ? ', …' : ''})`
}
