import type { Proxy } from '../proxy/index.ts'

/** The engine of a role beside the policy's, behind a proxy of its own that records what it is asked: it waits for no update of a policy. */
export interface RoleEngine {
  readonly proxy: Pick<Proxy, 'openSession' | 'closeSession'>
  /** Of that proxy's listener. */
  readonly origin: string
  readonly model: string
}

/** Asked for when the engine is first needed, and again where it could not be had. Throws `ENGINE_*`. */
export type FindRoleEngine = () => Promise<RoleEngine>
