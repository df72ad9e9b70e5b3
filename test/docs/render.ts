/** Makes the reference pages that can be made from the code itself. `vitest run test/docs -u` writes them. */
import type { Command } from 'commander'
import { z } from 'zod'
import { configSchema } from '../../src/config/schema.ts'
import { environmentVariables } from '../../src/config/index.ts'
import { catalogue } from '../../src/core/index.ts'
import { builtInExporters } from '../../src/trajectory/index.ts'

const made = '<!-- Made from the code: `npx vitest run test/docs -u`. -->'

export function errorsPage(): string {
  const rows = Object.entries(catalogue).map(
    ([code, { family, status, means, fix }]) =>
      `| \`${code}\` | ${family} | ${status} | ${cell(means)} | ${cell(fix)} |`,
  )
  return `# Errors

${made}

Every failure that Paddock raises on purpose has a code of this table. On a terminal it is one line, \`CODE: what was wrong here. Fix: what to do\`;
with \`--json\`, and in answers of the control API, it is \`{"error": {"code", "family", "message", "fix", "data"}}\`. On a session route it has the
error shape of the dialect, with the code in \`code\` and the fix in \`message\`. \`--verbose\` adds stacks.

Four families never mix: \`request\` (what the caller sent), \`engine\` (the inference backend), \`infra\` (our own boxes, store, daemon), \`agent\` (the
harness or its command). An \`engine\` or \`infra\` failure is never a reward: the verdict is null or the rollout is tainted.

| code | family | HTTP | what it means | what to do |
|---|---|---|---|---|
${rows.join('\n')}
`
}

/** The formats that come with Paddock, as the guide lists them. */
export function formatsTable(): string {
  const rows = builtInExporters
    .all()
    .map(
      ({ name, purpose, summary }) =>
        `| [\`${name}\`](../reference/export-formats.md#${name}) | ${purpose} | ${cell(summary)} |`,
    )
  return ['| format | purpose | what it writes |', '|---|---|---|', ...rows].join('\n')
}

interface Key {
  readonly path: string
  readonly type: string
  readonly fallback: string
  readonly description: string
}

const jsonSchema = z.looseObject({
  type: z.union([z.string(), z.array(z.string())]).optional(),
  enum: z.array(z.unknown()).optional(),
  const: z.unknown().optional(),
  anyOf: z.array(z.looseObject({ type: z.string().optional(), anyOf: z.unknown().optional() })).optional(),
  default: z.unknown().optional(),
  description: z.string().optional(),
  properties: z.record(z.string(), z.unknown()).optional(),
})

/** Every leaf key of the configuration. */
export function configKeys(): readonly Key[] {
  const whole: unknown = z.toJSONSchema(configSchema, { io: 'input', unrepresentable: 'any' })
  return leaves(whole, '')
}

function leaves(schema: unknown, path: string): Key[] {
  const here = jsonSchema.parse(schema)
  if (here.properties !== undefined) {
    return Object.entries(here.properties).flatMap(([name, inner]) =>
      leaves(inner, path === '' ? name : `${path}.${name}`),
    )
  }
  const fallback = here.default === undefined ? 'unset' : `\`${JSON.stringify(here.default)}\``
  return [{ path, type: typeOf(here), fallback, description: here.description ?? '' }]
}

function typeOf(schema: z.infer<typeof jsonSchema>): string {
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${String(value)}\``).join(', ')
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``
  if (schema.anyOf !== undefined) return schema.anyOf.map((one) => typeOf(jsonSchema.parse(one))).join(' or ')
  return Array.isArray(schema.type) ? schema.type.join(' or ') : (schema.type ?? 'object')
}

export function configPage(): string {
  const rows = configKeys().map(
    ({ path, type, fallback, description }) => `| \`${path}\` | ${cell(type)} | ${fallback} | ${cell(description)} |`,
  )
  const variables = Object.entries(environmentVariables).map(
    ([name, key]) => `| \`${name}\` | ${configKeyOrText(key)} |`,
  )
  return `# Configuration

${made}

\`paddock.config.ts\` in the working directory, or the file that \`--config\` or \`PADDOCK_CONFIG\` names. Node runs it without compiling. Its default export is
an object; \`defineConfig\` types it. Every key is optional. An unknown key is an error that names the place and the nearest known key.
Later ones win, key by key: defaults, the file, environment variables, options of the command. \`list\`, \`show\`, \`fsck\`, \`salvage\` and \`view\` run no code of yours and read
no file. Elsewhere the file of the working directory is read only if it and its folder belong to you and others cannot write them, its path is printed, and \`--no-config\` skips it; a file that
is named is trusted. Nothing below a data directory or a task folder is ever loaded, neither as a configuration nor as a plugin (\`CONFIG_UNTRUSTED\`). An example that runs: \`examples/paddock.config.ts\`.

## Keys

| key | type | default | what it does |
|---|---|---|---|
${rows.join('\n')}

## Environment variables

Empty counts as unset.

| variable | key |
|---|---|
${variables.join('\n')}

\`DOCKER_HOST\`, \`DOCKER_TLS_VERIFY\` and \`DOCKER_CERT_PATH\` are read as the docker CLI reads them, where \`sandbox.socketPath\`, \`sandbox.host\` and \`sandbox.tls\` say nothing.
`
}

export function cliPage(program: Command): string {
  const commands = program.commands.filter((command) => command.name() !== 'help')
  return `# Command line

${made}

\`./paddock\` in a checkout, \`paddock\` where the package is installed. Every command takes the global options, before or after its name; those that run no code of yours (\`list\`, \`show\`, \`search\`, \`fsck\`, \`salvage\`, \`view\`) take no \`--config\`. An id may be
given as its last eight characters, as tables print it, or as the head of the whole id.

## Exit codes

| code | meaning |
|---|---|
| 0 | ok |
| 1 | the command did its work and found problems |
| 2 | usage: the command line, the configuration, an id or a file of yours |
| 3 | infrastructure: boxes, store, disk, a fault of ours |
| 4 | the engine |
| 130 | cancelled with Ctrl-C, after cleaning up |

## Global options

${optionTable(program)}

${commands.map(commandSection).join('\n\n')}
`
}

function commandSection(command: Command): string {
  const parents = command.parent === null || command.parent.parent === null ? '' : `${command.parent.name()} `
  const name = `${parents}${command.name()}`
  const args = command.registeredArguments.map((one) => `| \`${one.name()}\` | ${cell(one.description)} |`)
  const after = helpTail(command)
  return [
    `${parents === '' ? '##' : '###'} paddock ${name}`,
    '',
    `${command.description().charAt(0).toUpperCase()}${command.description().slice(1)}.`,
    '',
    '```',
    `paddock ${name} ${command.usage()}`,
    '```',
    ...(args.length === 0 ? [] : ['', '| argument | |', '|---|---|', ...args]),
    ...(command.options.length === 0 ? [] : ['', optionTable(command)]),
    ...(after === '' ? [] : ['', '```', after, '```']),
    ...command.commands.filter((sub) => sub.name() !== 'help').flatMap((sub) => ['', commandSection(sub)]),
  ].join('\n')
}

/** What a command adds after its help: an example and remarks. */
function helpTail(command: Command): string {
  let text = ''
  command.configureOutput({ writeOut: (chunk) => (text += chunk) })
  command.outputHelp()
  const at = text.indexOf('\nExample:')
  return at < 0 ? '' : text.slice(at).trim()
}

function optionTable(command: Command): string {
  const rows = command.options
    .filter((option) => !option.hidden)
    .map((option) => {
      const choices = option.argChoices === undefined ? '' : ` (${option.argChoices.join(', ')})`
      const fallback = isNothing(option.defaultValue)
        ? ''
        : `; default \`${option.defaultValueDescription ?? String(option.defaultValue)}\``
      return `| \`${option.flags}\` | ${cell(option.description)}${choices}${fallback} |`
    })
  return ['| option | |', '|---|---|', ...rows].join('\n')
}

/** No default, a switch, or an empty list. */
function isNothing(value: unknown): boolean {
  return value === undefined || typeof value === 'boolean' || (Array.isArray(value) && value.length === 0)
}

function configKeyOrText(text: string): string {
  return text.includes(' ') ? text : `\`${text}\``
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|')
}
