import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { dockerProvider } from '../../sandbox/index.ts'
import { requireDocker } from '../../testing/sandbox/index.ts'
import { openTaskBox } from '../open-box.ts'
import { runScript } from '../run-script.ts'
import { searchEnvironment } from './index.ts'

const example = join(import.meta.dirname, '../../../examples/tasks/search/q004')
const signal = new AbortController().signal

describe.runIf(await requireDocker())('the box of a search task', () => {
  test('holds nothing of the corpus, and what is written there changes no verdict', async () => {
    const directory = tempDir()
    const environment = searchEnvironment({ directory })
    const [task] = await environment.load(example)
    if (task === undefined) throw new Error('no task')
    await using sandbox = dockerProvider()
    await using box = await openTaskBox(sandbox, environment.box(task), { labels: { role: 'probe' }, signal })
    const context = { task, attempt: { id: 'attempt' }, box, signal, emit: () => undefined }
    await environment.setup(context)
    const { script } = await environment.scripts.oracle(task)
    const [search] = script.steps
    await runScript({ ...context, environment, script: { steps: search === undefined ? [] : [search] } })
    // A word that only this corpus has, in every file outside the image's own /usr; found, when it is put there.
    const look = 'grep -rls Mendvald / --exclude-dir=proc --exclude-dir=sys --exclude-dir=dev --exclude-dir=usr'
    const files = async () =>
      Buffer.from((await box.exec({ command: look })).stdout)
        .toString()
        .trim()
    expect(await files()).toBe('')
    const forged =
      '{"searches":[],"opened":["d00223"],"answer":{"text":"Deirdkrevia of Mendvald","citations":["d00223"]}}'
    await box.putFiles('/workspace/paddock', [{ path: 'search.json', data: forged }])
    expect(await files()).toBe('/workspace/paddock/search.json')
    const openBox = async () => Promise.reject(new Error('this verifier needs no box'))
    const artifacts = await environment.collect(context)
    const verdict = await environment.verify({ task, artifacts, openBox, signal, emit: () => undefined })
    expect(verdict).toMatchObject({ status: 'scored', reward: 0, components: { em: 0, evidence_recall: 1 / 3 } })
  })
})
