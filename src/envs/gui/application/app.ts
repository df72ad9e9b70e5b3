import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { PaddockError } from '../../../core/index.ts'
import type { ScriptStep, Tool } from '../../contract.ts'
import { type Dice, dice } from '../../dice.ts'
import { type Program, programNames } from '../desktop/index.ts'
import type { Html } from './html.ts'

/** The fields of a form, each once. */
export type Fields = Readonly<Record<string, string>>

/** Files of the agent's /workspace: what they hold, by path in it; a path that ends with `/` is a directory. */
export type Files = Readonly<Record<string, string>>

/** What a goal asks for, on one seed. */
export interface GoalPlan<State> {
  readonly instruction: string
  /** Makes of the state at the start the one that must be there at the end; left out: nothing may change. */
  readonly change?: (state: State) => void
  /** Of an app beside a program: what the workspace must hold at the end. Left out: what it held at the start. */
  readonly files?: (files: Files) => Files
  /** What must be answered; left out: no answer is asked for. */
  readonly answer?: string
  /** Reaches it. */
  readonly oracle: readonly ScriptStep[]
  /** An honest attempt that fails; scores 0. */
  readonly near: readonly ScriptStep[]
}

/** What the author of an app writes. */
export interface AppSpec<State extends object> {
  /** Lower case, digits and dashes: what a set of tasks names, and the host of its pages (`http://<name>.test/`). */
  readonly name: string
  readonly apiVersion: 1
  /** True: its scripts point at pixels of a tab, so that it has none for a desktop. */
  readonly pointsAtPixels?: true
  /** State at the start: JSON, made of the seed alone. */
  readonly start: (d: Dice) => State
  /**
   * Files of the agent's /workspace at the start, for an app that is used beside a terminal or a file manager. Without
   * `beside` the agent gets the tool `terminal_run`.
   */
  readonly workspace?: (state: State) => Files
  /** A program of the desktop that its goals need too; the workspace is scored as a whole then. */
  readonly beside?: Program
  /** The page at this address; null: there is none. What only shows (sorting, filters, open dialogs) stands in the query. */
  readonly page: (path: string, query: Fields, state: State) => Html | null
  /** Makes a change and says where to go; a text that begins with `!` refuses it and is shown. */
  readonly act: (op: string, fields: Fields, state: State) => string
  /**
   * Tools beside those of every gui task, over the same state as the pages; each call is an action of the attempt. The
   * names are the same on every seed.
   */
  readonly tools?: (state: State) => readonly Tool[]
  readonly goals: Readonly<Record<string, (d: Dice, state: State) => GoalPlan<State>>>
}

/** A goal on a seed, with what an attempt is compared to. */
export interface Plan {
  readonly instruction: string
  readonly start: unknown
  readonly expected: unknown
  readonly answer: string | null
  /** What the workspace must hold, by path; null: it is not looked at. */
  readonly files: Files | null
  readonly oracle: readonly ScriptStep[]
  readonly near: readonly ScriptStep[]
}

/** One attempt's copy of an app. Its state is on the host and nowhere else. */
export interface RunningApp {
  readonly tools: readonly Tool[]
  page(path: string, query: Fields): Html | null
  act(op: string, fields: Fields): string
  /** JSON. */
  state(): unknown
}

/** A self-contained application: pages, state on the host, and goals. Made by {@link defineApp}. */
export interface App {
  readonly name: string
  readonly apiVersion: 1
  /** True: its scripts point at pixels of a tab, so that it has none for a desktop. */
  readonly pointsAtPixels: boolean
  readonly goals: readonly string[]
  /** The program of the desktop that stands beside the browser; null for none. */
  readonly beside: Program | null
  /** Files of the agent's /workspace at the start; null for an app that needs none. */
  workspace(seed: number): Files | null
  /** Throws `ENVIRONMENT_INVALID` for a goal that it does not have, or that asks for nothing on this seed. */
  plan(goal: string, seed: number): Plan
  open(seed: number): RunningApp
}

const callable = z.custom<unknown>((value) => typeof value === 'function', 'must be a function')
const shape = z.object({
  name: z.string().regex(/^[a-z][a-z0-9-]*$/, 'must be lower case letters, digits and dashes'),
  apiVersion: z.literal(1, 'must be 1, the only version of the contract that this Paddock knows'),
  pointsAtPixels: z.boolean().optional(),
  start: callable,
  workspace: callable.optional(),
  beside: z.enum(programNames, `must be one of ${programNames.join(', ')}`).optional(),
  page: callable,
  act: callable,
  tools: callable.optional(),
  goals: z
    .record(z.string().regex(/^[a-z][a-z0-9-]*$/, 'must be lower case letters, digits and dashes'), callable)
    .refine((goals) => Object.keys(goals).length > 0, 'must have a goal'),
})

/**
 * Makes an app of its author's plain object. Throws `ENVIRONMENT_INVALID` naming the part and the fix.
 * @example
 * const { act, defineApp, html, page, steps } = gui
 * export default defineApp<{ lit: boolean }>({
 *   name: 'lamp',
 *   apiVersion: 1,
 *   start: () => ({ lit: false }),
 *   page: (path) => (path === '/' ? page({ title: 'Lamp', body: act('light', 'Light') }) : null),
 *   act: (_op, _fields, state) => {
 *     state.lit = true
 *     return '/'
 *   },
 *   goals: {
 *     light: () => ({
 *       instruction: 'Light the lamp.',
 *       change: (state) => { state.lit = true },
 *       oracle: [steps.click('button "Light"'), steps.done()],
 *       near: [steps.look(), steps.done()],
 *     }),
 *   },
 * })
 */
export function defineApp<State extends object>(spec: AppSpec<State>): App {
  const issue = shape.safeParse(spec).error?.issues[0]
  if (issue !== undefined) {
    const part = issue.path.join('.')
    throw new PaddockError('ENVIRONMENT_INVALID', `Gui app ${String(spec.name)}: ${part} ${issue.message}`, {
      data: { app: String(spec.name), part },
      fix: `Give defineApp a ${part === '' ? 'plain object' : part} that fits: it ${issue.message}.`,
    })
  }
  const startOf = (seed: number): State => structuredClone(spec.start(dice(seed * 2 + 1)))
  return {
    name: spec.name,
    apiVersion: 1,
    pointsAtPixels: spec.pointsAtPixels ?? false,
    beside: spec.beside ?? null,
    goals: Object.keys(spec.goals),
    workspace: (seed) => spec.workspace?.(startOf(seed)) ?? null,
    plan: (goal, seed) => {
      const make = spec.goals[goal]
      if (make === undefined) throw wrong(spec.name, goal, 'does not exist')
      const start = startOf(seed)
      const expected = startOf(seed)
      const made = make(dice(seed * 7919 + 13), startOf(seed))
      made.change?.(expected)
      const before = spec.workspace?.(startOf(seed)) ?? {}
      const files = made.files?.(before) ?? before
      if (made.change !== undefined && isDeepStrictEqual(start, expected)) {
        throw wrong(spec.name, goal, `asks for nothing on seed ${seed}: change leaves the state as it is`)
      }
      const { instruction, answer = null, oracle, near } = made
      return { instruction, start, expected, answer, files: spec.beside === undefined ? null : files, oracle, near }
    },
    open: (seed) => {
      const state = startOf(seed)
      return {
        tools: spec.tools?.(state) ?? [],
        page: (path, query) => spec.page(path, query, state),
        act: (op, fields) => spec.act(op, fields, state),
        state: () => structuredClone(state),
      }
    },
  }
}

function wrong(app: string, goal: string, what: string): PaddockError {
  return new PaddockError('ENVIRONMENT_INVALID', `Gui app ${app}: the goal ${goal} ${what}`, { data: { app, goal } })
}
