/** No route without a row, no row without a route. */
import type { Router } from 'express'
import { expect, it } from 'vitest'
import { systemClock } from '../core/index.ts'
import { WorkTally } from './work-tally.ts'
import type { ControlParts } from './contract.ts'
import { controlApp } from './control.ts'
import { LiveFeed } from './live.ts'
import { offeredRoles, rowOf, routeTable } from '../access/index.ts'

type Layer = Router['stack'][number] & { readonly slash?: boolean; match?(path: string): unknown }

/** Method and path of each route of an app, those of routers that it mounts among them. */
function served(stack: readonly Layer[], prefix = ''): readonly string[] {
  return stack.flatMap((layer) => {
    const { route, handle } = layer
    if (route !== undefined) return route.stack.map(({ method }) => `${method.toUpperCase()} ${prefix}${route.path}`)
    if (!('stack' in handle)) return []
    const below = layer.slash === true ? '' : '/rl/v1'
    if (below !== '') expect(layer.match?.(below), 'a router is mounted where this test knows none').toBeTruthy()
    return served((handle as unknown as { readonly stack: readonly Layer[] }).stack, prefix + below)
  })
}

it('names every route that the control listener serves, and no other', () => {
  // Nobody asks them anything here.
  const parts = {
    reader: {},
    rl: {},
    nodes: { jobs: {} },
    proxy: { policies: [] },
    archiveState: () => null,
    tally: new WorkTally(),
  } as unknown as ControlParts
  const o = { live: new LiveFeed(systemClock), token: 'x'.repeat(16), directory: '/nowhere', engineConsole: null }
  const { app, close } = controlApp(parts, o)
  const routes = served(app.router.stack as readonly Layer[])
  close()
  expect(routes.length).toBeGreaterThan(50)
  const rows = routeTable.map(({ route }) => route).filter((route) => !route.startsWith('ANY '))
  expect(routes.filter((route) => !rows.includes(route))).toEqual([])
  expect(rows.filter((route) => !routes.includes(route))).toEqual([])
})

it('gives each request one row: its own', () => {
  for (const { route } of routeTable) {
    const [method = '', path = ''] = route.split(' ')
    const asked = path.replaceAll(/:\w+/g, 'some-id').replace('*', 'a/b')
    expect(rowOf(method === 'ANY' ? 'PUT' : method, asked)?.row.route).toBe(route)
  }
})

it.each([
  ['GET', '/nothing'],
  ['PUT', '/runs'],
  ['OPTIONS', '/runs'],
  ['GET', '/RUNS'],
  ['GET', '/runs/'],
  ['GET', '/rl/v1/runs'],
  ['GET', '/admin/engines'],
  ['GET', '/rl/v1/openapixjson'],
])('has no row for %s %s', (method, path) => {
  expect(rowOf(method, path)).toBeNull()
})

it('offers no role that opens nothing', () => {
  expect(offeredRoles).toEqual(['admin', 'trainer', 'annotate', 'view', 'node'])
})
