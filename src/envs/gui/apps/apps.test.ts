import { isDeepStrictEqual } from 'node:util'
import { describe, expect, it } from 'vitest'
import { appSite } from '../application/index.ts'
import { appsByName } from '../plugins.ts'
import { guiApps } from '../../../builtin/index.ts'

const apps = appsByName(guiApps)

const seeds = Array.from({ length: 40 }, (_, seed) => seed)
const all = [...apps].map(([name, app]) => ({ name, app }))

describe.each(all)('the app $name', ({ app }) => {
  it.each(app.goals)('asks for %s in another way on other seeds, and for the same on the same', (goal) => {
    const plans = seeds.map((seed) => app.plan(goal, seed))
    expect(plans).toEqual(seeds.map((seed) => app.plan(goal, seed)))
    // What is asked for, or what it is asked of, differs.
    expect(
      new Set(plans.map(({ start, expected, answer, files }) => JSON.stringify([start, expected, answer, files]))).size,
    ).toBeGreaterThan(seeds.length / 2)
    for (const [seed, { start, expected, answer, files }] of plans.entries()) {
      const changes = !isDeepStrictEqual(start, expected)
      const changesFiles = files !== null && !isDeepStrictEqual(files, app.workspace(seed))
      expect(changes || changesFiles).toBe(answer === null)
    }
  })
})

describe('the site of an app', () => {
  const app = apps.get('notes')
  if (app === undefined) throw new Error('notes')
  const ask = (site: ReturnType<typeof appSite>, method: string, path: string, body = '', headers = {}) =>
    site.serve({ method, url: new URL(path, site.start), headers, body: Buffer.from(body) })
  const markOf = async (site: ReturnType<typeof appSite>): Promise<string> => {
    const shown = await ask(site, 'GET', '/')
    return /data-page="([0-9a-f]{32})"/.exec(String(shown?.body))?.[1] ?? ''
  }

  it('takes a change from its own form only', async () => {
    const site = appSite(app, 1)
    const start = site.state()
    const mark = await markOf(site)
    expect(mark).toHaveLength(32)
    const pin = (page: string) => `_page=${page}&id=n1`
    const foreign = { Origin: 'http://evil.test' }
    for (const forged of [
      await ask(site, 'POST', '/do/pin', 'id=n1'),
      await ask(site, 'POST', '/do/pin', pin('0'.repeat(32))),
      await ask(site, 'POST', '/do/pin', pin(await markOf(appSite(app, 1)))),
      await ask(site, 'POST', '/do/pin', pin(mark), foreign),
    ]) {
      expect(forged?.status).toBe(403)
    }
    expect(site.state()).toEqual(start)
    expect(site.forged).toBe(4)
    expect(await ask(site, 'GET', `/do/pin?${pin(mark)}`)).toMatchObject({ status: 404 })
    expect(site.state()).toEqual(start)
    const own = { Origin: 'http://notes.test' }
    expect(await ask(site, 'POST', '/do/pin', pin(mark), own)).toMatchObject({ status: 303 })
    expect(site.state()).not.toEqual(start)
    expect(site.forged).toBe(4)
  })

  it('is not what other addresses show, and lets no script run but its own', async () => {
    const site = appSite(app, 1)
    expect(
      await site.serve({ method: 'GET', url: new URL('http://evil.test/'), headers: {}, body: Buffer.alloc(0) }),
    ).toBeNull()
    const shown = await ask(site, 'GET', '/')
    const policy = shown?.headers?.['content-security-policy'] ?? ''
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain(`script-src 'nonce-${await markOf(site)}'`)
    expect(policy).not.toMatch(/script-src[^;]*unsafe/)
  })

  it('shows what people wrote as text', async () => {
    const site = appSite(app, 1)
    const body = new URLSearchParams({ _page: await markOf(site), id: 'n1', title: '<script>x</script>', text: '"&' })
    await ask(site, 'POST', '/do/save', body.toString())
    const shown = String((await ask(site, 'GET', '/'))?.body)
    expect(shown).not.toContain('<script>x')
    expect(shown).toContain('&#60;script&#62;x')
  })
})
