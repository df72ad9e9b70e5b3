import type { Action, ParsedAction, Screen } from '../actions/index.ts'

/** Where the mouse is. */
export interface Point {
  readonly x: number
  readonly y: number
}

/** What a schema needs to know beside what the model said. */
export interface Scene {
  readonly screen: Screen
  /** Where the last action left the mouse; some schemas name only where to go from there. Null: not known. */
  readonly pointer: Point | null
}

/**
 * A schema that models are trained on, turned into the canonical actions and back. A leaf: it keeps nothing and runs
 * nothing; text is parsed, never executed.
 */
export interface ActionAdapter {
  readonly name: string
  /** What the model sees of a screen: the size that its coordinates are on. */
  picture(screen: Screen): Screen
  /** What its coordinates are, in words for the model. */
  places(screen: Screen): string
  /** How a model that writes its actions as text is told to; left out: its actions are no text. */
  readonly spoken?: (screen: Screen) => string
  /** Reads what the model said: the arguments of a tool call, or a text. What does not fit is told with its fix. */
  read(said: unknown, scene: Scene): ParsedAction
  /** The action in the words of this schema; null where it has none for it. */
  write(action: Action, scene: Scene): unknown
}

/** Pixels of one notch of a mouse wheel, where a schema counts notches. */
export const notch = 120

/** An answer that tells what was wrong and what would be right. */
export function told(error: string): ParsedAction {
  return { ok: false, error }
}
