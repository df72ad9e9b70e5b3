import type { SandboxProvider } from '../../sandbox/index.ts'
import { bytes } from '../present/units.ts'
import { type Finding, ok, problem, warning } from './finding.ts'

/** What the sandbox daemon says of itself. Rollouts need it; recording does not. */
export async function dockerFindings(sandbox: SandboxProvider): Promise<readonly Finding[]> {
  const facts = await sandbox.probe()
  const told = facts.problems.map((found) =>
    found.weight === 'fatal' ? problem('docker', found.what, found.fix) : warning('docker', found.what, found.fix),
  )
  if (!facts.reachable) return told
  return [
    ok(
      'docker',
      `${facts.version ?? 'unknown version'}, cgroup ${facts.cgroup}, ${facts.storageDriver ?? 'unknown'} storage`,
    ),
    ...(facts.diskFreeBytes === null ? [] : [ok('docker', `${bytes(facts.diskFreeBytes)} free for images`)]),
    ...(facts.modelPath === 'stream'
      ? [
          ok(
            'docker',
            'sees no files of this machine: model calls go over its connection, and its disk is not looked at',
          ),
        ]
      : []),
    ...facts.images.map((line) => ok('images', line)),
    ...told,
  ]
}
