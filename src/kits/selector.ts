/** `paddock-rl/selector`: what chooses the rollouts of an export, or the tasks of a run, is written with. */
import './least-node.ts'
export { type Id, PaddockError, type Task, type Verdict } from '../core/index.ts'
export {
  type CandidateTask,
  defineSelector,
  type GroupRecord,
  type RolloutView,
  type Selector,
  type SelectorGroup,
  type SelectorOption,
  type TaskChoice,
} from '../trajectory/index.ts'
