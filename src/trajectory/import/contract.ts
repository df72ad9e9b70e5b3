/** What is imported: conversations that nobody sampled here. */

/** One thread of a conversation. */
export interface ImportedThread {
  /** JSON texts of chat messages, as they stand in the file; at least one is of the assistant. */
  readonly messages: readonly string[]
  /** JSON text of the offered tools; null: none are named. */
  readonly tools: string | null
  /** What each answer is worth, in order; null: nothing is said of it. Absent: of none. */
  readonly values?: readonly (number | null)[]
}

/** One rollout of somebody else's. */
export interface ImportedTrajectory {
  /** Where it stands: `<file>` or `<file>#<place from 1>`. One place is imported once. */
  readonly place: string
  /** Null: the file names no task, and the first words of the user stand for it. */
  readonly task: { readonly name: string | null; readonly instruction: string | null }
  /** Null: the file says nothing of it. */
  readonly reward: number | null
  readonly model: string | null
  readonly labels: Readonly<Record<string, string>>
  /** The main conversation first, then those of sub-agents. */
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
