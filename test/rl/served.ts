import type { Router } from 'express'

/** Method and path of each route that a router serves, as Express itself has them. */
export function servedBy(router: Router): readonly (readonly [method: string, path: string])[] {
  return router.stack.flatMap(({ route, handle }) => {
    if (route === undefined) return 'stack' in handle ? servedBy(handle as unknown as Router) : []
    return route.stack.map(({ method }): readonly [string, string] => [method, route.path])
  })
}
