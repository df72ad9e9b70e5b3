/** What the pages of a rollout's life get: what happened in its box, its pictures, and what a trainer did with it. */
import type { Digest, Id, Stage } from '../../core/index.ts'
import type { StoredDisposition } from '../../trajectory/index.ts'

/** A call that something belongs to. */
export interface CallPlace {
  readonly sessionId: Id
  readonly seq: number
}

/** A picture that the model was given. Pixels as the tool said. */
export interface Picture {
  readonly sha256: Digest
  readonly width: number
  readonly height: number
  readonly tool: string
  readonly at: number
  readonly call: CallPlace | null
}

/** An event of a rollout in words. */
export interface TimelineLine {
  /** Its place in the log, from 0. */
  readonly n: number
  readonly at: number
  readonly kind: string
  readonly title: string
  readonly durationMs: number | null
  /** True for what did not go well. */
  readonly isBad: boolean
  readonly texts: readonly { readonly name: string; readonly text: string; readonly cut: number }[]
  readonly call: CallPlace | null
}

/** A part of a rollout's events. */
export interface TimelinePage {
  readonly total: number
  readonly lines: readonly TimelineLine[]
  /** What to give as `after` for the next part; null at the end. */
  readonly next: number | null
  /** Stages that ended, in order. */
  readonly stages: readonly { readonly stage: Stage; readonly durationMs: number }[]
}

/** A part of a rollout's pictures. */
export interface PicturePage {
  readonly total: number
  readonly rows: readonly Picture[]
  readonly next: number | null
}

/** A row of a rollout that a trainer was handed. */
export interface TrainedRow {
  readonly row: string
  readonly round: number
  /** What the engine called the weights that sampled it. */
  readonly labels: readonly string[]
  /** How many announced weights lie between those and the ones that were live when it was handed out. Null: not announced. */
  readonly age: number | null
  readonly dispositions: readonly StoredDisposition[]
}

/** What a trainer did with a rollout. */
export interface TrainingPage {
  readonly runId: Id
  readonly rows: readonly TrainedRow[]
  /** Rows and dispositions that are not shown. */
  readonly left: number
}

/** A command that ran in a box, with what it wrote. */
export interface TerminalStep {
  /** Its place among the commands of the rollout. */
  readonly n: number
  /** Its place in the timeline. */
  readonly event: number
  readonly at: number
  readonly durationMs: number
  readonly role: string
  readonly command: string
  /** How it ended, in words. */
  readonly how: string
  readonly isBad: boolean
  /** What it wrote, escape sequences and all. */
  readonly stdout: string
  readonly stderr: string
  /** Characters of the three that are left out. */
  readonly cut: number
  readonly call: CallPlace | null
}

/** A part of a rollout's commands. */
export interface TerminalPage {
  readonly total: number
  readonly rows: readonly TerminalStep[]
  readonly next: number | null
}
