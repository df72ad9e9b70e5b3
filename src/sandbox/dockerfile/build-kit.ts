import { directivesOf, type Instruction, instructionsOf } from './instructions.ts'

/** Something in a Dockerfile that the classic builder does not know or does not mean. */
export interface BuildKitPiece {
  readonly line: number
  /** In words of a Dockerfile. */
  readonly what: string
  /**
   * The first version of the Dockerfile frontend that knows it (release notes of `docker/dockerfile`); null: it needs
   * something from outside of the build that is never given here.
   */
  readonly since: string | null
}

/** The comment that names another frontend; null where there is none. */
export interface Frontend {
  readonly line: number
  readonly reference: string
  /** Whether it is a plain release of `docker/dockerfile`: what a daemon's own frontend is too, of some version. */
  readonly isOfficial: boolean
}

export function frontendOf(dockerfile: string): Frontend | null {
  const found = directivesOf(dockerfile).get('syntax')
  if (found === undefined) return null
  const [reference = ''] = found.value.split(/\s+/)
  const isOfficial =
    /^(?:docker\.io\/)?docker\/dockerfile(?::(?:latest|experimental|1(?:\.\d+){0,2}(?:-experimental)?))?$/
  return { line: found.line, reference, isOfficial: isOfficial.test(reference) }
}

/** Arguments that BuildKit sets by itself and the classic builder leaves empty. */
const platformArgument = /^(?:TARGET|BUILD)(?:PLATFORM|OS|ARCH|VARIANT)$/

export function buildKitPieces(dockerfile: string): readonly BuildKitPiece[] {
  return instructionsOf(dockerfile).flatMap((instruction) => {
    const { line, word, hasHeredoc } = instruction
    const pieces = [...piecesOfFlags(instruction), ...piecesOfRest(instruction)]
    if (hasHeredoc) pieces.push({ what: `${word} with a here-document`, since: '1.4' })
    return pieces.map((piece) => ({ line, ...piece }))
  })
}

type Piece = Omit<BuildKitPiece, 'line'>

function piecesOfFlags({ word, rest }: Instruction): Piece[] {
  const words = rest.split(/\s+/)
  const flags = words.slice(
    0,
    [...words, ''].findIndex((one) => !one.startsWith('--')),
  )
  return flags.flatMap((flag): readonly Piece[] => {
    const [, name = '', value = ''] = /^--([a-z-]+)=?(.*)$/.exec(flag) ?? []
    const what = `${word} --${name}`
    switch (`${word} ${name}`) {
      case 'RUN mount':
        return [mountPiece(value)]
      case 'RUN network':
        return [{ what, since: '1.3' }]
      case 'RUN security':
        return [{ what, since: null }]
      case 'RUN device':
        return [{ what, since: null }]
      case 'COPY chmod':
      case 'ADD chmod':
        return [{ what, since: '1.2' }]
      case 'COPY link':
      case 'ADD link':
        return [{ what, since: '1.4' }]
      case 'ADD checksum':
        return [{ what, since: '1.6' }]
      case 'ADD keep-git-dir':
        return [{ what, since: '1.6' }]
      case 'COPY exclude':
      case 'ADD exclude':
        return [{ what, since: '1.19' }]
      case 'COPY parents':
        return [{ what, since: '1.20' }]
      case 'FROM platform':
        return value.includes('$') ? [{ what: `${what}=${value}`, since: '1.0' }] : []
      default:
        return []
    }
  })
}

function mountPiece(value: string): Piece {
  const type = /(?:^|,)type=([a-z]+)/.exec(value)?.[1] ?? 'bind'
  return { what: `RUN --mount=type=${type}`, since: type === 'secret' || type === 'ssh' ? null : '1.2' }
}

function piecesOfRest({ word, rest }: Instruction): Piece[] {
  if (word === 'ARG') {
    const names = rest.split(/\s+/).filter((name) => platformArgument.test(name))
    return names.map((name) => ({ what: `ARG ${name}`, since: '1.0' }))
  }
  const isGit = word === 'ADD' && /(?:^|\s)(?:git@\S+|(?:https?|git|ssh):\/\/\S+\.git(?:#\S*)?)(?=\s)/.test(rest)
  return isGit ? [{ what: 'ADD of a git repository', since: '1.6' }] : []
}
