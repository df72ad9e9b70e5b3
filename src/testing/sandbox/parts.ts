import type { Box, BoxSpec, ExecResult, ImageRef, SandboxProvider, ModelSocket } from '../../sandbox/index.ts'

/** What the parts of the sandbox contract work with; made by `sandboxContract`. */
export interface ContractParts {
  readonly provider: () => SandboxProvider
  readonly image: () => ImageRef
  readonly createBox: (spec?: Partial<BoxSpec>) => Promise<Box>
}

/** With one box for many tests: of a user, with a model path to the socket, for 256 processes. */
export interface SharedBoxParts extends ContractParts {
  readonly box: () => Box
  readonly socket: () => ModelSocket
  /** One command in the shared box, which must survive it. */
  readonly sh: (command: string, more?: Partial<Parameters<Box['exec']>[0]>) => Promise<ExecResult>
}

export const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8')
