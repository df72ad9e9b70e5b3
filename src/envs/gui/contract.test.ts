import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { dockerProvider } from '../../sandbox/index.ts'
import { environmentContract } from '../../testing/environment/index.ts'
import { requireDocker } from '../../testing/sandbox/index.ts'
import { builtInGui } from '../../builtin/index.ts'

const gui = builtInGui({ trustTasks: false })

const example = join(import.meta.dirname, '../../../examples/tasks/gui/settings.json')

describe.runIf(await requireDocker())('gui keeps the environment contract', () => {
  const directory = tempDir()
  const bad = (name: string, content: unknown) => {
    const path = join(directory, name)
    writeFileSync(path, JSON.stringify(content))
    return path
  }
  environmentContract({
    environment: gui,
    tasks: example,
    refused: [
      {
        path: bad('app.json', { app: 'bank', goals: ['pay'], seeds: [1] }),
        code: 'TASK_INVALID',
        names: /no app bank; use one of .*shop/,
      },
      {
        path: bad('goal.json', { app: 'shop', goals: ['steal'], seeds: [1] }),
        code: 'TASK_INVALID',
        names: /no goal steal; use some of buy-one/,
      },
      { path: bad('seeds.json', { app: 'shop', goals: ['price'] }), code: 'TASK_INVALID', names: /seeds/ },
    ],
    make: async () => dockerProvider(),
  })
})
