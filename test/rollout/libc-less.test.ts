import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Task } from '../../src/core/index.ts'
import { terminal } from '../../src/envs/index.ts'
import { type BoxHarness, defineHarness, reportExit } from '../../src/rollout/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { openWorld, type World } from './world.ts'

/** An agent that needs nothing but the kernel: asks the model once and writes what it said, as it came. */
const agent = `#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(void) {
  static char request[4096], body[2048], answer[65536];
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(strrchr(getenv("ORIGIN"), ':') + 1))};
  inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  int s = socket(AF_INET, SOCK_STREAM, 0), out = open("said", O_WRONLY | O_CREAT, 0644);
  if (connect(s, (struct sockaddr *)&to, sizeof to) < 0) return 3;
  int length = snprintf(body, sizeof body, "{\\"model\\":\\"%s\\",\\"messages\\":[{\\"role\\":\\"user\\",\\"content\\":\\"%s\\"}]}", getenv("MODEL"), getenv("PROMPT"));
  int n = snprintf(request, sizeof request, "POST /v1/chat/completions HTTP/1.1\\r\\nhost: x\\r\\nconnection: close\\r\\ncontent-type: application/json\\r\\ncontent-length: %d\\r\\n\\r\\n%s", length, body);
  if (write(s, request, n) < n) return 4;
  while ((n = read(s, answer, sizeof answer)) > 0) if (write(out, answer, n) < n) return 5;
  return 0;
}
`

/** A harness of one program that the image holds. */
const harnessOf = (name: string, program: string): BoxHarness =>
  defineHarness({
    name,
    apiVersion: 1,
    version: '1',
    dialect: 'chat',
    place: 'box',
    bundle: null,
    configure: ({ origin, model, prompt }) => ({
      command: [program],
      env: { ORIGIN: origin, MODEL: model, PROMPT: prompt },
      files: [],
      stdin: null,
    }),
    parseResult: (exit) => reportExit(exit, [], null),
  })

describe('a task whose image has no C library, no shell and no other program', () => {
  let world: World
  let directory: string
  let task: Task

  beforeAll(async () => {
    world = await openWorld()
    directory = tempDir()
    const files = {
      'task.toml': `schema_version = "1.4"
artifacts = ["/workspace"]
[agent]
user = "1000"
[verifier]
environment_mode = "separate"
[verifier.environment]
network_mode = "no-network"
[environment]
network_mode = "no-network"
workdir = "/workspace"
`,
      'instruction.md': 'Say the word.',
      'environment/agent.c': agent,
      'environment/Dockerfile': `FROM paddock-base AS tools
COPY agent.c /agent.c
RUN gcc -static -o /agent /agent.c && gcc -o /dynamic /agent.c
FROM scratch
COPY --from=tools /agent /agent
COPY --from=tools /dynamic /dynamic
`,
      'tests/test.sh':
        'grep -q abracadabra /workspace/said && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n',
      'tests/Dockerfile': 'FROM paddock-base\nCOPY test.sh /tests/test.sh\n',
    }
    for (const [path, text] of Object.entries(files)) {
      await mkdir(join(directory, path, '..'), { recursive: true })
      await writeFile(join(directory, path), text)
    }
    const [loaded] = await terminal.load(directory)
    if (loaded === undefined) throw new Error('no task')
    task = loaded
    await world.script(task, [{ say: 'abracadabra' }])
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
  })

  test('is worked on by a harness that needs none, and scored', async () => {
    const summary = await world.run({ tasks: [task], harness: harnessOf('static-agent', '/agent') })
    expect(summary.rollouts).toMatchObject([
      { end: 'completed', calls: 1, verdict: { status: 'scored', reward: 1 }, taints: [] },
    ])
  })

  test('refuses one that needs a C library, by name, once and without a score', async () => {
    const summary = await world.run({ tasks: [task], harness: harnessOf('dynamic-agent', '/dynamic') })
    expect(summary.rollouts).toMatchObject([
      {
        end: 'infra',
        verdict: null,
        retried: false,
        detail: expect.stringMatching(
          /HARNESS_UNFIT.*dynamic-agent cannot run in the image of task .*: \/dynamic needs \/lib.*ld-linux.*, which is not there/,
        ),
      },
    ])
  })
})
