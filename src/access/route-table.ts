import { consolePath } from './console-path.ts'
import { type Role, roles } from './roles.ts'

/** Who may call a route, and what of the call is kept. */
export interface RouteRow {
  /** As written in the table: `GET /runs/:id`. */
  readonly route: string
  /** `anyone`: no token is asked for. */
  readonly may: readonly Role[] | 'anyone'
  /** What the caller did is recorded with these fields of the body; null: it is not, or the record itself names the token. */
  readonly told: readonly string[] | null
}

const lookers = ['admin', 'trainer', 'annotate', 'view'] as const satisfies readonly Role[]
const judges = ['admin', 'trainer', 'annotate'] as const satisfies readonly Role[]
const trainers = ['admin', 'trainer'] as const satisfies readonly Role[]
const admins = ['admin'] as const satisfies readonly Role[]

const looks = { may: lookers, told: null }
const judging = { may: judges, told: null }
const trains = { may: trainers, told: null }
/** What changes what others do, and is recorded with who asked for it. */
const steers = (...told: readonly string[]) => ({ may: trainers, told })
const commands = (...told: readonly string[]) => ({ may: admins, told })

/** A node's own: each answers only for sessions of the token that asks. */
const works = { may: ['node'], told: null } as const

const updates = ['version', 'phase', 'label', 'mode', 'cache'] as const

/**
 * Every route of the control listener. What has no row here is refused to everybody, so a new route needs a line; a test
 * walks the routes that are served. `POST /runs` and `POST /runs/:id/resume` name paths and commands of this machine: admin alone.
 */
const table: Readonly<Record<string, Omit<RouteRow, 'route'>>> = {
  'GET /healthz': { may: 'anyone', told: null },
  'GET /readyz': { may: 'anyone', told: null },
  'GET /metrics': looks,
  'GET /events': looks,
  [`ANY ${consolePath}/*`]: { may: admins, told: null },

  'GET /sessions': looks,
  'GET /sessions/:id': looks,
  'POST /sessions': trains,
  'DELETE /sessions/:id': steers(),
  'GET /runs': looks,
  'GET /runs/:id': looks,
  'GET /runs/:id/events': looks,
  'POST /runs': { may: admins, told: null },
  'POST /runs/:id/resume': commands(),
  'DELETE /runs/:id': steers(),
  'POST /rescores': commands('dryRun'),
  'GET /groups': looks,
  'GET /groups/:id': looks,
  'POST /groups': trains,
  'POST /groups/:id/rounds': trains,
  'DELETE /groups/:id': steers(),
  'GET /rollouts': looks,
  'GET /rollouts/:id': looks,
  'GET /rollouts/:id/events': looks,
  'POST /rollouts': trains,
  'POST /rollouts/:id/end': trains,
  'POST /rollouts/:id/verdicts': judging,
  'POST /rollouts/:id/labels': judging,
  'GET /engine': looks,
  'POST /engine/pause': steers(...updates),
  'POST /engine/resume': steers(),
  'POST /engine/weights': steers(...updates),

  'POST /nodes/sessions': works,
  'DELETE /nodes/sessions/:id': works,
  'POST /nodes/sessions/:id/drain': works,
  'POST /nodes/sessions/:id/beat': works,
  'POST /nodes/sessions/:id/weights': works,
  'POST /nodes/sessions/:id/claims': works,
  'GET /nodes/sessions/:id/runs/:run/files': works,
  'GET /nodes/sessions/:id/runs/:run/files/:digest': works,
  'POST /nodes/sessions/:id/verifications': works,
  'GET /nodes/sessions/:id/verifications/:job/files': works,
  'GET /nodes/sessions/:id/verifications/:job/files/:digest': works,
  'GET /nodes/sessions/:id/verifications/:job/artifacts/:digest': works,
  'POST /nodes/sessions/:id/verifications/:job/hand-in': works,
  'GET /nodes/sessions/:id/jobs/:job/parents/:rollout': works,
  'POST /nodes/sessions/:id/jobs/:job/hand-in': works,
  'POST /nodes/sessions/:id/jobs/:job/give-back': works,

  'GET /rl/v1/openapi.json': looks,
  'POST /rl/v1/runs': trains,
  'GET /rl/v1/tasks': looks,
  'GET /rl/v1/runs/:id': looks,
  'POST /rl/v1/runs/:id/close': steers(),
  'POST /rl/v1/runs/:id/shelve': steers('reason'),
  'POST /rl/v1/runs/:id/resume': steers(),
  'POST /rl/v1/runs/:id/attach': steers('resume_step', 'consumer'),
  'POST /rl/v1/runs/:id/checkpoint': trains,
  'GET /rl/v1/runs/:id/events': looks,
  'POST /rl/v1/runs/:id/policy': steers(...updates),
  'POST /rl/v1/runs/:id/groups': trains,
  'GET /rl/v1/groups/:id': looks,
  'POST /rl/v1/groups/:id/rounds': trains,
  'POST /rl/v1/groups/:id/cancel': steers(),
  'POST /rl/v1/rollouts': trains,
  'GET /rl/v1/rollouts/:id': looks,
  'POST /rl/v1/rollouts/:id/end': trains,
  'POST /rl/v1/rollouts/:id/verdict': judging,
  'POST /rl/v1/rollouts/:id/forks': trains,
  'POST /rl/v1/rollouts/:id/rewrites': trains,
  'GET /rl/v1/rollouts/:id/tree': looks,
  'POST /rl/v1/rollouts/:id/cancel': steers('reason'),
  'POST /rl/v1/rollouts/:id/shelve': steers('reason'),
  'POST /rl/v1/rollouts/:id/resume': steers(),
  'POST /rl/v1/calls/:id/probes': trains,
  'POST /rl/v1/score': trains,
  'POST /rl/v1/verify': trains,
  'GET /rl/v1/verify/:key': trains,
  'PUT /rl/v1/runs/:id/engines': steers(),
  'POST /rl/v1/runs/:id/evals': trains,
  'GET /rl/v1/runs/:id/evals/:eval': looks,
  'POST /rl/v1/runs/:id/evals/:eval/cancel': steers(),
  'POST /rl/v1/runs/:id/claims': trains,
  'POST /rl/v1/claims/:id/renew': trains,
  'DELETE /rl/v1/claims/:id': trains,
  // With a claim it writes down whose the rows are.
  'GET /rl/v1/groups/:id/rounds/:round/rows': trains,
  'POST /rl/v1/runs/:id/dispositions': trains,
  'POST /rl/v1/runs/:id/metrics': trains,
  'GET /rl/v1/runs/:id/metrics': looks,
}

/** The table, in its order. */
export const routeTable: readonly RouteRow[] = Object.entries(table).map(([route, row]) => ({ route, ...row }))

/** A request's row, with what stands in its path. */
export interface Matched {
  readonly row: RouteRow
  readonly params: Readonly<Record<string, string>>
}

const patterns = routeTable.map((row) => {
  const [method = '', path = ''] = row.route.split(' ')
  const text = path
    .replaceAll('.', String.raw`\.`)
    .replace(/\/\*$/, '(?:/.*)?')
    .replace(/:(\w+)/g, '(?<$1>[^/]+)')
  return { row, method, path: new RegExp(`^${text}$`) }
})

/** The row of a request; null: it has none. HEAD asks as GET does. Paths are matched as they are written, by case too. */
export function rowOf(method: string, path: string): Matched | null {
  const asked = method === 'HEAD' ? 'GET' : method
  for (const { row, method: of, path: pattern } of patterns) {
    const found = of === 'ANY' || of === asked ? pattern.exec(path) : null
    if (found !== null) return { row, params: found.groups ?? {} }
  }
  return null
}

/** Roles that a token can be made with: those that some route takes. */
export const offeredRoles: readonly Role[] = roles.filter((role) =>
  routeTable.some(({ may }) => may !== 'anyone' && may.includes(role)),
)
