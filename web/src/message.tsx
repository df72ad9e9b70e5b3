import type { MessageView } from '../../src/server/view/contract.ts'
import { Marked } from './marked.tsx'
import { number, visible, Words } from './text.tsx'

/** A message: thinking folded, text and tool calls as they were. */
export function MessageText({ message }: { readonly message: MessageView }) {
  return (
    <section class={`message ${/^[a-z]+$/.test(message.role) ? message.role : ''}`}>
      <h3>
        <Words text={message.role} />
        {message.toolCallId === null ? null : (
          <small>
            {' '}
            <Words text={message.toolCallId} />
          </small>
        )}
      </h3>
      {message.reasoning === null || message.reasoning === '' ? null : (
        <details>
          <summary>thinking</summary>
          <pre>
            <Marked text={message.reasoning} />
          </pre>
        </details>
      )}
      {message.text === '' ? null : (
        <pre>
          <Marked text={message.text} />
        </pre>
      )}
      {message.cut === 0 ? null : <p class="quiet">{number(message.cut)} more characters are in the store.</p>}
      {message.toolCalls.map((call, at) => (
        <div key={at} class="tool">
          <p>
            calls <strong>{visible(call.name)}</strong>
          </p>
          <pre>
            <Marked text={call.argumentsText} />
          </pre>
        </div>
      ))}
    </section>
  )
}
