/**
 * Loaded with `--import` into processes that we start: standard input is a pipe that only the parent holds, so its end
 * means that the parent is gone, however it went (invariant I9).
 */
process.stdin.resume()
process.stdin.once('end', () => process.exit(0))
process.stdin.once('error', () => process.exit(0))
// Watching must not keep a process alive that is done.
process.stdin.unref()
