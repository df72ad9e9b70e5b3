import { catalogue, type ErrorCode, type ErrorFamily } from './error-catalogue.ts'

/** Values that explain an error: field names, limits, what was seen. Never a secret. */
export type ErrorData = Readonly<Record<string, string | number | boolean | null | readonly string[]>>

/** The one error class. `message` says what was wrong here, `fix` what to do about it. */
export class PaddockError extends Error {
  override readonly name = 'PaddockError'
  readonly code: ErrorCode
  readonly data: ErrorData
  readonly fix: string

  constructor(code: ErrorCode, message: string, options: { data?: ErrorData; fix?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.data = options.data ?? {}
    this.fix = options.fix ?? catalogue[code].fix
  }

  get family(): ErrorFamily {
    return catalogue[this.code].family
  }

  get status(): number {
    return catalogue[this.code].status
  }

  /** `CODE: message. Fix: …`, the form of every terminal and log line. */
  line(): string {
    return `${this.code}: ${this.message.replace(/\.$/, '')}. Fix: ${this.fix}`
  }

  toJSON(): { code: ErrorCode; family: ErrorFamily; message: string; fix: string; data: ErrorData } {
    return { code: this.code, family: this.family, message: this.message, fix: this.fix, data: this.data }
  }
}

/** True for a {@link PaddockError}, also of another copy of this module. */
export function isPaddockError(value: unknown): value is PaddockError {
  return value instanceof Error && value.name === 'PaddockError' && 'code' in value && 'fix' in value
}
