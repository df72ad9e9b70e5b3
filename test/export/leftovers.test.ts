/** What a killed export left is removed by the next one to the same place, and what a live one writes is not. */
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { thisOwner } from '../../src/core/index.ts'
import { openStore, runExport } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'

it('removes the parts of dead processes', async () => {
  const directory = tempDir()
  await using store = await openStore(join(directory, 'data'))
  const [pid = '', boot = '', start = '', namespace = ''] = thisOwner().split(':')
  const part = async (...owner: readonly string[]): Promise<string> => {
    const name = `.out.partial-${owner.join('_')}~01a21141-45c6-7000-98e0-1f8ea585da1c`
    await mkdir(join(directory, name))
    return name
  }
  await part(pid, boot, '1', namespace)
  await part(pid, 'an-earlier-uptime', start, namespace)
  const live = await part(pid, boot, start, namespace)
  await runExport({ reader: store, exporter: 'jsonl', out: join(directory, 'out'), paddockVersion: '1.2.3' })
  expect((await readdir(directory)).toSorted()).toEqual([live, 'data', 'out'])
})
