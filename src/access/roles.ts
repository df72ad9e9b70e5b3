/** What a token may be used for; `docs/guides/who-may.md` tells each. */
export const roles = ['admin', 'trainer', 'annotate', 'view', 'node'] as const

export type Role = (typeof roles)[number]

/** Whoever asks. */
export interface Caller {
  /** Name of the token; {@link machineToken} for the token of the machine. */
  readonly name: string
  readonly role: Role
}

/**
 * Name of the token in the file `control-token`, or of the configured one. Whoever has the data directory has it, so that what
 * commands write without an owner is recorded under this name too.
 */
export const machineToken = 'control-token'
