import type { AnnouncedVersion } from '../contract/index.ts'

/** From what the engine calls weights to a run's numbers of them. */
export class VersionNumbers {
  readonly #known: ReadonlyMap<string, AnnouncedVersion>

  constructor(versions: readonly AnnouncedVersion[]) {
    this.#known = new Map(versions.map((version) => [version.label, version]))
  }

  /** The lowest and highest number among names. 0 stands for weights that nobody announced: those that a run begins with. */
  between(labels: readonly string[]): [lowest: number, highest: number] {
    if (labels.length === 0) return [0, 0]
    const numbers = labels.map((label) => this.#known.get(label)?.ordinal ?? 0)
    return [Math.min(...numbers), Math.max(...numbers)]
  }

  /** Whether an undone step had made them. */
  isGone(label: string): boolean {
    return this.#known.get(label)?.gone ?? false
  }
}
