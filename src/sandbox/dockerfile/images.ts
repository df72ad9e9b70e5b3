import { assignmentsOf, expanded, type Instruction, instructionsOf } from './instructions.ts'

/** An image of which a Dockerfile takes something: no stage of its own, and not `scratch`. */
export interface UsedImage {
  /** With the values of its variables. */
  readonly reference: string
  /** As it stands in the file. */
  readonly written: string
  /** Of `--platform`; null: the daemon's own, or one that the builder knows. */
  readonly platform: string | null
  readonly line: number
  readonly lastLine: number
}

/**
 * Images after `FROM`, and those of `COPY --from` and `RUN --mount=from=`, in order. A name whose variables have no value
 * here (neither a default before the first `FROM` nor a build argument) is left out.
 */
export function usedImages(dockerfile: string, buildArgs: Readonly<Record<string, string>> = {}): readonly UsedImage[] {
  const known = new Map<string, string>()
  const stages = new Set(['scratch'])
  const found: UsedImage[] = []
  let count = 0
  const take = (instruction: Instruction, written: string, platform: string | null): void => {
    const reference = expanded(written, known)
    if (reference.includes('$') || reference === '' || stages.has(reference.toLowerCase())) return
    const { line, lastLine } = instruction
    found.push({ reference, written, platform, line, lastLine })
  }
  for (const instruction of instructionsOf(dockerfile)) {
    const { word, rest } = instruction
    const words = rest.split(/\s+/)
    const flags = words.slice(
      0,
      [...words, ''].findIndex((one) => !one.startsWith('--')),
    )
    if (word === 'ARG' && count === 0) {
      for (const [key, value] of assignmentsOf(rest)) {
        const given = buildArgs[key] ?? value
        if (given !== null) known.set(key, expanded(given, known))
      }
    } else if (word === 'FROM') {
      const [image = '', as, alias] = words.slice(flags.length)
      const platform = expanded(flags.find((flag) => flag.startsWith('--platform='))?.slice(11) ?? '', known)
      take(instruction, image, platform === '' || platform.includes('$') ? null : platform)
      if (as?.toUpperCase() === 'AS' && alias !== undefined) stages.add(alias.toLowerCase())
      // A stage is also known by its number.
      stages.add(String(count))
      count += 1
    } else {
      for (const written of takenFrom(word, flags)) take(instruction, written, null)
    }
  }
  return found
}

function takenFrom(word: string, flags: readonly string[]): readonly string[] {
  if (word === 'COPY') return flags.filter((flag) => flag.startsWith('--from=')).map((flag) => flag.slice(7))
  if (word !== 'RUN') return []
  const mounts = flags.filter((flag) => flag.startsWith('--mount='))
  return mounts.flatMap((flag) =>
    flag
      .slice(8)
      .split(',')
      .filter((part) => part.startsWith('from='))
      .map((part) => part.slice(5)),
  )
}

/** The same file with other names for some of its images; its lines stay as many. */
export function withImages(dockerfile: string, names: ReadonlyMap<UsedImage, string>): string {
  const lines = dockerfile.split('\n')
  for (const [{ written, line, lastLine }, name] of names) {
    for (let i = line - 1; i < lastLine; i += 1) {
      const text = lines[i] ?? ''
      const at = placeOf(text, written)
      if (at === -1 || /^\s*#/.test(text)) continue
      lines[i] = text.slice(0, at) + name + text.slice(at + written.length)
      break
    }
  }
  return lines.join('\n')
}

/** Where a name stands as a whole word, or as the value of `from=`. */
function placeOf(text: string, written: string): number {
  for (let at = text.indexOf(written); at !== -1; at = text.indexOf(written, at + 1)) {
    const before = text.slice(0, at)
    const after = text.charAt(at + written.length)
    if (/(?:^|\s|from=)$/i.test(before) && /^[\s,]?$/.test(after)) return at
  }
  return -1
}
