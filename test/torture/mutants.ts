/**
 * Faults that someone could make in the matcher, the splice, the retry rule, the rows and the codecs. The mutants of what is
 * exported are in `test/fidelity`.
 */
interface Mutant {
  readonly name: string
  /** Stands exactly once in the file. */
  readonly from: string
  readonly to: string
}

interface Part {
  readonly part: string
  readonly file: string
  /** Quick ones first: the next is only asked where the one before saw nothing. */
  readonly tests: readonly string[]
  readonly mutants: readonly Mutant[]
}

export const parts: readonly Part[] = [
  {
    part: 'replay',
    file: 'src/proxy/past/replay.ts',
    tests: ['test/proxy/replay.test.ts'],
    mutants: [
      {
        name: 'arrives although calls of the past have not come',
        from: 'if (missing === undefined && isSame',
        to: 'if (isSame',
      },
      { name: 'gives answers of failed calls again', from: 'isAnswered(call.commit.outcome)', to: 'true' },
      {
        name: 'takes any request for the one to come',
        from: 'differenceBetween(call, asked, null) === null',
        to: 'true',
      },
      {
        name: 'forgets that it diverged',
        from: 'if (this.#diverged !== null) return',
        to: 'if (this.#diverged === undefined) return',
      },
      {
        name: 'compares what the model never sees',
        from: 'withoutVolatile(jsonOf(body)), withoutVolatile(jsonOf(asked.body))',
        to: 'jsonOf(body), jsonOf(asked.body)',
      },
    ],
  },
  {
    part: 'replayed segments',
    file: 'src/proxy/past/replayed-segments.ts',
    tests: ['test/proxy/replay.test.ts'],
    mutants: [
      { name: 'trains them again', from: "origin: 'replayed',", to: '' },
      {
        name: 'names the copy instead of what was sampled',
        from: 'original.replayOf ?? original.id',
        to: 'original.id',
      },
      { name: 'keeps the logprobs', from: 'logprobs: null,', to: '' },
      { name: 'hangs all on nothing', from: 'parent: above,', to: 'parent: null,' },
    ],
  },
  {
    part: 'injection',
    file: 'src/proxy/injection/place.ts',
    tests: ['test/proxy/inject.test.ts'],
    mutants: [
      { name: 'leaves a text in that stands once', from: 'answers !== from', to: 'answers < from' },
      { name: 'takes examples for answers', from: 'answersIn(messages) - shown', to: 'answersIn(messages)' },
      { name: 'puts a turn behind the newest words', from: 'answers === shown + at.turn', to: 'false' },
      {
        name: 'splices over what is gone',
        from: "item.keep === 'once' && answersBefore",
        to: 'false && answersBefore',
      },
    ],
  },
  {
    part: 'clean view',
    file: 'src/trajectory/rows/injected.ts',
    tests: ['test/proxy/inject.test.ts'],
    mutants: [
      {
        name: 'takes a prompt that nobody knows for clean',
        from: 'if (told.edits === null) return null',
        to: 'if (told.edits === null) return nothing',
      },
      {
        name: 'cuts at the places of the whole prompt',
        from: 'start: edit.start - start, end: edit.end - start',
        to: 'start: edit.start, end: edit.end',
      },
    ],
  },
  {
    part: 'clean rows',
    file: 'src/trajectory/rows/build.ts',
    tests: ['test/proxy/inject.test.ts'],
    mutants: [
      { name: 'copies logprobs of another context', from: 'logprobs[at] = Number.NaN', to: 'continue' },
      {
        name: 'keeps what was injected',
        from: 'isClean && here.length > 0 ? withoutInjected(tokens, here) : tokens',
        to: 'tokens',
      },
    ],
  },
  {
    part: 'matcher',
    file: 'src/proxy/session/conversation.ts',
    tests: ['src/proxy/session/match.test.ts', 'src/proxy/session/conversation.test.ts'],
    mutants: [
      { name: 'goes on from the oldest answer', from: '      if (at === -1) {', to: '      {' },
      {
        name: 'does not ask what was delivered',
        from: 'return sent.length > 0 ? sent : answers',
        to: 'return sent.length > -1 ? answers : sent',
      },
      { name: 'ignores handles', from: 'if (byHandle.length > 0) return byHandle', to: '' },
      {
        name: 'takes any choice for the one that a handle names',
        from: 'one.callId === handle?.callId && one.choice === handle.choice',
        to: 'one.callId === handle?.callId',
      },
      {
        name: 'ignores ids of tool calls',
        from: 'return named.length > 0 ? named : answers',
        to: 'return named.length > -1 ? answers : named',
      },
      {
        name: 'matches by content alone',
        from: "this.byChain.get(chain[i] ?? '')",
        to: "this.byTurn.get(turns[i] ?? '')",
      },
      {
        name: 'forgets what stood before an answer',
        from: 'extendChain(one.before, one.turn), one.answer',
        to: 'one.turn, one.answer',
      },
      {
        name: 'reports one of several equal answers as echoed',
        from: 'second !== undefined || this.echoed',
        to: 'this.echoed',
      },
      { name: 'reports an answer as echoed again and again', from: '      this.echoed.add(only.callId)\n', to: '' },
      {
        name: 'calls an edited conversation unbroken',
        from: 'continues: answers.slice(-1), edited: true',
        to: 'continues: answers.slice(-1), edited: false',
      },
    ],
  },
  {
    part: 'turns',
    file: 'src/proxy/dialects/chat/turns.ts',
    tests: ['src/proxy/session/match.test.ts'],
    mutants: [
      { name: 'do not tell roles apart', from: "${String(turn['role'])}", to: '' },
      { name: 'compare arguments as text', from: 'canonicalOrRaw(written)', to: 'written' },
      { name: 'do not chain', from: '`${before}\\u0000${turn}`', to: 'turn' },
    ],
  },
  {
    part: 'tree',
    file: 'src/proxy/tokens/path-tree.ts',
    tests: ['src/proxy/tokens/path-tree.test.ts', 'test/pitfalls/templates.test.ts'],
    mutants: [
      {
        name: 'takes the shortest way',
        from: 'if (length > longest) {',
        to: 'if (best === null || length < longest) {',
      },
      { name: 'picks one of equal samples', from: "(copy ?? 'ambiguous')", to: '(copy ?? best)' },
      {
        name: 'runs through a sample that it left in the middle',
        from: 'length === next.tokens.length && next.sampled',
        to: 'next.sampled',
      },
      {
        name: 'compares one id too few',
        from: 'while (length < end && tokens[length] === ids[at + length])',
        to: 'while (length < end - 1 && tokens[length] === ids[at + length])',
      },
      {
        name: 'forgets the offset of a fork',
        from: 'taken = node.offset',
        to: 'taken = node.parent?.tokens.length ?? 0',
      },
    ],
  },
  {
    part: 'splice',
    file: 'src/proxy/tokens/splice-ids.ts',
    tests: ['src/proxy/tokens/splice-ids.test.ts', 'test/pitfalls/templates.test.ts'],
    mutants: [
      {
        name: 'does not look at the end of the whole prompt',
        from: ' || !isTail(full, full.length - behind.length, behind)',
        to: '',
      },
      {
        name: 'leaves a cut answer open',
        from: 'behind.terminator === null ? [] : [behind.terminator]',
        to: '[]',
      },
      {
        name: 'loses the first id behind an answer',
        from: 'if (behind.terminator !== null) return concat(path, [], behind.rest)',
        to: 'if (behind.terminator !== null) return concat(path, [], behind.rest.subarray(1))',
      },
      {
        name: 'does not look at the tail of a turn',
        from: 'if (ids[at + i] !== tail[i]) return false\n  return true',
        to: 'if (ids[at + i] !== tail[i]) return true\n  return true',
      },
      { name: 'takes any id for a terminator', from: ' || !closing.terminators.has(terminator)', to: '' },
      {
        name: 'takes any beginning for the same',
        from: 'if (ids[i] !== prefix[i]) return false',
        to: 'if (ids[i] !== prefix[i]) return true',
      },
    ],
  },
  {
    part: 'plan of a prompt',
    file: 'src/proxy/tokens/prompt-plan.ts',
    tests: ['test/pitfalls/templates.test.ts', 'test/pitfalls/harnesses.test.ts', 'test/splice/causes.test.ts'],
    mutants: [
      {
        name: 'splices over thinking that the harness changed',
        from: "thinking === (known.facts.reasoning ?? '').trim()",
        to: 'thinking !== undefined',
      },
      {
        name: 'doubles the terminator of an answer',
        from: 'joined(path, ended !== null, found.behind)',
        to: 'joined(path, false, found.behind)',
      },
    ],
  },
  {
    part: 'retry rule',
    file: 'src/proxy/session/retries.ts',
    tests: ['src/proxy/session/retries.test.ts', 'test/proxy/retries.test.ts'],
    mutants: [
      { name: 'joins identical bodies', from: 'if (!marked) return fresh', to: '' },
      {
        name: 'never gives a lost answer back',
        from: 'if (lost !== undefined) return',
        to: 'if (lost === null) return',
      },
      { name: 'joins different idempotency keys', from: ' && !otherKey(call, marks)', to: '' },
      {
        name: 'takes the first try for a retry',
        from: '(marks.retryCount ?? 0) > 0',
        to: '(marks.retryCount ?? 1) > 0',
      },
    ],
  },
  {
    part: 'rows',
    file: 'src/trajectory/rows/usable.ts',
    tests: ['src/trajectory/rows/rows.test.ts', 'test/pitfalls/harnesses.test.ts'],
    mutants: [
      { name: 'train superseded answers', from: "if (call.superseded) return 'superseded'", to: '' },
      {
        name: 'train what nobody got',
        from: "outcome?.kind === 'complete' || fetchedLater",
        to: "outcome?.kind !== 'interrupted' || fetchedLater",
      },
      {
        name: 'lose what a retry fetched',
        from: "outcome?.kind === 'complete' || fetchedLater",
        to: "outcome?.kind === 'complete'",
      },
    ],
  },
  {
    part: 'codec of columns',
    file: 'src/trajectory/recorder/codec.ts',
    tests: ['src/trajectory/recorder/codecs.test.ts'],
    mutants: [
      {
        name: 'swaps two planes',
        from: 'out[to + 1] = bytes[count + index] ?? 0',
        to: 'out[to + 2] = bytes[count + index] ?? 0',
      },
      { name: 'names the wrong codec', from: 'return withCodec(zstd, packed)', to: 'return withCodec(raw, packed)' },
    ],
  },
  {
    part: "frame of a call's columns",
    file: 'src/trajectory/recorder/columns.ts',
    tests: ['src/trajectory/recorder/codecs.test.ts'],
    mutants: [
      {
        name: 'mixes ids and logprobs',
        from: 'if (shape.logprobs) take(logprobs)',
        to: 'if (shape.logprobs) take(ids)',
      },
      {
        name: 'takes logprobs for flags',
        from: 'let [atId, atLogprob, atFlag] = [0, 0, idBytes + logprobBytes]',
        to: 'let [atId, atLogprob, atFlag] = [0, 0, idBytes]',
      },
      {
        name: 'takes any length',
        from: 'if (bytes.byteLength !== columnsBytes(shapes))',
        to: 'if (bytes.byteLength < 0)',
      },
    ],
  },
  {
    part: 'pieces of a reply',
    file: 'src/trajectory/recorder/replies.ts',
    tests: ['src/trajectory/recorder/codecs.test.ts'],
    mutants: [
      { name: 'believe the piece before', from: 'prefix <= limit && same(from, start, prefix)', to: 'prefix <= limit' },
    ],
  },
  {
    part: 'session that was taken up',
    file: 'src/proxy/past/take-up.ts',
    tests: ['test/proxy/restart.test.ts'],
    mutants: [
      {
        name: 'forgets what was answered',
        from: 'if (commit !== null && isAnswered(commit.outcome)) takeUpAnswers',
        to: 'if (commit === null) takeUpAnswers',
      },
      { name: 'counts from the start', from: 'Math.max(nextSeq, intent.seq + 1)', to: 'Math.max(nextSeq, 0)' },
      { name: 'gives deleted responses out', from: "event.kind === 'response_deleted'", to: 'event === undefined' },
    ],
  },
  {
    part: 'codec of bodies',
    file: 'src/trajectory/recorder/delta.ts',
    tests: ['src/trajectory/recorder/codecs.test.ts'],
    mutants: [
      {
        name: 'overlaps prefix and suffix',
        from: 'commonSuffix(from, to, limit - prefix)',
        to: 'commonSuffix(from, to, limit)',
      },
      {
        name: 'cuts the middle short',
        from: 'next.byteLength - delta.suffix)',
        to: 'next.byteLength - delta.suffix - 1)',
      },
      {
        name: 'believes what is guessed',
        from: 'a.compare(b, 0, guess, 0, guess) === 0 ? guess : 0',
        to: 'true ? guess : 0',
      },
    ],
  },
  {
    part: 'reader of plain answers',
    file: 'src/proxy/dialects/chat/plain-chunk.ts',
    tests: ['src/proxy/dialects/chat/plain-chunk.test.ts'],
    mutants: [
      {
        name: 'takes names of ids for texts',
        from: 'return this.entryCount === 0 || this.idCount !== -1',
        to: 'return true',
      },
      {
        name: 'shows logprobs that nobody asked for',
        from: 'if (!shown && end !== -1) this.edit(at, end, true)',
        to: '',
      },
      {
        name: 'takes a member that is told twice',
        from: 'if ((seen & (1 << name)) !== 0) return -1',
        to: '',
      },
    ],
  },
  {
    part: 'cursor of JSON',
    file: 'src/proxy/dialects/chat/json-cursor.ts',
    tests: ['src/proxy/dialects/chat/plain-chunk.test.ts'],
    mutants: [
      { name: 'rounds long numbers', from: 'mantissa < 2 ** 53 && decimals <= 22', to: 'decimals <= 22' },
      { name: 'takes any escape', from: 'return escapes.includes(named) ? at + 1 : -1', to: 'return at + 1' },
    ],
  },
  {
    part: 'heads of replies that are known',
    file: 'src/proxy/http/engine-line/known-heads.ts',
    tests: ['src/proxy/http/engine-line/known-heads.test.ts'],
    mutants: [
      { name: 'believes a head before its end', from: 'if (at >= size || ', to: 'if (' },
      { name: 'takes a date of any bytes', from: 'while (at < end && isOfValue(bytes[at])) at += 1', to: 'at = end' },
      { name: 'takes no length for one', from: 'return i === at ? -1 : i', to: 'return i' },
    ],
  },
  {
    part: 'turns that come again',
    file: 'src/proxy/dialects/chat/turns.ts',
    tests: ['src/proxy/dialects/chat/turns.test.ts'],
    mutants: [
      {
        name: 'takes over the turns of another text',
        from: "if (digested.copy().digest('base64') !== earlier.digest) return false",
        to: '',
      },
      { name: 'takes over half a message', from: 'if (!endsElement(this.text, end)) return false', to: '' },
    ],
  },
  {
    part: "reader of the journal's file",
    file: 'src/trajectory/journal/follow.ts',
    tests: ['src/trajectory/journal/journal.test.ts'],
    mutants: [
      {
        name: 'believes what it has at hand',
        from: 'this.#entry() ?? this.#entryAnew()',
        to: 'this.#entry()',
      },
    ],
  },
  {
    part: 'heads of entries',
    file: 'src/trajectory/recorder/heads.ts',
    tests: ['src/trajectory/recorder/heads.test.ts'],
    mutants: [
      {
        name: 'lose the base',
        from: 'base: depth === 0 ? null : bytes.subarray(at.base, at.seq)',
        to: 'base: null',
      },
      {
        name: 'mix prefix and suffix',
        from: 'bytes.writeUInt32LE(head.body.suffix, at.body + 4)',
        to: 'bytes.writeUInt32LE(head.body.prefix, at.body + 4)',
      },
    ],
  },
  {
    part: 'texts of facts',
    file: 'src/trajectory/recorder/facts.ts',
    tests: ['src/trajectory/recorder/facts.test.ts'],
    mutants: [
      {
        name: 'take other headers for the same',
        from: 'retryOf === last.retryOf && isSame(headers, last.headers)',
        to: 'retryOf === last.retryOf',
      },
      {
        name: 'take more members for the same',
        from: 'for (const _ in other) members -= 1\n  return members === 0\n}\n\nfunction isObject',
        to: 'for (const _ in one) members -= 1\n  return members === 0\n}\n\nfunction isObject',
      },
    ],
  },
]
