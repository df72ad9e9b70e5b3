const connectFailures = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT',
  'CONNECT_TIMEOUT',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** A connection failed because nobody listens there, and not for want of something on our side (`EMFILE`). */
export function isUnreachable(cause: Error): boolean {
  return 'code' in cause && typeof cause.code === 'string' && connectFailures.has(cause.code)
}
