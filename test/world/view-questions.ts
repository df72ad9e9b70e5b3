/** What users ask of recorded rollouts, and the clicks from the list of runs to the answer. */
import type { Story } from '../lab/story.ts'

export interface Question {
  /** As `docs/reference/viewer-questions.md` has it. */
  readonly asks: string
  /** What is clicked, one after the other; `type` is words and the Enter key into a field that a click is in. */
  readonly clicks: readonly (string | { readonly type: string })[]
  /** Where the answer stands, and a part of it. */
  readonly at: string
  readonly answer: RegExp
}

const run = (id: string): string => `a[href="/runs/${id}"]`
const tab = (name: string): string => `nav.tabs a:text-is("${name}")`
const rollout = (id: string): string => `.cells a[href="/rollouts/${id}"]`
const group = 'td a[href^="/groups/"]'

/** All of them, over the store of a story. */
export function questions(story: Story): readonly Question[] {
  const [parent, child] = [rollout(story.parent), rollout(story.child)]
  const ofRun = (...clicks: Question['clicks']): Question['clicks'] => [run(story.runId), ...clicks]
  const ofTasks = (...clicks: Question['clicks']): Question['clicks'] => [run(story.tasksRun), ...clicks]
  const session = `li a[href="/sessions/${story.parentSession}"]`
  return [
    {
      asks: 'What did a run come to, and how many rollouts may count?',
      clicks: ofTasks(),
      at: '.summary',
      answer: /rollouts8effective4.*mean reward/,
    },
    {
      asks: 'What failed, and was it the agent or the infrastructure?',
      clicks: ofTasks(tab('failures')),
      at: 'main',
      answer: /infra_error.*verdict/,
    },
    {
      asks: 'Which rollouts failed for one cause?',
      clicks: ofTasks('.facet:has-text("tainted")'),
      at: '[role=status]:not(.live)',
      answer: /^1 rollouts/,
    },
    {
      asks: 'Which task is the hardest?',
      clicks: ofTasks(tab('tasks')),
      at: 'tbody tr',
      answer: /^hard/,
    },
    {
      asks: 'How did a task go in every run, with every harness and weights?',
      clicks: ofTasks(tab('tasks'), 'tbody a:has-text("half")'),
      at: 'main',
      answer: /Instruction/,
    },
    {
      asks: 'Which groups teach nothing, because all their numbers are equal?',
      clicks: ofTasks(tab('groups')),
      at: 'tbody',
      answer: /flat/,
    },
    {
      asks: 'How do the members of a group compare, part by part of their rewards?',
      clicks: ofRun(tab('groups'), group),
      at: 'table',
      answer: /tests.*Why not/,
    },
    {
      asks: 'Why did this rollout get its number?',
      clicks: ofRun(parent),
      at: '.verdict',
      answer: /in force; verifier .*trust/,
    },
    {
      asks: 'What was asked and answered in a call?',
      clicks: ofRun(parent, session, 'a.call:has-text("I add the comma")', 'a:has-text("Show the text")'),
      at: 'article',
      answer: /The log says: missing comma\..*I add the comma\./,
    },
    {
      asks: 'Which token ids were sampled, with which logprobs?',
      clicks: ofRun(parent, session),
      at: '.answer .strip',
      answer: /./,
    },
    {
      asks: 'Which answers train, and why do the others not?',
      clicks: ofRun(parent, tab('tree')),
      at: 'main',
      answer: /● 3\/3.*○ 0\/3 class/,
    },
    {
      asks: 'Where did a prompt not go on from what came before, and why?',
      clicks: ofRun(parent, tab('tree')),
      at: '.leaf:has(em)',
      answer: /fork: harness_rewrite, not on from call 3/,
    },
    {
      asks: 'Which calls were made by sub-agents or beside the conversation?',
      clicks: ofRun(parent, tab('tree')),
      at: 'main',
      answer: /title.*subagent/,
    },
    {
      asks: 'What ran in the box, and what did it print?',
      clicks: ofRun(parent, tab('terminal')),
      at: 'main',
      answer: /make test/,
    },
    {
      asks: 'What pictures did the model see?',
      clicks: ofRun(parent, tab('pictures')),
      at: '.film',
      answer: /320.*200/,
    },
    {
      asks: 'How long did each stage take?',
      clicks: ofRun(parent, tab('timeline')),
      at: '.stage',
      answer: /boot 898 ms/,
    },
    {
      asks: 'Did it reach for the network?',
      clicks: ofRun(parent, tab('timeline')),
      at: '.timeline',
      answer: /refused packages\.example:443/,
    },
    {
      asks: 'Which weights sampled a rollout?',
      clicks: ofRun(child, tab('training')),
      at: 'tbody',
      answer: /w2/,
    },
    {
      asks: 'What did the trainer do with a rollout?',
      clicks: ofRun(child, tab('training')),
      at: 'tbody',
      answer: /filtered/,
    },
    {
      asks: 'How did loss, reward and mismatch go over the steps?',
      clicks: ofRun(tab('curves')),
      at: '.charts',
      answer: /loss.*mismatch: mean_abs/,
    },
    {
      asks: 'Which rollouts were trained at a step?',
      clicks: ofRun(tab('curves'), '.step input', { type: '3' }),
      at: '[role=status]:not(.live)',
      answer: /^1 rollouts of step 3/,
    },
    {
      asks: 'Where do two attempts at a task first differ?',
      clicks: ofRun(
        tab('groups'),
        group,
        'tr:has(td:nth-child(2):text-is("10")) a:has-text("compare")',
        'tr:has(td:nth-child(2):text-is("11")) a:has-text("with the marked one")',
      ),
      at: 'main',
      answer: /Call 2 differs in its prompt/,
    },
    {
      asks: 'Which tasks did a later run gain and lose?',
      clicks: [
        `tr:has(${run(story.tasksRun)}) a:has-text("compare")`,
        `tr:has(${run(story.laterRun)}) a:has-text("with")`,
      ],
      at: '[role=status]',
      answer: /1 gained in b, 1 lost/,
    },
    {
      asks: 'Where do these words stand, in any conversation, command or verdict?',
      clicks: [
        'nav a:has-text("Search"), header a:has-text("Search")',
        'input[type=search]',
        { type: 'missing comma' },
      ],
      at: 'main',
      answer: /The log says: missing comma/,
    },
    {
      asks: 'What is a place worth from which rollouts were forked?',
      clicks: ofRun(parent, tab('tree')),
      at: '.family',
      answer: /value 0\.5(00)? of 2 rewards/,
    },
  ]
}
