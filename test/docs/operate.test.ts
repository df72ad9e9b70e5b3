/** The operator's table of failures names what there is: codes, metrics, keys of the configuration. Its commands run with those of all guides. */
import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { catalogue } from '../../src/core/index.ts'

const page = (path: string): Promise<string> => readFile(new URL(`../../docs/${path}`, import.meta.url), 'utf8')

it('names codes, metrics and keys that there are', async () => {
  const [guide, routes, config] = [
    await page('guides/operate.md'),
    await page('reference/routes.md'),
    await page('reference/config.md'),
  ]
  const named = [...guide.matchAll(/`([\w.]+)[:`]/g)].map(([, name = '']) => name)
  const codes = named.filter((name) => /^[A-Z]+(_[A-Z]+)+$/.test(name) && !/^(PADDOCK|AWS)_/.test(name))
  expect(codes.length).toBeGreaterThan(12)
  expect(codes.filter((code) => !(code in catalogue))).toEqual([])
  const metrics = named.filter((name) => name.startsWith('paddock_') && !/^paddock_\d/.test(name))
  expect(metrics.filter((name) => !routes.includes(`\`${name}\``))).toEqual([])
  const keys = named.filter((name) => /^(blobs|nodes|tls|store)\.\w+$/.test(name))
  expect(keys.length).toBeGreaterThan(4)
  expect(keys.filter((key) => !config.includes(`\`${key}`))).toEqual([])
})
