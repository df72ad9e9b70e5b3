import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { vllmQuirks } from '../../src/proxy/engines/vllm/index.ts'

it('engines.md has every quirk that the table in the code has', async () => {
  const page = await readFile(new URL('../../docs/reference/engines.md', import.meta.url), 'utf8')
  for (const { name, source, counter } of vllmQuirks) {
    expect(page).toContain(`| \`${name}\` |`)
    expect(page).toContain(`| ${source} | ${counter} |`)
  }
})
