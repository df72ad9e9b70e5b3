import { dockerProvider } from '../../sandbox/index.ts'

/**
 * True when tests against Docker are to run. Without a daemon it throws and says what to do; only
 * `PADDOCK_NO_DOCKER=1` leaves these tests out, so that nobody leaves them out unknowingly.
 */
export async function requireDocker(): Promise<boolean> {
  if (process.env['PADDOCK_NO_DOCKER'] === '1') return false
  await using provider = dockerProvider()
  const facts = await provider.probe()
  const fatal = facts.problems.find((problem) => problem.weight === 'fatal')
  if (fatal !== undefined) {
    throw new Error(`${fatal.what} ${fatal.fix} Or leave these tests out: PADDOCK_NO_DOCKER=1.`)
  }
  return true
}
