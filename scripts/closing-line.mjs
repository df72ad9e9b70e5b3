// Prints `N passed, N failed, N skipped` over vitest's JSON reports: one line, alone, that any CI can read.
// A file that failed although none of its tests did (it did not load, or was stopped) counts as one that failed.
// Where tests were left out because something is missing, a second line says how many and what: `N passed, N not run: no Docker`.
// `--strict`: a skipped test that test/skips.json does not allow by name is printed, and the exit status is 1. So is a line of
// that file about a test that a file of the report no longer has.
// Where PADDOCK_FAILURES names a file, each failure is appended there with the beginning of its message.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { relative } from 'node:path'

/** What may be missing, and how a test file asks for it. */
const causes = [
  { name: 'no Docker', isMissing: process.env.PADDOCK_NO_DOCKER === '1', asks: /requireDocker\(/ },
  { name: 'not root', isMissing: process.getuid?.() !== 0, asks: /process\.gete?uid\?*/ },
]
const args = process.argv.slice(2)
const strict = args.includes('--strict')
const allowed = existsSync('test/skips.json') ? JSON.parse(readFileSync('test/skips.json', 'utf8')) : []
const allows = (file, test) => allowed.find((one) => one.file === file && one.test === test)
const sum = { passed: 0, failed: 0, skipped: 0 }
const failures = []
const notRun = new Map()
const skipped = []
const stale = []
const causeOf = (file) => {
  const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
  return causes.find(({ isMissing, asks }) => isMissing && asks.test(text))?.name
}
const beginning = (message) => (message ?? '').split('\n').slice(0, 12).join('\n    ')
for (const path of args.filter((arg) => arg !== '--strict')) {
  const report = JSON.parse(readFileSync(path, 'utf8'))
  sum.passed += report.numPassedTests
  sum.failed += report.numFailedTests
  sum.skipped += report.numPendingTests
  for (const { name, status, message, assertionResults } of report.testResults) {
    const file = relative('', name ?? path)
    const skips = assertionResults.filter((test) => test.status === 'skipped' || test.status === 'pending')
    const cause = skips.some((test) => allows(file, test.fullName) === undefined) ? causeOf(name ?? path) : undefined
    for (const { fullName } of skips) {
      const allowance = allows(file, fullName)
      const isAllowed = allowance !== undefined
      if (isAllowed && strict)
        console.log(`Skipped, as test/skips.json allows: ${file} > ${fullName} (${allowance.why})`)
      if (!isAllowed) skipped.push({ file, fullName, cause })
      if (!isAllowed && cause !== undefined) notRun.set(cause, (notRun.get(cause) ?? 0) + 1)
    }
    stale.push(
      ...allowed.filter((one) => one.file === file && !assertionResults.some((test) => test.fullName === one.test)),
    )
    const failed = assertionResults.filter((test) => test.status === 'failed')
    for (const test of failed) {
      failures.push(`${name} > ${test.fullName}\n    ${beginning(test.failureMessages?.join('\n'))}`)
    }
    if (status === 'failed' && failed.length === 0) {
      sum.failed += 1
      failures.push(`${name ?? path}\n    ${beginning(message || 'it did not load, or was stopped')}`)
    }
  }
}
const told = process.env.PADDOCK_FAILURES
if (told !== undefined && failures.length > 0) appendFileSync(told, `${failures.join('\n')}\n`)
if (strict) {
  for (const { file, fullName, cause } of skipped) {
    console.log(
      `Skipped${cause === undefined ? '' : ` (${cause})`}, and test/skips.json does not allow it: ${file} > ${fullName}`,
    )
  }
  for (const { file, test } of stale)
    console.log(`test/skips.json allows a test that does not exist: ${file} > ${test}`)
  if (skipped.length + stale.length > 0) process.exitCode = 1
}
console.log(`${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped`)
if (notRun.size > 0) {
  const left = [...notRun].map(([cause, count]) => `${count} not run: ${cause}`).join(', ')
  console.log(`${sum.passed} passed, ${sum.failed > 0 ? `${sum.failed} failed, ` : ''}${left}`)
}
