import { useSignal } from '@preact/signals'
import type { AnnotateState } from '../../src/server/view/contract.ts'
import './annotate.css'
import { signInWith, ViewerError, write } from './api.ts'
import { Failure, useRead } from './load.tsx'
import { go } from './router.ts'
import { Words } from './text.tsx'

/** Where a person says what a rollout was worth, or labels it. Shows nothing where nobody may write. */
export function Annotate(o: { readonly rolloutId: string; readonly onWritten: () => void }) {
  const state = useRead<AnnotateState>('/view/api/annotate')
  const error = useSignal<ViewerError | null>(null)
  const done = useSignal('')
  if (state.value === null || !state.value.on) return null
  if (!state.value.may) {
    return (
      <p class="quiet">
        You are signed in as <Words text={state.value.name} />, who may look. <a href="/sign-in">Sign in</a> with a
        token that may annotate.
      </p>
    )
  }
  const send = async (form: HTMLFormElement, path: string, body: unknown, what: string): Promise<void> => {
    error.value = null
    done.value = ''
    try {
      await write(`/view/api/rollouts/${o.rolloutId}/${path}`, body)
      form.reset()
      done.value = what
      o.onWritten()
    } catch (caught) {
      error.value = caught instanceof ViewerError ? caught : new ViewerError('INTERNAL', String(caught), '')
    }
  }
  return (
    <section class="annotate" aria-label="Annotate">
      <h2>Annotate</h2>
      <p class="quiet">
        Recorded under the token <Words text={state.value.name} />. Earlier verdicts stay on record.
      </p>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          const form = event.currentTarget
          void send(form, 'verdicts', verdictOf(new FormData(form)), 'The verdict is recorded.')
        }}
      >
        <label>
          Reward <input name="reward" inputMode="decimal" pattern="-?[0-9]*[.]?[0-9]+" placeholder="none" />
        </label>
        <label>
          Reason <input name="reason" size={40} maxLength={2000} />
        </label>
        <label>
          Source{' '}
          <input name="source" required defaultValue="review" pattern="[A-Za-z0-9][A-Za-z0-9_.\-]*" maxLength={64} />
        </label>
        <button type="submit">Give verdict</button>
      </form>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          const form = event.currentTarget
          const data = new FormData(form)
          const label = { name: textOf(data, 'name'), value: textOf(data, 'value') }
          void send(form, 'labels', label, 'The label is recorded.')
        }}
      >
        <label>
          Label <input name="name" required maxLength={100} />
        </label>
        <label>
          Value <input name="value" required maxLength={1000} />
        </label>
        <button type="submit">Label</button>
      </form>
      <p role="status">{done.value}</p>
      {error.value === null ? null : <Failure error={error.value} />}
    </section>
  )
}

/** A number with its reason as evidence; without a number the reason says why there is none. */
function verdictOf(data: FormData): unknown {
  const reward = textOf(data, 'reward')
  const reason = textOf(data, 'reason')
  const source = textOf(data, 'source')
  if (reward === '') return { source, reward: null, reason }
  return { source, reward: Number(reward), ...(reason === '' ? {} : { evidence: reason }) }
}

function textOf(data: FormData, name: string): string {
  const value = data.get(name)
  return typeof value === 'string' ? value.trim() : ''
}

/** For people with a token of their own. */
export function SignInPage() {
  const error = useSignal<ViewerError | null>(null)
  const signIn = async (form: HTMLFormElement): Promise<void> => {
    error.value = null
    try {
      await signInWith(textOf(new FormData(form), 'token'))
      go('/')
    } catch (caught) {
      error.value = caught instanceof ViewerError ? caught : new ViewerError('INTERNAL', String(caught), '')
    }
    form.reset()
  }
  return (
    <section class="annotate">
      <h1>Sign in</h1>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void signIn(event.currentTarget)
        }}
      >
        <label>
          Token <input name="token" type="password" required autoComplete="off" size={60} />
        </label>
        <button type="submit">Sign in</button>
      </form>
      {error.value === null ? null : <Failure error={error.value} />}
    </section>
  )
}
