/** Generated terminal tasks, each proven by its own scripts: the solution scores 1, doing nothing and what is nearly right 0. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { terminal, validateTasks } from '../../src/envs/index.ts'
import { dockerProvider, type SandboxProvider } from '../../src/sandbox/index.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'
import { sized } from './size.ts'

const { signal } = new AbortController()

describe.runIf(await requireDocker())('generated terminal tasks', () => {
  let sandbox: SandboxProvider
  beforeAll(() => {
    sandbox = dockerProvider()
  })
  afterAll(() => sandbox.close())

  test.each(sized(['break-ins:0..19:1..4', 'repairs:0..19:1..4'], ['break-ins:1:4', 'repairs:1:4']))(
    '%s are proven',
    async (place) => {
      const tasks = await terminal.load(place)
      const rows = await validateTasks({ environment: terminal, tasks, sandbox, signal, parallel: 4 })
      expect(rows.flatMap(({ name, status, problems }) => (status === 'proven' ? [] : [{ name, problems }]))).toEqual(
        [],
      )
    },
    sized(7_200_000, 900_000),
  )
})
