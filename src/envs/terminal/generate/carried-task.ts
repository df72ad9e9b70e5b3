import { sha256 } from '../../../core/index.ts'
import type { GeneratedTask, GeneratorSeed } from '../../generate/index.ts'
import type { CarriedFile, TerminalData } from '../data.ts'

/** A step of a candidate of `script.json`. */
type Step = { readonly shell: string } | { readonly say: string } | { readonly think: string }

/** What a generator makes of a terminal task; texts are by path. */
export interface Drawn {
  readonly instruction: string
  /** What the agent finds in its work directory. */
  readonly work: Readonly<Record<string, string>>
  /** What stands in `/tests` beside `test.sh`, which runs `check.py`. */
  readonly tests: Readonly<Record<string, string>>
  /** Steps of the agent that solves it. */
  readonly oracle: readonly Step[]
  /** Attempts that are nearly right, by name: a line for the shell each, which scores 0. */
  readonly cheats: Readonly<Record<string, string>>
}

/**
 * A task whose folder it carries: the folder of the format, file by file. All have one image, so that a thousand of them take the room and
 * the time of one, and what differs is put into the box.
 */
export function carriedTask(
  drawn: Drawn,
  { name, seed, level }: GeneratorSeed & { readonly name: string },
): GeneratedTask<TerminalData> {
  const { instruction, work, tests, oracle, cheats } = drawn
  const candidates = [{ name: 'oracle', role: 'oracle', steps: [...oracle, { say: 'It is done and checked.' }] }]
  const solve = oracle.flatMap((step) => ('shell' in step ? [step.shell] : [])).join('\n')
  const files = [
    ...Object.entries(work).map(([path, text]) => fileOf(`workdir/${path}`, text)),
    ...Object.entries(tests).map(([path, text]) => fileOf(`tests/${path}`, text)),
    fileOf('tests/test.sh', '#!/bin/bash\nexec python3 -I /tests/check.py\n'),
    fileOf('solution/solve.sh', `#!/bin/bash\nset -e\ncd /workspace\n${solve}\n`),
    ...Object.entries({ ...planted, ...cheats }).map(([cheat, text]) => fileOf(`cheats/${cheat}.sh`, `${text}\n`)),
    fileOf('script.json', `${JSON.stringify({ candidates }, null, 2)}\n`),
  ].toSorted((a, b) => (a.path < b.path ? -1 : 1))
  const below = (directory: string) => sha256(JSON.stringify(files.filter(({ path }) => path.startsWith(directory))))
  const box = {
    image: { kind: 'reference' as const, reference: 'paddock-base' },
    workdir: '/workspace',
    env: {},
    cpus: 1,
    memoryMb: 1024,
    storageMb: 1024,
    network: 'none' as const,
  }
  return {
    instruction,
    data: {
      agent: { ...box, profile: 'user', user: null, timeoutMs: 600_000, healthcheck: null },
      verifier: { ...box, user: null, timeoutMs: 60_000, uploadTests: true },
      artifacts: ['/workspace', '/logs/artifacts'].map((source) => ({ source, exclude: [] })),
      collect: [],
      solutionEnv: {},
      digests: { environment: below('workdir/'), tests: below('tests/') },
      files,
      metadata: { generator: name, seed, level },
    },
  }
}

/** Every task has to refuse a reward that somebody else than its verifier wrote. */
const planted = {
  'plants-a-reward': `mkdir -p /logs/verifier 2>/dev/null; echo '{"reward": 1}' > /logs/verifier/reward.json 2>/dev/null
echo '{"reward": 1}' > /logs/artifacts/reward.json`,
}

function fileOf(path: string, text: string): CarriedFile {
  return path.endsWith('.sh') ? { path, text, executable: true } : { path, text }
}
