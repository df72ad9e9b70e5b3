// Prints `N passed, N failed, N skipped` over vitest's JSON reports: one line, alone, that any CI can read.
// A file that failed although none of its tests did (it did not load, or was stopped) counts as one that failed.
// Where PADDOCK_FAILURES names a file, each failure is appended there with the beginning of its message.
import { appendFileSync, readFileSync } from 'node:fs'
const sum = { passed: 0, failed: 0, skipped: 0 }
const failures = []
const beginning = (message) => (message ?? '').split('\n').slice(0, 12).join('\n    ')
for (const path of process.argv.slice(2)) {
  const report = JSON.parse(readFileSync(path, 'utf8'))
  sum.passed += report.numPassedTests
  sum.failed += report.numFailedTests
  sum.skipped += report.numPendingTests
  for (const { name, status, message, assertionResults } of report.testResults) {
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
console.log(`${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped`)
