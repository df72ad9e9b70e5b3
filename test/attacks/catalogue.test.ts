import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { terminal } from '../../src/envs/index.ts'

/**
 * Which cheat of a shipped task is which attack of the catalogue. That each scores 0, and the oracles still 1, is what
 * `paddock validate` proves of all of them (`test/validate.test.ts`).
 */
const ran: Readonly<Record<string, readonly string[]>> = {
  'pre-seeded verdict': ['log-forensics/seeded-reward'],
  'background rewriter': ['data-wrangling/rewrites-the-verdict'],
  'links and .. in artifacts': ['archive-recovery/links-out'],
  'tests read': ['sqlite-repair/reads-the-tests'],
  'tests changed': ['failing-test-suite/neutered-tests'],
  'git future': ['merge-conflict/future-commits'],
  'tool shadowing: PATH, aliases': ['script-race/shadowed-tools', 'merge-conflict/aliased-git'],
  'tool shadowing: LD_PRELOAD, start-up files': ['service-will-not-start/preloaded-library'],
  'fork bomb': ['slow-script/fork-bomb'],
  'disk bomb': ['log-forensics/disk-bomb'],
  'memory bomb': ['data-wrangling/memory-bomb'],
  '/proc and socket snooping': ['permissions-and-users/snoops-around'],
  'metadata and loopback SSRF': ['git-archaeology/asks-the-network'],
  'escape through mounted paths': ['failing-test-suite/escapes-through-mounts'],
  'session theft': ['broken-build/steals-a-session'],
}

describe('the catalogue of attacks', async () => {
  const tasks = await terminal.load(join(import.meta.dirname, '../../examples/tasks/terminal'))
  const cheats = await Promise.all(
    tasks.map(async (task) => (await terminal.scripts.cheats(task)).map(({ name }) => `${task.name}/${name}`)),
  )

  it.each(Object.entries(ran))('%s is a cheat of a shipped task', (_, names) => {
    expect(cheats.flat()).toEqual(expect.arrayContaining([...names]))
  })
})
