import type { ShownPolicy } from '../../src/server/view/contract.ts'

/** Which of several policies a session belongs to, behind its role. */
export function policyWords(policy: ShownPolicy | undefined): string {
  return policy === undefined ? '' : ` of policy ${policy.name}${policy.trained ? '' : ' (not trained)'}`
}
