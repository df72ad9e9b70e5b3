import { isDeepStrictEqual } from 'node:util'
import type { ScriptStep } from '../../../contract.ts'
import { type Dice, dice } from '../../../search/generate/index.ts'
import type { Program } from '../../desktop/index.ts'
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
  readonly name: string
  /** True: its scripts point at pixels of a tab, so that it has none for a desktop. */
  readonly pointsAtPixels?: true
  /** State at the start: JSON, made of the seed alone. */
  readonly start: (d: Dice) => State
  /** Files of the agent's /workspace at the start, for an app that is used beside a terminal or a file manager. */
  readonly workspace?: (state: State) => Files
  /** A program of the desktop that its goals need too; the workspace is scored as a whole then. */
  readonly beside?: Program
  /** The page at this address; null: there is none. What only shows (sorting, filters, open dialogs) stands in the query. */
  readonly page: (path: string, query: Fields, state: State) => Html | null
  /** Makes a change and says where to go; a text that begins with `!` refuses it and is shown. */
  readonly act: (op: string, fields: Fields, state: State) => string
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
  page(path: string, query: Fields): Html | null
  act(op: string, fields: Fields): string
  /** JSON. */
  state(): unknown
}

/** A self-contained application: pages, state on the host, and goals. */
export interface App {
  readonly name: string
  /** True: its scripts point at pixels of a tab, so that it has none for a desktop. */
  readonly pointsAtPixels: boolean
  readonly goals: readonly string[]
  /** The program of the desktop that stands beside the browser; null for none. */
  readonly beside: Program | null
  /** Files of the agent's /workspace at the start; null for an app that needs none. */
  workspace(seed: number): Files | null
  /** Throws a RangeError for a goal that it does not have. */
  plan(goal: string, seed: number): Plan
  open(seed: number): RunningApp
}

/** Makes an app of its author's plain object. */
export function defineApp<State extends object>(spec: AppSpec<State>): App {
  const startOf = (seed: number): State => structuredClone(spec.start(dice(seed * 2 + 1)))
  return {
    name: spec.name,
    pointsAtPixels: spec.pointsAtPixels ?? false,
    beside: spec.beside ?? null,
    goals: Object.keys(spec.goals),
    workspace: (seed) => spec.workspace?.(startOf(seed)) ?? null,
    plan: (goal, seed) => {
      const make = spec.goals[goal]
      if (make === undefined) throw new RangeError(`The app ${spec.name} has no goal ${goal}.`)
      const start = startOf(seed)
      const expected = startOf(seed)
      const made = make(dice(seed * 7919 + 13), startOf(seed))
      made.change?.(expected)
      const before = spec.workspace?.(startOf(seed)) ?? {}
      const files = made.files?.(before) ?? before
      if (made.change !== undefined && isDeepStrictEqual(start, expected)) {
        throw new RangeError(`The goal ${goal} of ${spec.name} asks for nothing on seed ${seed}.`)
      }
      const { instruction, answer = null, oracle, near } = made
      return { instruction, start, expected, answer, files: spec.beside === undefined ? null : files, oracle, near }
    },
    open: (seed) => {
      const state = startOf(seed)
      return {
        page: (path, query) => spec.page(path, query, state),
        act: (op, fields) => spec.act(op, fields, state),
        state: () => structuredClone(state),
      }
    },
  }
}
