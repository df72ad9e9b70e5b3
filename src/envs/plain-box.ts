import type { BoxNeeds } from './contract.ts'

/** Of tasks whose tools need no box: a harness may have one to keep notes and run programs in. */
export const plainBox: BoxNeeds = {
  image: { kind: 'paddock-base' },
  profile: 'user',
  workdir: '/workspace',
  user: null,
  env: {},
  network: 'none',
  agentTimeoutMs: null,
  verifyTimeoutMs: null,
}
