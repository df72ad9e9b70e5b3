/** What is imported: conversations that nobody sampled here. */

/** One thread of a conversation. */
export interface ImportedThread {
  /** JSON texts of chat messages, as they stand in the file; at least one is of the assistant. */
  readonly messages: readonly string[]
  /** JSON text of the offered tools; null: none are named. */
  readonly tools: string | null
  /** What each answer is worth, in order; null: nothing is said of it. Absent: of none. */
  readonly values?: readonly (number | null)[]
  /** Whose conversation it is: the agent's, also after its context was replaced, or a sub-agent's. */
  readonly of: 'main' | 'subagent'
}

/** One rollout of somebody else's. */
export interface ImportedTrajectory {
  /** Where it stands: `<file>` or `<file>#<place from 1>`. One place is imported once. */
  readonly place: string
  /**
   * A name is one task, also if its attempts begin differently; `digest` tells versions of it apart. `name` null: the file names no task,
   * and the instruction, or else the first words of the user, identify it.
   */
  readonly task: { readonly name: string | null; readonly instruction: string | null; readonly digest?: string }
  /** Null: the file says nothing of it. */
  readonly reward: number | null
  readonly model: string | null
  readonly labels: Readonly<Record<string, string>>
  /** The main conversation first. */
  readonly threads: readonly [ImportedThread, ...ImportedThread[]]
}

/** A form that trajectories come in. */
export interface ImportFormat {
  readonly name: string
  /** One line for `--help`. */
  readonly summary: string
  /** The field that no other format has. */
  readonly mark: string
  /**
   * The trajectories of one value of a file: a line of JSON lines, an element of an array, or the file. Throws `IMPORT_INVALID` with
   * what is wrong with it.
   */
  read(text: string, place: string): ImportedTrajectory
}
