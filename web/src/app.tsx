import { useSignal } from '@preact/signals'
import { CompareView } from './compare-view.tsx'
import { SignInPage } from './annotate.tsx'
import { GroupView } from './group-view.tsx'
import { useKeys } from './load.tsx'
import { RolloutPage } from './rollout-view.tsx'
import { place } from './router.ts'
import { RunView } from './run-view.tsx'
import { RunsView } from './runs-view.tsx'
import { SearchView } from './search-view.tsx'
import { SessionView } from './session-view.tsx'
import { TaskView } from './task-view.tsx'

const keys: readonly (readonly [string, string])[] = [
  ['j, k', 'next, previous row or call'],
  ['Enter', 'open the row'],
  ['t', 'tokens of the answer, or its text'],
  ['h, l, p', 'back, forward and play in the terminal'],
  ['/', 'find'],
  ['?', 'this list'],
  ['Esc', 'close'],
]

/** The viewer: one page per address. */
export function App() {
  const help = useSignal(false)
  useKeys((key) => {
    if (key === '?') help.value = !help.value
    else if (key === 'Escape' && help.value) help.value = false
    else return false
    return true
  })
  return (
    <>
      <header>
        <a class="home" href="/">
          Paddock
        </a>
        <a href="/search">Search</a>
        <span class="fill" />
        <button type="button" onClick={() => (help.value = !help.value)} aria-expanded={help.value}>
          Keys
        </button>
      </header>
      {help.value ? (
        <dl class="keys">
          {keys.map(([key, what]) => (
            <div key={key}>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{what}</dd>
            </div>
          ))}
        </dl>
      ) : null}
      <main>
        <Page />
      </main>
    </>
  )
}

function Page() {
  const [kind, id = ''] = place.value.path
  switch (kind) {
    case undefined:
    case 'runs':
      return id === '' ? <RunsView /> : <RunView key={id} id={id} />
    case 'compare':
      return <CompareView kind={id} />
    case 'groups':
      return <GroupView key={id} id={id} />
    case 'rollouts':
      return <RolloutPage key={id} id={id} />
    case 'tasks':
      return <TaskView key={id} digest={id} />
    case 'search':
      return <SearchView />
    case 'sign-in':
      return <SignInPage />
    case 'sessions':
      return <SessionView key={id} id={id} />
    default:
      return <p class="failure">There is no page {place.value.path.join('/')}.</p>
  }
}
